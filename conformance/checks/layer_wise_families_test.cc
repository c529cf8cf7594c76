// What other families say of layer-wise engines: memory at rest, gathers and reductions a step,
// overlap.
#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;

LayerWiseRun Made(const Edit& edit = {}, const LayerWiseFaults& faults = {}, int32_t world = 4) {
  return RunLayerWise(LayerWiseCase(world, edit), faults);
}
void Overlap(InstanceSpec& spec) { spec.overlap_param_gather = spec.overlap_grad_reduce = true; }
void Aligned(InstanceSpec& spec) { spec.layer_wise.layout = LayerWiseLayout::kAligned; }

TEST(LayerWiseFamilies, GoodRunsPassThem) {
  const auto into_grads = [](InstanceSpec& spec) {
    Overlap(spec);
    spec.layer_wise.buffer = LayerWiseBuffer::kGrads;
  };
  const auto experts = [](InstanceSpec& spec) {
    Overlap(spec);
    spec.ep = 2;
    spec.model.experts = true;
  };
  for (const Edit& edit : {Edit(), Edit(Overlap), Edit(Aligned), Edit(into_grads), Edit(experts)}) {
    const LayerWiseRun made = Made(edit);
    CheckResult result = CheckLifetime(made.run);
    result.Merge(CheckOrder(made.run));
    result.Merge(CheckReduction(made.run));
    EXPECT_EQ(FoundIn(result), "") << Id(*made.spec) << ": " << result.findings[0].message;
    for (const char* id : {"FS-31", "FS-35", "FS-37"})
      EXPECT_TRUE(result.judged.contains(id)) << id;
  }
}

TEST(LayerWiseFamilies, UnitsMeanNothing) {
  const LayerWiseRun made = Made();
  EXPECT_TRUE(InstanceFacts(made.spec->instances[0], 4).units(0).empty());
}

TEST(LayerWiseFamilies, StateOfWhatOthersOwnIsTooMuchMemory) {
  LayerWiseFaults faults;
  faults.step_all = true;
  EXPECT_EQ(FoundIn(CheckLifetime(Made({}, faults).run)), "FS-31");
}

TEST(LayerWiseFamilies, StateOfWhatOthersOwnIsTooMuchMemoryWithAlignedShards) {
  LayerWiseFaults faults;
  faults.step_all = true;
  EXPECT_EQ(FoundIn(CheckLifetime(Made(Aligned, faults).run)), "FS-31");
}

// Muon keeps one average of a matrix, AdamW two.
TEST(LayerWiseFamilies, TwoAveragesOfAMatrixAreTooManyForMuon) {
  const auto muon = [](InstanceSpec& spec) { spec.optimizer = Optimizer::kMuon; };
  EXPECT_EQ(FoundIn(CheckLifetime(Made(muon, {}, 1).run)), "FS-31");
}

TEST(LayerWiseFamilies, WithoutResultsMemoryIsNotJudged) {
  LayerWiseRun made = Made();
  for (Trace& trace : made.run.traces) trace.provides.results = false;
  const CheckResult result = CheckLifetime(made.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("FS-31"));
}

TEST(LayerWiseFamilies, AGatherInEachMicrobatchIsTooOften) {
  LayerWiseFaults faults;
  faults.each_microbatch = true;
  EXPECT_EQ(FoundIn(CheckOrder(Made(Overlap, faults).run)), "FS-35");
}

TEST(LayerWiseFamilies, GathersThatNothingRunsBeside) {
  LayerWiseFaults faults;
  const LayerWiseRun good = Made(Overlap);
  const CheckResult hidden = CheckOverlap(*good.spec, good.run.traces);
  EXPECT_EQ(FoundIn(hidden), "");
  EXPECT_TRUE(hidden.judged.contains("GE-12"));
  faults.wait_at_once = true;
  const LayerWiseRun bad = Made(Overlap, faults);
  EXPECT_EQ(FoundIn(CheckOverlap(*bad.spec, bad.run.traces)), "GE-12");
}

// Modules that read the buckets go unused in the first microbatch, but for those of one.
TEST(LayerWiseFamilies, GathersOfWhichModulesReadOneHaveNothingToRunBeside) {
  LayerWiseFaults faults;
  faults.wait_at_once = true;
  LayerWiseRun made = Made(Overlap, faults);
  const Analysis all(made.run);
  const std::vector<BroughtByEvent> brought = WhatIsBrought(all);
  EXPECT_EQ(FoundIn(CheckOverlap(*made.spec, graph::Lowered(made.run.traces), brought)), "GE-12");
  for (Trace& trace : made.run.traces) {
    const auto last = std::find_if(trace.events.rbegin(), trace.events.rend(), [](const Event& e) {
      return e.kind == EventKind::kCompute && e.phase == SPF_FWD;
    });
    const int32_t kept = last->id;
    std::erase_if(trace.events, [&](const Event& e) {
      return e.kind == EventKind::kCompute && e.phase == SPF_FWD && e.id != kept &&
             e.microbatch == 0;
    });
  }
  const Analysis few(made.run);
  const CheckResult result =
      CheckOverlap(*made.spec, graph::Lowered(made.run.traces), WhatIsBrought(few));
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.judged.contains("GE-12"));
}

// The reductions of aligned shards all come after backward, although the case asks for overlap.
CheckResult LateReductions(int64_t bucket_size) {
  LayerWiseRun made = Made([&](InstanceSpec& spec) {
    Aligned(spec);
    spec.bucket_size = bucket_size;
  });
  made.spec->instances[0].overlap_grad_reduce = true;
  return CheckOverlap(*made.spec, made.run.traces);
}

TEST(LayerWiseFamilies, ReductionsOfAlignedShardsThatNothingRunsBeside) {
  const LayerWiseRun good = Made([](InstanceSpec& spec) { Overlap(spec), Aligned(spec); });
  const CheckResult hidden = CheckOverlap(*good.spec, good.run.traces);
  EXPECT_EQ(FoundIn(hidden), "");
  EXPECT_TRUE(hidden.judged.contains("GE-13"));
  EXPECT_EQ(FoundIn(LateReductions(600)), "GE-13");
}

TEST(LayerWiseFamilies, OneAlignedBucketHasNothingToHideUnder) {
  const CheckResult result = LateReductions(0);
  EXPECT_FALSE(result.judged.contains("GE-13"));
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].requirement, "GE-13");
}

TEST(LayerWiseFamilies, WithoutTheKnobGathersNeedNotHide) {
  const LayerWiseRun made = Made();
  EXPECT_FALSE(CheckOverlap(*made.spec, made.run.traces).judged.contains("GE-12"));
}

// The last event of rank 0's call.
int64_t LastOf(const Run& run, int32_t call) {
  const auto& events = run.traces[0].events;
  for (size_t i = events.size(); i-- > 0;) {
    if (events[i].call == call) return static_cast<int64_t>(i);
  }
  return -1;
}

TEST(LayerWiseFamilies, WrongStepsAfterALoadAreTheLoads) {
  const LayerWiseRun made = Made([](InstanceSpec& spec) { spec.script = "tslt"; });
  const auto cited = [&](std::initializer_list<int32_t> calls) {
    CheckResult others;
    for (const int32_t call : calls) {
      Finding& finding = others.findings.emplace_back();
      finding.requirement = "FS-24";
      finding.rank = 0;
      finding.event = LastOf(made.run, call);
    }
    others.judged = {"FS-24"};
    std::string found;
    for (const Finding& finding : CiteForLayerWise(Analysis(made.run), others).findings) {
      if (finding.requirement == "LW-36") found += finding.requirement;
    }
    return found;
  };
  EXPECT_EQ(cited({4}), "LW-36");
  EXPECT_EQ(cited({1}), "");
  EXPECT_EQ(cited({1, 4}), "") << "steps are wrong without a load too";
}

}  // namespace
}  // namespace shardproof
