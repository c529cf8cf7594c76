// What is said of rows that a run cannot show: a trace lacks something, a run ends early, a family
// is silent.
#include <gtest/gtest.h>

#include "conformance/checks/schedule/asked.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

void EvalThree(InstanceSpec& spec) {
  spec.model.layers = spec.microbatches = 3;
  spec.script = "tet";
}

TEST(Gaps, TracesThatLackSomethingShowNothing) {
  for (bool Provides::*const lacks :
       {&Provides::work, &Provides::calls, &Provides::collectives, &Provides::memory}) {
    ScheduleRun made = RunSchedule(ScheduleCase(4, 2, EvalThree));
    made.run.traces[1].provides.*lacks = false;
    const Analysis a(made.run);
    const CheckResult result = CheckSchedule(a);
    EXPECT_TRUE(result.judged.empty());
    EXPECT_EQ(NotCheckableIn(result), schedule::RowsAskedFor(a.Facts(0), 4));
    ASSERT_FALSE(result.not_checkable.empty());
    EXPECT_NE(result.not_checkable[0].why.find("rank 1's trace lacks work"), std::string::npos);
  }
}
TEST(Gaps, TracesOfTooFewRanksShowNothing) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2, EvalThree));
  made.run.traces.pop_back();
  const Analysis a(made.run);
  EXPECT_EQ(NotCheckableIn(CheckSchedule(a)),
            schedule::RowsAskedFor(InstanceFacts(made.spec->instances[0], 4), 4));
}
TEST(Gaps, WithoutSynchronisationNothingIsOrdered) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2, EvalThree));
  for (Trace& trace : made.run.traces) trace.provides.sync = false;
  const Analysis a(made.run);
  const CheckResult result = CheckSchedule(a);
  const std::set<std::string> rows = {"EP-06", "EP-07", "EP-10", "EP-12",
                                      "EP-19", "EP-24", "EP-33"};
  EXPECT_EQ(NotCheckableIn(result), rows);
  for (const std::string& row : rows) EXPECT_FALSE(result.judged.contains(row)) << row;
  EXPECT_TRUE(result.judged.contains("EP-08"));
}
TEST(Gaps, WithoutSynchronisationWhatIsFoundIsFound) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2), {.keep_activations = true});
  for (Trace& trace : made.run.traces) trace.provides.sync = false;
  const Analysis a(made.run);
  const CheckResult result = CheckSchedule(a);
  EXPECT_NE(FoundIn(result).find("EP-07"), std::string::npos);
  EXPECT_TRUE(result.judged.contains("EP-07"));
}
TEST(Gaps, WithoutAStepThatEnds) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2));
  for (Trace& trace : made.run.traces) {
    for (Event& event : trace.events) {
      if (event.kind == EventKind::kCallEnd) event.status = SPF_FAILED;
    }
  }
  const Analysis a(made.run);
  const CheckResult result = CheckSchedule(a);
  EXPECT_FALSE(result.judged.contains("EP-02"));
  EXPECT_TRUE(NotCheckableIn(result).contains("EP-02"));
}

TEST(Gaps, CitesWhatOtherFamiliesCouldNotJudge) {
  ScheduleRun made = RunSchedule(ScheduleCase(4, 2));
  CheckResult result;
  result.not_checkable.push_back({"FS-24", "no results"});
  result.judged.insert("GE-01");
  {
    const Analysis a(made.run);
    const CheckResult cited = CiteForSchedule(a, result);
    EXPECT_EQ(cited.judged, std::set<std::string>{"EP-35"});
    ASSERT_EQ(NotCheckableIn(cited), std::set<std::string>{"EP-30"});
    EXPECT_EQ(cited.not_checkable[0].why, "FS-24: no results");
  }
  made.run.traces[0].provides.work = false;
  const Analysis a(made.run);
  const std::set<std::string> rows = {"EP-21", "EP-22", "EP-23", "EP-30", "EP-34", "EP-37"};
  EXPECT_EQ(NotCheckableIn(CiteForSchedule(a, result)), rows);
}

}  // namespace
}  // namespace shardproof
