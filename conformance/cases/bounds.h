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

// Odd part of GradDivisor.
int32_t OddDivisor(const InstanceSpec& spec);
// Whether gradients travel or are accumulated in bf16, so that the narrow profile is needed.
bool NeedsNarrow(const InstanceSpec& spec);
// Why gradients are not exact, naming tokens and divisor; empty: they are.
std::string BoundProblem(const InstanceSpec& spec);
// The longest sequence of 8, 4, 2, 1 tokens within the bound, 0 if even one token is too many.
int32_t LongestSequence(InstanceSpec spec);

}  // namespace shardproof
