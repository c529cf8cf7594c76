// lockstep.h: how do all ranks draw, judge and shrink the same case?
//
// Every rank runs the same property with the same seed. Generation and shrinking depend on nothing
// but the seed and the verdicts so far, so ranks stay together as long as they agree on each
// verdict: a case fails when it fails on any rank. Each draw is compared with rank 0's, so that a
// rank that went astray is an error and not a hang.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "property_tests/generators.h"
#include "property_tests/property.h"

namespace shardproof {

// What the ranks need to talk about. Each call is collective.
class RankAgreement {
 public:
  virtual ~RankAgreement() = default;
  virtual int rank() const = 0;
  virtual uint64_t FromRankZero(uint64_t value) = 0;
  virtual bool OnAllRanks(bool holds) = 0;
};

// True, on all ranks, when no counterexample was found. holds runs on every rank; an exception
// counts as false. The report is written by rank 0 only. *counterexample, if given, is the smallest
// failing case.
bool CheckInLockstep(const std::string& name, RankAgreement& ranks,
                     const rc::Gen<GeneratedCase>& cases,
                     const std::function<bool(const Case&)>& holds, PropertyOptions options = {},
                     std::string* counterexample = nullptr);

}  // namespace shardproof
