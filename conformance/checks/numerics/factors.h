// factors.h: how were the contributions of samples added up, by the sum that came of it?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/base/published.h"

namespace shardproof {

// Ways to sum microbatches in too few bits.
enum class SumIn : uint8_t {
  kBf16OnEachRank,       // each rank keeps its sum in bf16, then they are reduced
  kBf16AfterReduction,   // each microbatch is reduced, and the sum of these kept in bf16
  kBf16BeforeReduction,  // each rank's sum is rounded once, when it is handed over
  kBf16AtTheEnd          // the whole sum is rounded
};
const char* SumText(SumIn how);

// samples: gradients of one parameter, sample = microbatch * ranks + rank.
using Samples = std::vector<const std::vector<float>*>;
std::vector<float> SumOfSamples(const Samples& samples, int32_t ranks, SumIn how);

// The factors with which contributions are in a sum.
struct Factors {
  std::string what;    // in words; empty: no such factors, or one for all
  bool whole = false;  // each is in it a whole number of times: 0 is missing, 2 is twice
};
// By microbatch, else by rank, else by both; where the elements are many enough to tell.
Factors FindFactors(const Assembled& seen, const Samples& samples, int32_t ranks);

}  // namespace shardproof
