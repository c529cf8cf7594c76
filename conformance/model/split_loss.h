// split_loss.h: how wrong are logits of which each tp rank has a range of the vocabulary?
//
// As in Megatron-LM's vocab_parallel_cross_entropy: the maxima of all ranges, then the sums of
// exponentials and the label's logit, travel between these functions. Bits are those of loss.h.
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

// One rank's range [first, first + columns) of a vocabulary, split over `ranks`.
struct SplitLossShape {
  int64_t tokens = 0, columns = 0, first = 0, vocab = 0, ranks = 1;
};

// logits (tokens, columns) -> top (tokens).
void SplitLossMax(const SplitLossShape& s, const float* logits, float* top);
// maxima (ranks, tokens), those of all ranges -> sums (tokens, 2): of exp(logit - max) on its grid;
// the label's logit, 0 if it is in another range, NaN if it is in none.
void SplitLossSums(const Numerics& n, const SplitLossShape& s, const float* logits,
                   const int32_t* labels, const float* maxima, float* sums);
// sums: those of all ranges together. The sum of token losses.
float SplitLossForward(const Numerics& n, const SplitLossShape& s, const float* maxima,
                       const float* sums);
// The columns of LossDgrad's dlogits that this rank has.
void SplitLossDgrad(const Numerics& n, const SplitLossShape& s, const float* logits,
                    const int32_t* labels, const float* maxima, const float* sums, float* dlogits);

}  // namespace shardproof
