// liveness_test: do the 1F1B step of sharded experts and layer-wise steps end under every
// timing, with the same bits?
//
// Gathers, reductions and all-to-alls are under way at once in the first. Three machines: gathers
// on communicators of their own, gathers and reductions on one, and all streams of a rank in one
// hardware queue. ci/liveness tries more.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/lab/fault_lab.h"
#include "conformance/runner/timings.h"

namespace shardproof {
namespace {

constexpr int kTimings = 30;

struct Machine {
  const char* name;
  const char* id;
  int queues;
};
constexpr Machine kMachines[] = {
    {"Twin", "w4.zero3.twin.ep2.k3.moe4.do=tt.1f1b.dw", 0},
    {"OneCommunicator", "w4.zero3.ep2.k3.moe4.do=tt.1f1b.dw", 0},
    {"OneQueue", "w4.zero3.twin.ep2.k3.moe4.do=tt.1f1b.dw", 1},
    {"LayerWise", "w4.lw.ep2.ogr.opg.bs1000.adamw.do=tt.moe4.bcast", 0},
    {"LayerWiseOneQueue", "w4.lw.twin.ep2.ogr.opg.bs1000.adamw.do=tt.moe4", 1},
};

SimRunOptions OptionsFor(const Machine& machine) {
  SimRunOptions options;
  options.policy = TimingPolicy::kPct;
  options.queues = machine.queues;
  options.rank.folder = testing::TempDir() + "liveness" + machine.name;
  return options;
}

class Liveness : public testing::TestWithParam<Machine> {};

TEST_P(Liveness, EveryTimingEndsWithTheSameBits) {
  const Plugin plugin("builtin:reference");
  const Case c = ParseId(GetParam().id);
  ASSERT_EQ(c.illegal, "");
  const SimRunOptions options = OptionsFor(GetParam());
  Verdict verdict = JudgeOnSim(c, RunHere(plugin), options);
  ASSERT_EQ(verdict.outcome, Outcome::kPass)
      << (verdict.result.findings.empty() ? verdict.reason : verdict.result.findings[0].message);
  const Verdict others = CompareTimings(c, RunHere(plugin), options, {2, kTimings - 1}, false);
  EXPECT_EQ(others.outcome, Outcome::kPass)
      << (others.result.findings.empty() ? others.reason : others.result.findings[0].message);
  const std::set<uint64_t> different(others.timings.begin(), others.timings.end());
  std::cout << GetParam().id << ", queues " << GetParam().queues << ": " << different.size()
            << " different timings of " << others.timings.size() << "\n";
  EXPECT_EQ(others.timings.size(), size_t{kTimings - 1});
  EXPECT_GT(different.size(), size_t{kTimings / 2});
}

INSTANTIATE_TEST_SUITE_P(Machines, Liveness, testing::ValuesIn(kMachines),
                         [](const auto& machine) { return std::string(machine.param.name); });

// The comparison must be able to fail: without the wait of the experts for the tokens some timings
// read what is not there yet.
TEST(LivenessTest, ALostWaitIsSeen) {
  const Plugin plugin("builtin:reference");
  const Machine& machine = kMachines[1];
  const FaultLab lab(machine.id, plugin, testing::TempDir() + "livenessFault");
  const auto lost = lab.Find(0, "event_wait", AllOf({InStep(0), Edge("compute", "a2a")}), 0,
                             Fault::Action::kDrop, 0);
  ASSERT_TRUE(lost.has_value());
  SimRunOptions options = OptionsFor(machine);
  options.policy = TimingPolicy::kEager;
  options.rank.fault = lost;
  const Verdict verdict = CompareTimings(lab.spec(), RunHere(plugin), options, {2, 40}, true);
  EXPECT_EQ(verdict.outcome, Outcome::kFail) << FaultText(*lost);
}

}  // namespace
}  // namespace shardproof
