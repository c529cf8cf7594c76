// loss.h: how wrong are the logits? Cross-entropy, summed over tokens.
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

// logits (tokens, vocab). The sum of token losses; NaN for a label outside the vocabulary.
float LossForward(const Numerics& n, int64_t tokens, int64_t vocab, const float* logits,
                  const int32_t* labels);
// dlogits = scale * (softmax - onehot), where scale = 2^n.scale_e.
void LossDgrad(const Numerics& n, int64_t tokens, int64_t vocab, const float* logits,
               const int32_t* labels, float* dlogits);

}  // namespace shardproof
