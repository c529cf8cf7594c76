// fine_grained_param_gather: traces of an engine that gathers units module by module, and of one
// that gathers them whole, each asked for either.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_schedule.h"

namespace shardproof {
namespace {

CheckResult Judged(int32_t fine_grained, bool whole, int64_t prefetch = 0, int32_t rank = -1) {
  ScheduleFaults faults;
  faults.whole_units = whole;
  faults.rank = rank;
  const ScheduleRun made = RunSchedule(ScheduleCase(4, 2,
                                                    [&](InstanceSpec& spec) {
                                                      spec.fine_grained_gather = fine_grained;
                                                      spec.prefetch_limit_bytes = prefetch;
                                                    }),
                                       faults);
  return CheckKnobs(made.run);
}

TEST(FineGrained, EachDoesWhatItIsAskedFor) {
  for (const int32_t fine : {0, 1}) {
    const CheckResult result = Judged(fine, fine == 0);
    EXPECT_EQ(FoundIn(result), "") << fine;
    EXPECT_TRUE(result.judged.contains("KN-14")) << fine;
  }
}

// On one rank alone it is a deadlock: the communicators of dense parameters and of experts are
// issued in two orders.
TEST(FineGrained, TheOtherIsFound) {
  EXPECT_EQ(FoundIn(Judged(0, false)), "KN-14");
  EXPECT_EQ(FoundIn(Judged(1, true)), "KN-14");
  EXPECT_EQ(FoundIn(Judged(1, true, 0, 3)), "");
}

TEST(FineGrained, WhatMayBeGatheredAheadSaysNothing) {
  const CheckResult result = Judged(1, true, -1);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("KN-14"));
}

TEST(FineGrained, WithoutTheFlowOfBytesItIsNotJudged) {
  ScheduleRun made =
      RunSchedule(ScheduleCase(4, 2, [](InstanceSpec& spec) { spec.fine_grained_gather = 0; }));
  made.run.traces[2].provides.memory = false;
  EXPECT_TRUE(NotCheckableIn(CheckKnobs(made.run)).contains("KN-14"));
}

}  // namespace
}  // namespace shardproof
