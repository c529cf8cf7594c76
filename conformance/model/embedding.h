// embedding.h: what does the embedding compute? h = E[token] (+ P[position]).
#pragma once
#include "conformance/model/numerics.h"

namespace shardproof {

struct EmbeddingShape {
  int64_t tokens = 0, vocab = 0, width = 0;
  int64_t positions = 0, first = 0;  // of the sequence; the first of these tokens among them
  int64_t rows = 0, first_row = 0;   // of the vocabulary: those that weight has
};

// position (positions, width) or null. h is on the residual grid. A token outside the vocabulary
// gives NaN.
void EmbeddingForward(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                      const float* weight, const float* position, float* h);
// Of a split vocabulary: a token whose row weight (rows, width) lacks gives zeros. On no grid.
void LookUp(const EmbeddingShape& s, const int32_t* tokens, const float* weight, float* h);
// What the sum of these over all ranges becomes, with position (positions, width) or null.
void EmbeddingStream(const Numerics& n, const EmbeddingShape& s, const float* sum,
                     const float* position, float* h);
// weight (rows, width) += dh by token; dh is the residual gradient, requantised here.
void EmbeddingWgrad(const Numerics& n, const EmbeddingShape& s, const int32_t* tokens,
                    const float* dh, const GradTarget& weight);
void PositionWgrad(const Numerics& n, const EmbeddingShape& s, const float* dh,
                   const GradTarget& position);

}  // namespace shardproof
