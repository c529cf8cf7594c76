// The reference on the simulated machine: random experts, routings, mixes of layers, microbatches
// and schedules.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "property_tests/generators.h"
#include "property_tests/property.h"
#include "property_tests/sim_judge.h"

namespace shardproof {
namespace {

// The data decides which token goes to which expert, so its seed is drawn too; it does not shrink.
struct Drawn {
  Case spec;
  TimingPolicy policy = TimingPolicy::kEager;
  uint64_t seed = 1;
};

Drawn Draw(const std::shared_ptr<const ScheduleSpace>& space) {
  Drawn drawn;
  const GeneratedCase generated = *GenCase(space);
  drawn.spec = space->Make(generated.row, *rc::gen::noShrink(rc::gen::inRange<uint64_t>(1, 1000)));
  drawn.policy =
      *rc::gen::element(TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kLazyCompute,
                        TimingPolicy::kRandom, TimingPolicy::kPct);
  drawn.seed = *rc::gen::inRange<uint64_t>(1, 1000);
  return drawn;
}

TEST(ExpertsPropertyTest, LegalCasesConformUnderAnyTiming) {
  SimJudge judge;
  const auto space = std::make_shared<const ScheduleSpace>(std::vector<int32_t>{2, 4, 8});
  PropertyOptions options;
  options.evaluations = 12;
  EXPECT_TRUE(CheckProperty(
      "experts conform under any timing",
      [&] {
        const Drawn drawn = Draw(space);
        const std::string complaint = judge.Complaint(drawn.spec, drawn.policy, drawn.seed);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
}

// The overlapped schedule alone, with unequal shares for the ranks: what is hidden must not depend
// on who gets what.
TEST(ExpertsPropertyTest, OverlapConformsForAnyRouting) {
  SimJudge judge;
  const auto space = std::make_shared<const ScheduleSpace>(std::vector<int32_t>{2, 4, 8});
  PropertyOptions options;
  options.evaluations = 6;
  EXPECT_TRUE(CheckProperty(
      "overlapped exchanges conform for any routing",
      [&] {
        const Drawn drawn = Draw(space);
        const InstanceSpec& spec = drawn.spec.instances.front();
        RC_PRE(spec.overlap_moe && spec.microbatches > 1 && !spec.model.moe.skew.empty());
        const std::string complaint = judge.Complaint(drawn.spec, drawn.policy, drawn.seed);
        if (!complaint.empty()) RC_FAIL(complaint);
      },
      options));
}

}  // namespace
}  // namespace shardproof
