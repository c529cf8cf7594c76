// rank_check.h: what does a check of the schedule on one rank, or in one of its steps, go by?
#pragma once
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/schedule/tokens.h"

namespace shardproof::schedule {

class RankCheck : protected shardproof::RankCheck {
 protected:
  RankCheck(const Facts& facts, int32_t rank, CheckResult& result, FindingSink& sink)
      : shardproof::RankCheck(facts.a(), rank, result, sink), facts_(facts) {}

  const Facts& facts_;
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
