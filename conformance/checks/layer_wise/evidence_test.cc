// Which rows are judged: those for which something was seen; the others say why not.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/layer_wise/mini_checked.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

TEST(LayerWiseEvidence, EachRowThatItJudgesIsJudgedBySomeGoodRun) {
  std::set<std::string> judged;
  for (const Edit& edit : {kOverlap, kIntoGrads + kOverlap, kAligned + kOverlap}) {
    const CheckResult result = Checked(edit);
    judged.insert(result.judged.begin(), result.judged.end());
  }
  for (const char* id :
       {"LW-01", "LW-02", "LW-03", "LW-04", "LW-05", "LW-06", "LW-07", "LW-08", "LW-10",
        "LW-11", "LW-12", "LW-13", "LW-14", "LW-16", "LW-17", "LW-18", "LW-19", "LW-21",
        "LW-22", "LW-23", "LW-24", "LW-25", "LW-28", "LW-32", "LW-34", "LW-35", "LW-38"}) {
    EXPECT_TRUE(judged.contains(id)) << id;
  }
}

TEST(LayerWiseEvidence, OneBucketHasNothingToHideUnder) {
  const CheckResult result = Checked(kOverlap + kOneBucket);
  EXPECT_FALSE(result.judged.contains("LW-38"));
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].requirement, "LW-38");
}

bool Open(const CheckResult& result, const std::string& id) {
  return std::any_of(
      result.not_checkable.begin(), result.not_checkable.end(),
      [&](const NotCheckable& open) { return open.requirement == id && !open.why.empty(); });
}

void ExpectOpen(const CheckResult& result, const std::vector<const char*>& ids) {
  EXPECT_EQ(FoundIn(result), "") << First(result);
  for (const char* id : ids) {
    EXPECT_FALSE(result.judged.contains(id)) << id;
    EXPECT_TRUE(Open(result, id)) << id;
  }
}

TEST(LayerWiseEvidence, RowsWithoutEvidenceAreNotJudged) {
  const CheckResult alone = Checked(kOverlap, {}, 1);  // nobody to gather from: nothing is missing
  for (const char* id : {"LW-11", "LW-12", "LW-18", "LW-25", "LW-38"}) {
    EXPECT_FALSE(alone.judged.contains(id)) << id;
    EXPECT_FALSE(Open(alone, id)) << id;
  }
  const Edit evaluation = [](InstanceSpec& spec) { spec.script = "ee"; };
  ExpectOpen(Checked(evaluation), {"LW-04", "LW-18", "LW-25", "LW-32", "LW-34"});
  const Edit loaded = [](InstanceSpec& spec) { spec.script = "sle"; };
  ExpectOpen(Checked(loaded, FAULT(install_unnamed)), {"LW-11", "LW-35", "LW-04", "LW-34"});
  ExpectOpen(Checked(kIntoGrads, FAULT(clear_unnamed)), {"LW-22"});
}

// With overlapped gathers the next train step installs; an evaluation's gathers are not judged as
// one's.
TEST(LayerWiseEvidence, OneStepBeforeAnEvaluationInstallsNothingInAStep) {
  const Edit once = [](InstanceSpec& spec) { spec.script = "te"; };
  const CheckResult result = Checked(kOverlap + once);
  EXPECT_EQ(FoundIn(result), "") << First(result);
  for (const NotCheckable& open : result.not_checkable)
    EXPECT_EQ(open.kind, NotCheckable::Kind::kNotAsked) << open.requirement << ": " << open.why;
}

TEST(LayerWiseEvidence, EvaluationsThatGatherHideNothing) {
  const Edit between = [](InstanceSpec& spec) { spec.script = "tetet"; };
  ExpectOpen(Checked(kOverlap + between, FAULT(sync_eval)), {"LW-38"});
}

TEST(LayerWiseEvidence, WithoutMemoryNothingIsJudged) {
  LayerWiseRun made = RunLayerWise(LayerWiseCase(2));
  made.run.traces[1].provides.memory = false;
  const CheckResult result = CheckLayerWise(made.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

TEST(LayerWiseEvidence, WithoutResultsOwnersAreNotKnown) {
  LayerWiseRun made = RunLayerWise(LayerWiseCase(2));
  for (Trace& trace : made.run.traces) {
    trace.provides.results = false;
    std::erase_if(trace.events,
                  [](const Event& event) { return event.kind == EventKind::kPublish; });
  }
  const CheckResult result = CheckLayerWise(made.run);
  EXPECT_EQ(FoundIn(result), "") << First(result);
  for (const char* id : {"LW-01", "LW-10", "LW-11", "LW-13", "LW-18", "LW-35"}) {
    EXPECT_FALSE(result.judged.contains(id)) << id;
  }
  EXPECT_TRUE(result.judged.contains("LW-14"));
}

TEST(LayerWiseEvidence, WithoutSynchronisationNothingIsInFlight) {
  LayerWiseRun made = RunLayerWise(LayerWiseCase(2, kOverlap));
  made.run.traces[0].provides.sync = false;
  const CheckResult result = CheckLayerWise(made.run);
  for (const char* id : {"LW-17", "LW-24", "LW-38"}) EXPECT_FALSE(result.judged.contains(id)) << id;
}

// An engine of one stream, whose modules all go unused in forward: what installs a bucket comes
// after its gather. looks: behind each gather a kernel reads what came.
std::string FoundOnOneStream(const Edit& edit, const std::function<void(LayerWiseFaults&)>& fault,
                             bool looks = false) {
  LayerWiseFaults faults;
  fault(faults);
  LayerWiseRun made = RunLayerWise(LayerWiseCase(2, edit), faults);
  for (Trace& trace : made.run.traces) {
    std::vector<Event> events;
    for (Event event : trace.events) {
      event.stream = std::min(event.stream, 0);
      if (event.kind == EventKind::kCompute && event.phase == SPF_FWD) continue;
      events.push_back(event);
      if (!looks || event.kind != EventKind::kCollective || event.ranges.empty()) continue;
      Event look = event;
      look.kind = EventKind::kLaunch;
      look.id = SPF_K_COUNT_NONFINITE;
      look.ranges.begin = static_cast<uint32_t>(trace.ranges.size());
      trace.ranges.push_back(trace.ranges[event.ranges.end - 1]);
      trace.ranges.back().access = kRead;
      look.ranges.end = look.ranges.begin + 1;
      events.push_back(look);
    }
    trace.events = std::move(events);
  }
  return FoundIn(CheckLayerWise(made.run));
}

TEST(LayerWiseEvidence, WhatIsInstalledOnTheStreamOfItsGatherIsNoLongerUnderWay) {
  const auto good = [](LayerWiseFaults&) {};
  for (const Edit& edit : {kOverlap, kOverlap + kAligned, kOverlap + kBroadcast}) {
    const std::string found = FoundOnOneStream(edit, good);
    EXPECT_EQ(found.find("LW-24"), std::string::npos) << found;
  }
  for (const bool looks : {false, true}) {
    const std::string found = FoundOnOneStream(kOverlap, FAULT(all_ahead), looks);
    EXPECT_NE(found.find("LW-24"), std::string::npos) << found;
  }
}

// AdamW of single operations: moments go into the weights, in two launches for each parameter.
// kept: so many launches of the kernel stay.
std::string FoundInParts(int kept) {
  LayerWiseRun made = RunLayerWise(
      LayerWiseCase(2, [](InstanceSpec& spec) { spec.optimizer = Optimizer::kAdamw; }));
  for (Trace& trace : made.run.traces) {
    std::vector<Event> events;
    int seen = 0;
    for (Event event : trace.events) {
      if (event.kind == EventKind::kLaunch && event.id == SPF_K_ADAMW && seen++ >= kept) {
        event.id = SPF_K_AXPBY;
        Range* ranges = &trace.ranges[event.ranges.begin];
        std::swap(ranges[0], ranges[1]);  // a moment, and the weights
        ranges[0].access = kRead;
        event.ranges.end = event.ranges.begin + 2;
        events.push_back(event);
      }
      events.push_back(event);
    }
    trace.events = std::move(events);
  }
  return FoundIn(CheckLayerWise(made.run));
}

TEST(LayerWiseEvidence, AdamwMayBeMadeOfSingleOperations) { EXPECT_EQ(FoundInParts(0), ""); }

TEST(LayerWiseEvidence, WhereItIsOneKernelOtherOperationsAreNot) {
  EXPECT_EQ(FoundInParts(1), "LW-34");
}

}  // namespace
}  // namespace shardproof
