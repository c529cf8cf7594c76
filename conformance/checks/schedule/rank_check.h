// rank_check.h: what does a check of one rank, or of one of its steps, go by, and how does it word
// a finding?
#pragma once
#include <string>
#include <utility>

#include "conformance/checks/schedule/tokens.h"

namespace shardproof::schedule {

// Two ranges have bytes in common.
inline bool Meet(const Range& a, const Range& b) {
  return a.alloc == b.alloc && a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

class RankCheck {
 protected:
  RankCheck(const Facts& facts, int32_t rank, CheckResult& result, FindingSink& sink)
      : facts_(facts),
        a_(facts.a()),
        rank_(rank),
        trace_(a_.traces()[size_t(rank)]),
        result_(result),
        sink_(sink) {}

  void Add(const char* requirement, int64_t event, std::string expected, std::string seen,
           std::string message) {
    sink_.Add(a_.At(requirement, rank_, event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Facts& facts_;
  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  CheckResult& result_;

 private:
  FindingSink& sink_;
};

class StepCheck : protected RankCheck {
 protected:
  StepCheck(const Facts& facts, const Step& step, CheckResult& result, FindingSink& sink)
      : RankCheck(facts, step.rank, result, sink),
        step_(step),
        spec_(facts.spec(size_t(step.instance))) {}

  const Step& step_;
  const InstanceSpec& spec_;
};

}  // namespace shardproof::schedule
