#include "conformance/checks/reduction/reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

std::string Found(const MiniFaults& faults, const std::function<void(InstanceSpec&)>& edit = {},
                  int32_t world = 2) {
  return FoundIn(CheckReduction(RunMini(MiniCase(world, edit), faults).run));
}
void TwoMicrobatches(InstanceSpec& spec) { spec.microbatches = 2; }
void Hybrid(InstanceSpec& spec) {
  spec.outer = 2;
  spec.microbatches = 2;
}

TEST(Reduction, AGoodRunHasNoFinding) {
  const CheckResult result = CheckReduction(RunMini(MiniCase(4, TwoMicrobatches)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  for (const char* id : {"FS-05", "FS-21", "FS-22", "FS-27", "FS-36", "FS-37"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

TEST(Reduction, AGoodHybridRunHasNoFinding) {
  const CheckResult result = CheckReduction(RunMini(MiniCase(4, Hybrid)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
  EXPECT_TRUE(result.judged.contains("FS-19"));
  EXPECT_TRUE(result.judged.contains("FS-42"));
}

TEST(Reduction, AGoodRunWithTiedWeightsHasNoFinding) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.model.tied = true; }));
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-12"));
}

TEST(Reduction, AGoodRunWithParametersUnusedOnSomeRanksHasNoFinding) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.model.unused = "rank"; }));
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-11"));
}

TEST(Reduction, AGoodRunWithFrozenParametersHasNoFinding) {
  EXPECT_EQ(Found({}, [](InstanceSpec& spec) { spec.model.frozen = "layer"; }), "");
}

void Frozen(InstanceSpec& spec) { spec.model.frozen = "layer"; }

TEST(Reduction, ZerosOfFrozenParametersAreReduced) {
  MiniFaults faults;
  faults.reduce_frozen = true;
  EXPECT_EQ(Found({}, Frozen), "");
  EXPECT_EQ(Found(faults, Frozen), "FS-10");
  EXPECT_TRUE(CheckReduction(RunMini(MiniCase(2, Frozen)).run).judged.contains("FS-10"));
  EXPECT_FALSE(CheckReduction(RunMini(MiniCase(2)).run).judged.contains("FS-10"));
}

// Where a member's shard of a bucket is padding alone, its outer reduction carries no gradient.
TEST(Reduction, AShardOfPaddingIsNoFrozenParameter) {
  const auto hybrid = [](InstanceSpec& spec) {
    Hybrid(spec);
    Frozen(spec);
  };
  MiniFaults faults;
  faults.padded_shards = true;
  EXPECT_EQ(Found(faults, hybrid, 4), "");
  faults.reduce_frozen = true;
  EXPECT_EQ(Found(faults, hybrid, 4), "FS-10");
}

TEST(Reduction, AParameterThatNoRankUsesIsLeftOut) {
  for (const int microbatches : {1, 2}) {
    const auto unused = [&](InstanceSpec& spec) {
      spec.model.unused = "step";
      spec.microbatches = microbatches;
    };
    MiniFaults faults;
    faults.skip_unused = true;
    EXPECT_EQ(Found({}, unused), "");
    EXPECT_EQ(Found(faults, unused), "FS-11");
  }
}

// Blocks that a rank sends to a reduction although nothing was computed into them.
std::set<int32_t> SentUncomputed(const Trace& trace) {
  std::set<int32_t> sent, computed;
  for (const Event& event : trace.events) {
    for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
      const Range& range = trace.ranges[k];
      if (event.kind == EventKind::kCompute && range.access == (kRead | kWrite))
        computed.insert(range.alloc);
      if (event.collective == SPF_REDUCE_SCATTER && (range.access & kRead) != 0)
        sent.insert(range.alloc);
    }
  }
  std::erase_if(sent, [&](int32_t block) { return computed.contains(block); });
  return sent;
}

TEST(Reduction, ARankThatDoesNotUseAParameterSendsWhatIsThere) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.model.unused = "rank"; }));
  EXPECT_EQ(FoundIn(CheckReduction(mini.run)), "");
  for (Trace& trace : mini.run.traces) {
    const std::set<int32_t> blocks = SentUncomputed(trace);
    std::erase_if(trace.events, [&](const Event& event) {
      return event.kind == EventKind::kLaunch && event.id == SPF_K_FILL &&
             blocks.contains(trace.ranges[event.ranges.begin].alloc);
    });
  }
  const std::string found = FoundIn(CheckReduction(mini.run));
  EXPECT_NE(found.find("FS-11"), std::string::npos) << found;
}

TEST(Reduction, AUseOfATiedParameterThatIsNotAdded) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.model.tied = true; }));
  // The first backward operation that adds to a gradient is that of the head, which is tied.
  for (Trace& trace : mini.run.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || event.phase != SPF_BWD) continue;
      const auto first = trace.ranges.begin() + event.ranges.begin;
      const auto last = trace.ranges.begin() + event.ranges.end;
      const auto update = std::find_if(first, last, [](const Range& range) {
        return range.access == (kRead | kWrite) && range.length > 64;
      });
      if (update == last) continue;
      update->alloc = 0;  // activations
      update->length = 64;
      break;
    }
  }
  const std::string found = FoundIn(CheckReduction(mini.run));
  EXPECT_NE(found.find("FS-12"), std::string::npos) << found;
}

// An expert's node writes the first 64 bytes of a dense gradient instead of its own.
void MixKinds(Trace& trace, const InstanceFacts& facts) {
  Range* expert = nullptr;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.phase != SPF_BWD) continue;
    const spf_uses& uses = facts.Node(event.id, trace.rank).uses[event.phase];
    for (int32_t i = 0; i < uses.n; ++i) {
      Range& range = trace.ranges[event.ranges.begin + size_t(i)];
      if (uses.use[i].table != SPF_IN_GRAD || range.length <= 64) continue;
      if (facts.Param(trace.rank, uses.use[i].id).expert) {
        if (expert == nullptr) expert = &range;
      } else if (expert != nullptr) {
        expert->alloc = range.alloc;
        expert->length = 64;
        range.offset += 64;
        range.length -= 64;
        return;
      }
    }
  }
}

TEST(Reduction, OneReductionOfAnExpertAndADenseParameter) {
  const auto experts = [](InstanceSpec& spec) { spec.model.experts = true; };
  EXPECT_EQ(Found({}, experts), "");
  MiniRun mini = RunMini(MiniCase(2, experts));
  const InstanceFacts facts(mini.spec->instances[0], 2);
  for (Trace& trace : mini.run.traces) MixKinds(trace, facts);
  const std::string found = FoundIn(CheckReduction(mini.run));
  EXPECT_NE(found.find("FS-30"), std::string::npos) << found;
}

TEST(Reduction, AMicrobatchThatIsNotReduced) {
  MiniFaults faults;
  faults.skip_reduce_last = true;
  const std::string found = Found(faults, TwoMicrobatches);
  EXPECT_EQ(found, "FS-05 FS-37");
}

TEST(Reduction, AnEvaluationReducesNothing) {
  const auto evaluates = [](InstanceSpec& spec) { spec.script = "tet"; };
  EXPECT_EQ(Found({}, evaluates), "");
  MiniFaults faults;
  faults.eval_reduces = true;
  const CheckResult bad = CheckReduction(RunMini(MiniCase(2, evaluates), faults).run);
  EXPECT_EQ(FoundIn(bad), "FS-37");
  ASSERT_FALSE(bad.findings.empty());
  EXPECT_NE(bad.findings[0].message.find("in an evaluation"), std::string::npos);
}

TEST(Reduction, AMissingContributionIsNamed) {
  MiniFaults faults;
  faults.skip_reduce_last = true;
  const CheckResult result = CheckReduction(RunMini(MiniCase(2, TwoMicrobatches), faults).run);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].seen, "nothing from rank 0 microbatch 1, rank 1 microbatch 1");
}

TEST(Reduction, AShardThatIsAddedTwice) {
  MiniFaults faults;
  faults.add_reduced_twice = true;
  EXPECT_EQ(Found(faults), "FS-05");
}

TEST(Reduction, AReductionBeforeTheLastGradient) {
  MiniFaults faults;
  faults.reduce_before_last = true;
  const std::string found = Found(faults);
  EXPECT_NE(found.find("FS-36"), std::string::npos) << found;
}

TEST(Reduction, AccumulatorsThatAreNotCleared) {
  MiniFaults faults;
  faults.no_zero_grad = true;
  EXPECT_EQ(Found(faults), "FS-22");
}

TEST(Reduction, NoOuterReduction) {
  MiniFaults faults;
  faults.skip_outer = true;
  EXPECT_EQ(Found(faults, Hybrid, 4), "FS-19");
}

TEST(Reduction, AnOuterReductionEveryMicrobatch) {
  MiniFaults faults;
  faults.outer_each_microbatch = true;
  const std::string found = Found(faults, Hybrid, 4);
  EXPECT_NE(found.find("FS-19"), std::string::npos) << found;
  EXPECT_NE(found.find("FS-42"), std::string::npos) << found;
}

TEST(Reduction, AnotherDtypeOnTheWire) {
  MiniFaults faults;
  faults.bf16_wire = true;
  EXPECT_NE(Found(faults).find("FS-21"), std::string::npos);
}

TEST(Reduction, MembersThatReduceInDifferentLayouts) {
  MiniRun mini = RunMini(MiniCase(2));
  // Rank 1 sends its gradient from one element further on.
  Trace& trace = mini.run.traces[1];
  for (Event& event : trace.events) {
    if (event.kind != EventKind::kCollective || event.collective != SPF_REDUCE_SCATTER ||
        event.count < 8)
      continue;
    trace.ranges[event.ranges.begin].offset += 4;
    break;
  }
  const std::string found = FoundIn(CheckReduction(mini.run));
  EXPECT_NE(found.find("FS-29"), std::string::npos) << found;
}

TEST(Reduction, APublishedRangeThatIsNoGradient) {
  MiniRun mini = RunMini(MiniCase(2));
  Trace& trace = mini.run.traces[0];
  for (Event& event : trace.events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_GRAD) continue;
    trace.ranges[event.ranges.begin].alloc -= 1;  // the main weights
    break;
  }
  EXPECT_EQ(FoundIn(CheckReduction(mini.run)), "FS-27");
}

TEST(Reduction, WithoutMemoryRangesNothingIsJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[0].provides.memory = false;
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

TEST(Reduction, AnUnfinishedRunIsNotJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  std::vector<Event>& events = mini.run.traces[1].events;
  const auto drop = std::find_if(events.begin(), events.end(), [](const Event& event) {
    return event.kind == EventKind::kCollective;
  });
  events.erase(drop);
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
