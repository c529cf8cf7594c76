// rank_check.h: what does a check of one rank go by, and how does it word a finding?
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

class RankCheck {
 protected:
  RankCheck(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : a_(a), rank_(rank), trace_(a.trace(rank)), result_(result), sink_(sink) {}

  void Add(const char* requirement, int64_t event, std::string expected, std::string seen,
           std::string message) {
    sink_.Add(a_.At(requirement, rank_, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  // Nothing orders `first` before `second`.
  void AddUnordered(const char* requirement, int64_t first, int64_t second, std::string message) {
    Finding finding = a_.At(requirement, rank_, second);
    finding.begins = first;
    sink_.Add(std::move(finding), "after " + a_.Describe(rank_, first), "nothing orders the two",
              std::move(message));
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  CheckResult& result_;

 private:
  FindingSink& sink_;
};

}  // namespace shardproof
