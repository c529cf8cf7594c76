// bounds.h: can this instance's gradients be compared bit for bit?
//
// The sums of the quantised model are exact in any order while they stay below a bound that falls
// with the tokens of a step; the odd part of the gradient divisor costs bits too
// (conformance/model/NUMERICS.md).
#pragma once
#include <cstdint>
#include <string>

#include "conformance/cases/case.h"

namespace shardproof {

// Of the largest world whose results the oracle computes. Larger ones run on the dry fabric, which
// keeps no numbers.
inline constexpr int32_t kMostRanksWithNumbers = 64;
bool HasNumbers(const InstanceSpec& spec);
// Tokens of a step for the exactness of the model's sums; 1 where no numbers are compared.
int64_t TokensToSum(const InstanceSpec& spec);

// Odd part of GradDivisor.
int32_t OddDivisor(const InstanceSpec& spec);
// Whether gradients travel or are accumulated in bf16, so that the narrow profile is needed.
bool NeedsNarrow(const InstanceSpec& spec);
// Why gradients are not exact, naming tokens and divisor; empty: they are.
std::string BoundProblem(const InstanceSpec& spec);
// The longest sequence of 8, 4, 2, 1 tokens within the bound, 0 if even one token is too many.
int32_t LongestSequence(InstanceSpec spec);

}  // namespace shardproof
