// update_bound.h: by how much may an optimizer that rounds its own way differ from ours?
//
// For traces with "updates":"bounded" (conformance/trace/FORMAT.md), in fp32. Weights and gradients
// of a step are exact on both sides when it begins, moments are carried on. With e = 2^-24:
//
//   Adam: |u| <= 1.23 for the suite's betas (Cauchy-Schwarz over the two averages, 0.5 and 0.75).
//   After t updates each side is off by 3te in m against the sum of its terms' absolute values, by
//   3te in v and so 1.5te in its root, and by 8e in c1, c2, the quotients and eps: u of both sides
//   differs by at most 2 * 1.23 * (4.5t + 8) e < (6t + 10) 2^-23.
//   Weight decay and the last subtraction, SGD's sums fused or not: less than 8 * 2^-23 of the
//   larger of the two weights, of before and after.
//
// A step that is left out, taken twice, or taken with another learning rate, beta or decay is off
// by a part of lr that is larger by orders of magnitude.
#pragma once

namespace shardproof {

// before, after: the oracle's weight; updates: how many there have been, this one with them.
double UpdateBound(double before, double after, double lr, int updates);

}  // namespace shardproof
