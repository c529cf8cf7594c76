// embedding.h: what does the embedding compute? h = E[token] (+ P[position]).
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct EmbeddingShape {
  int64_t tokens = 0, vocab = 0, width = 0;
  int64_t positions = 0, first = 0;  // of the sequence; the first of these tokens among them
};

// position (positions, width) or null. h is on the residual grid. A token outside the vocabulary
// gives NaN.
void EmbeddingForward(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                      const float* weight, const float* position, float* h);
// weight (vocab, width) += dh by token; dh is the residual gradient, requantised here.
void EmbeddingWgrad(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                    const float* dh, const GradTarget& weight);
void PositionWgrad(const Numerics& n, const EmbeddingShape& s, const float* dh,
                   const GradTarget& position);

}  // namespace shardproof
