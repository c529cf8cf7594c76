#include "conformance/checks/numerics/rank_publishes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

bool IsParam(const Event& event) {
  return event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM;
}

void Drop(Run& run, int rank, const std::function<bool(const Event&)>& match) {
  std::vector<Event>& events = At(run.traces, rank).events;
  events.erase(std::find_if(events.begin(), events.end(), match));
}

TEST(RankPublishes, AnElementThatNobodyPublishes) {
  MiniRun mini = RunMini(MiniCase(2));
  Drop(mini.run, 1, [](const Event& e) { return IsParam(e) && e.call == 1; });
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "FS-28");
}

// Each replica publishes all: one leaves its last step out, which the others cover up.
TEST(RankPublishes, AReplicaThatPublishesNothingInOneStep) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  Drop(mini.run, 2, [](const Event& e) { return IsParam(e) && e.call == 2; });
  const CheckResult result = CheckPublished(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-28");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].rank, 2);
}

// Each replica publishes one half after one step and the other half after the next one: as many,
// and of neither half is shown that each step updates it.
TEST(RankPublishes, AReplicaThatPublishesHalvesInTurns) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  for (Event& event : At(mini.run.traces, 2).events) {
    if (!IsParam(event) || event.call < 1) continue;
    const int64_t half = event.count / 2;
    ASSERT_EQ(event.count, 2 * half);
    if (event.call % 2 == 0) {
      event.offset += half;
      if (event.values >= 0) event.values += half;
    }
    event.count = half;
  }
  const CheckResult result = CheckPublished(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-28");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].rank, 2);
}

// Nothing forbids to publish an element again.
TEST(RankPublishes, WhatIsPublishedTwiceAfterOneStepIsNotAskedTwiceOfOthers) {
  MiniRun mini = RunMini(MiniCase(2));
  std::vector<Event>& events = At(mini.run.traces, 0).events;
  const auto last =
      std::find_if(events.rbegin(), events.rend(), [](const Event& e) { return IsParam(e); });
  ASSERT_NE(last, events.rend());
  events.insert(last.base(), *last);
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "");
}

// Each parameter element by element, the last one first, and one element missing in one step.
TEST(RankPublishes, ElementsOneByOne) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  std::vector<Event> events;
  for (const Event& event : At(mini.run.traces, 2).events) {
    if (!IsParam(event)) {
      events.push_back(event);
      continue;
    }
    for (int64_t i = event.count - 1; i >= 0; --i) {
      events.push_back(event);
      events.back().offset += i;
      events.back().values += i;
      events.back().count = 1;
    }
  }
  At(mini.run.traces, 2).events = events;
  EXPECT_EQ(FoundIn(CheckPublished(mini.run)), "");

  Drop(mini.run, 2, [](const Event& e) { return IsParam(e) && e.call == 2 && e.offset == 1; });
  const CheckResult result = CheckPublished(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-28");
  EXPECT_NE(result.findings[0].expected.find("elements [1, 2) of"), std::string::npos)
      << result.findings[0].expected;
}

}  // namespace
}  // namespace shardproof
