#include "conformance/checks/numerics/results_due.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

// As the dry fabric records: what was published, without its values.
CheckResult WithoutNumbers(MiniRun& mini) {
  for (Trace& trace : mini.run.traces) {
    for (Event& event : trace.events) {
      if (event.kind == EventKind::kPublish) event.values = -1;
    }
    trace.values.clear();
  }
  mini.run.oracles.clear();
  const std::vector<OracleRun> due = ResultsDue(Analysis(mini.run));
  for (const OracleRun& oracle : due) mini.run.oracles.push_back(&oracle);
  return CheckNumerics(mini.run);
}

TEST(ResultsDue, AreWholeInAGoodRun) {
  MiniRun mini = RunMini(MiniCase(2));
  const CheckResult result = WithoutNumbers(mini);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  for (const char* id : {"FS-28", "FS-34", "GE-29", "GE-31"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
  for (const NotCheckable& row : result.not_checkable) {
    EXPECT_TRUE(row.requirement != "FS-28" && row.requirement != "FS-34" &&
                row.requirement != "GE-29" && row.requirement != "GE-31")
        << row.requirement;
  }
  EXPECT_FALSE(result.judged.contains("FS-24")) << "no value was compared";
}

TEST(ResultsDue, WhatOneRankLeavesOutIsMissed) {
  struct Left {
    const char* requirement;
    std::function<bool(const Event&)> match;
  };
  const auto published = [](int result) {
    return [result](const Event& event) {
      return event.kind == EventKind::kPublish && event.result == result && event.call == 1;
    };
  };
  for (const Left& left :
       {Left{"FS-28", published(SPF_RESULT_PARAM)}, Left{"GE-31", published(SPF_RESULT_GRAD)},
        Left{"GE-30", published(SPF_RESULT_LOSS)}}) {
    MiniRun mini = RunMini(MiniCase(2));
    for (Trace& trace : mini.run.traces) {
      if (left.requirement == std::string("GE-30") && trace.rank == 0) continue;
      std::erase_if(trace.events, left.match);
    }
    EXPECT_EQ(FoundIn(WithoutNumbers(mini)), left.requirement);
  }
}

}  // namespace
}  // namespace shardproof
