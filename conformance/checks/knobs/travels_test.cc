// Knobs of gathers and reductions: a trace that heeds each, and one of an engine that read it and
// behaved as by default.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;

// The traces of an engine for the case, judged as if the case had asked for more: it was ignored.
MiniRun Ignored(MiniRun mini, const Edit& asked) {
  asked(mini.spec->instances[0]);
  Derive(*mini.spec);
  return mini;
}

void ExpectHeeded(const MiniRun& mini, const char* id) {
  const CheckResult result = CheckKnobs(mini.run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  EXPECT_TRUE(result.judged.contains(id)) << id;
}

void TwoInstances(InstanceSpec& spec) { spec.outer = 2; }
void ShardedOuter(InstanceSpec& spec) {
  spec.outer = 2;
  spec.outer_strategy = OuterStrategy::kOptim;
}

int32_t GroupNamed(const Trace& trace, const std::string& name) {
  for (size_t i = 0; i < trace.groups.size(); ++i) {
    if (trace.groups[i].name == name) return static_cast<int32_t>(i);
  }
  ADD_FAILURE() << "no group " << name;
  return -1;
}

TEST(Instances, ReducedWithinAndThenAcross) {
  ExpectHeeded(RunMini(MiniCase(4, TwoInstances)), "KN-01");
}

TEST(Instances, AFlatEngineIsFound) {
  const MiniRun mini = Ignored(RunMini(MiniCase(4)), TwoInstances);
  const CheckResult result = CheckKnobs(mini.run);
  EXPECT_EQ(FoundIn(result), "KN-01");
  EXPECT_EQ(result.findings.at(0).seen, "ranks [0,1,2,3]");
}

TEST(Instances, NoShardHasNoInstances) {
  const MiniRun mini = Ignored(RunMini(MiniCase(4)), [](InstanceSpec& spec) {
    spec.outer = 2;
    spec.strategy = ShardingStrategy::kNoShard;
  });
  EXPECT_FALSE(CheckKnobs(mini.run).judged.contains("KN-01"));
}

// The first gather of each step comes from the other instance.
MiniRun GathersAcross(int32_t from_call) {
  MiniRun mini = RunMini(MiniCase(4, ShardedOuter));
  for (Trace& trace : mini.run.traces) {
    const int32_t outer = GroupNamed(trace, "inter_dp_cp");
    int32_t done = from_call - 1;
    for (Event& event : trace.events) {
      const bool gather =
          event.kind == EventKind::kCollective && event.collective == SPF_ALL_GATHER;
      if (!gather || event.call <= done) continue;
      event.group = outer;
      done = event.call;
    }
  }
  return mini;
}

TEST(OuterStrategy, PartsComeFromOtherInstances) { ExpectHeeded(GathersAcross(1), "KN-02"); }

TEST(OuterStrategy, ReplicasAreFound) {
  EXPECT_EQ(FoundIn(CheckKnobs(RunMini(MiniCase(4, ShardedOuter)).run)), "KN-02");
  const MiniRun late = GathersAcross(4);  // destroy: never
  EXPECT_EQ(FoundIn(CheckKnobs(late.run)), "KN-02");
}

// More ranks than elements: what holds padding alone has nothing to fetch, but whoever has a
// partner that steps something has.
TEST(OuterStrategy, WhoHoldsPaddingAloneFetchesNothing) {
  for (const int32_t silent : {1, 4}) {  // ranks that publish no parameter
    MiniRun mini = RunMini(MiniCase(4, ShardedOuter));
    for (int32_t rank = 0; rank < silent; ++rank) {
      for (Event& event : At(mini.run.traces, rank).events) {
        if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM) event.count = 0;
      }
    }
    const CheckResult result = CheckKnobs(mini.run);
    EXPECT_EQ(result.judged.contains("KN-02"), silent < 4) << silent;
    EXPECT_EQ(FoundIn(result), silent < 4 ? "KN-02" : "") << silent;
  }
}

TEST(OuterStrategy, AcrossInstancesNothingIsGatheredWithoutIt) {
  MiniRun mini = GathersAcross(1);
  mini.spec->instances[0].outer_strategy = OuterStrategy::kNoShard;
  EXPECT_EQ(FoundIn(CheckKnobs(mini.run)), "KN-01");
}

void Averaging(InstanceSpec& spec) { spec.average_in_collective = true; }

MiniRun Averaged(int32_t leave_out_rank) {
  MiniRun mini = RunMini(MiniCase(2, Averaging));
  for (Trace& trace : mini.run.traces) {
    for (Event& event : trace.events) {
      if (event.collective == SPF_REDUCE_SCATTER && trace.rank != leave_out_rank)
        event.reduction = SPF_AVG;
    }
  }
  return mini;
}

TEST(Average, TheCollectiveAverages) { ExpectHeeded(Averaged(-1), "KN-03"); }

TEST(Average, SumsAreFound) {
  EXPECT_EQ(FoundIn(CheckKnobs(RunMini(MiniCase(2, Averaging)).run)), "KN-03");
  const MiniRun one = Averaged(1);
  const CheckResult result = CheckKnobs(one.run);
  EXPECT_EQ(FoundIn(result), "KN-03");
  EXPECT_EQ(result.findings.at(0).rank, 1);
}

LayerWiseRun Buckets(bool no_cut, const Edit& edit = {}) {
  LayerWiseFaults faults;
  faults.no_cut = no_cut;
  return RunLayerWise(LayerWiseCase(2,
                                    [&](InstanceSpec& spec) {
                                      spec.bucket_size = 300;
                                      if (edit) edit(spec);
                                    }),
                      faults);
}

TEST(BucketSize, CutBucketsAreWithinIt) {
  const auto made = Buckets(false);
  const CheckResult result = CheckKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("KN-04"));
}

TEST(BucketSize, OneBucketOfEverythingIsFound) {
  EXPECT_EQ(FoundIn(CheckKnobs(Buckets(true).run)), "KN-04");
}

TEST(BucketSize, AlignedBucketsMayTakeInMore) {
  const auto made =
      Buckets(true, [](InstanceSpec& spec) { spec.layer_wise.layout = LayerWiseLayout::kAligned; });
  EXPECT_FALSE(CheckKnobs(made.run).judged.contains("KN-04"));
}

void NoUnits(InstanceSpec& spec) { spec.units = ""; }

TEST(Units, WithoutThemParametersStayFromForwardToBackward) {
  ExpectHeeded(RunMini(MiniCase(2, NoUnits)), "KN-07");
}

TEST(Units, LayersThatAreUnitsAllTheSameAreFound) {
  const MiniRun mini = Ignored(RunMini(MiniCase(2)), NoUnits);
  EXPECT_EQ(FoundIn(CheckKnobs(mini.run)), "KN-07");
}

TEST(Knobs, WithoutThemNothingIsJudged) {
  const CheckResult result = CheckKnobs(RunMini(MiniCase(2)).run);
  EXPECT_TRUE(result.judged.empty() && result.findings.empty() && result.not_checkable.empty());
}

TEST(Knobs, WithoutEvidenceNothingIsJudged) {
  MiniRun mini = Averaged(-1);
  mini.run.traces[0].provides.memory = false;
  const CheckResult result = CheckKnobs(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), std::set<std::string>{"KN-03"});
}

}  // namespace
}  // namespace shardproof
