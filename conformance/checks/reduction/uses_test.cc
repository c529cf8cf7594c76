// What becomes of the uses of a parameter that a reduction lacks.
#include "conformance/checks/reduction/uses.h"

#include <gtest/gtest.h>

#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

const UsesOf::Where kWhere = {{0, 1, 7}, 0};

UsesOf Computed(int64_t first, int64_t second) {
  UsesOf uses;
  uses.Computed(kWhere, 3, first);
  uses.Computed(kWhere, 5, second);
  return uses;
}

TEST(Uses, OneThatWasComputedBeforeIsLost) {
  EXPECT_EQ(Computed(10, 20).Missing(kWhere, {3, 5}, {5}, 30), UsesOf::Fate::kLost);
}

TEST(Uses, OneThatIsComputedAfterwardsIsStillToCome) {
  UsesOf uses = Computed(10, 40);
  uses.Reduced(kWhere, {3});
  EXPECT_EQ(uses.Missing(kWhere, {3, 5}, {3}, 30), UsesOf::Fate::kLater);
  EXPECT_EQ(UsesOf().Missing(kWhere, {3, 5}, {3}, 30), UsesOf::Fate::kLater);
}

TEST(Uses, OneThatAnotherReductionCarriesIsReducedApart) {
  UsesOf uses = Computed(10, 40);
  uses.Reduced(kWhere, {3});
  uses.Reduced(kWhere, {5});
  EXPECT_EQ(uses.Missing(kWhere, {3, 5}, {3}, 30), UsesOf::Fate::kApart);
  uses = Computed(10, 40);
  uses.Reduced(kWhere, {3});
  uses.Reduced(kWhere, {3, 5});  // the sum goes again, as it is then
  EXPECT_EQ(uses.Missing(kWhere, {3, 5}, {3}, 30), UsesOf::Fate::kLater);
}

void Tied(InstanceSpec& spec) { spec.model.tied = true; }

// The second use of the tied weight overwrites what the first one added.
TEST(Uses, AUseThatOverwritesAnotherIsNamed) {
  MiniRun mini = RunMini(MiniCase(2, Tied));
  const InstanceFacts facts(mini.spec->instances[0], 2);
  for (Trace& trace : mini.run.traces) {
    std::set<std::pair<int32_t, int32_t>> seen;  // call, key
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event event = trace.events[i];
      if (event.kind != EventKind::kCompute || event.phase != SPF_BWD) continue;
      const spf_uses& uses = facts.Node(event.id, trace.rank).uses[event.phase];
      for (int32_t k = 0; k < uses.n; ++k) {
        if (uses.use[k].table != SPF_IN_GRAD) continue;
        if (seen.insert({event.call, facts.Param(trace.rank, uses.use[k].id).key}).second) continue;
        Range whole = trace.ranges[event.ranges.begin + size_t(k)];
        whole.access = kWrite;
        Event fill;
        fill.kind = EventKind::kLaunch;
        fill.id = SPF_K_FILL;
        fill.stream = event.stream;
        fill.call = event.call;
        fill.ranges.begin = static_cast<uint32_t>(trace.ranges.size());
        trace.ranges.push_back(whole);
        fill.ranges.end = static_cast<uint32_t>(trace.ranges.size());
        trace.events.insert(trace.events.begin() + static_cast<int64_t>(i++), fill);
      }
    }
  }
  EXPECT_EQ(FoundIn(CheckReductionOps(RunMini(MiniCase(2, Tied)).run)), "");
  const CheckResult result = CheckReductionOps(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-12");
  EXPECT_NE(result.findings[0].message.find("without all of its uses"), std::string::npos)
      << result.findings[0].message;
}

}  // namespace
}  // namespace shardproof
