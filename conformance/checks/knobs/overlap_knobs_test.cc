// Priorities of streams, and combined steps of interleaved pipelines.
#include <gtest/gtest.h>

#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/testing/mini_schedule.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

// The streams of all-to-alls, of one rank or all, are made with this priority.
ScheduleRun WithPriority(int priority, int32_t rank = -1) {
  ScheduleRun made =
      RunSchedule(ScheduleCase(4, 2, [](InstanceSpec& spec) { spec.high_priority = true; }));
  for (Trace& trace : made.run.traces) {
    for (Event& event : trace.events) {
      const bool a2a = event.kind == EventKind::kStreamCreate && trace.Text(event.text) == "a2a";
      if (a2a && (rank < 0 || rank == trace.rank)) event.id = priority;
    }
  }
  return made;
}

TEST(HighPriority, AllToAllsBeforeCompute) {
  const ScheduleRun made = WithPriority(-1);
  const CheckResult result = CheckOverlapKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("KN-06"));
}

TEST(HighPriority, EqualOrLowerIsFound) {
  for (const int priority : {0, 1}) {
    const ScheduleRun made = WithPriority(priority);
    EXPECT_EQ(FoundIn(CheckOverlapKnobs(made.run)), "KN-06") << priority;
  }
}

TEST(HighPriority, OnOneRankItIsFoundOnTheOthers) {
  const ScheduleRun made = WithPriority(-1, 2);
  const CheckResult result = CheckOverlapKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "KN-06");
  for (const Finding& finding : result.findings) EXPECT_NE(finding.rank, 2);
}

// What a rank of an interleaved pipeline computes: passes one after the other, or in combined
// steps.
class Interleaved {
 public:
  Interleaved(const Case& c, const InstanceFacts& facts, int32_t rank, bool combined)
      : facts_(facts), rank_(rank), combined_(combined), t_(rank, c.world) {}

  Trace Run() {
    stream_ = t_.Stream("compute");
    for (const ScriptCall& call : facts_.calls()) {
      if (call.letter == 't') {
        t_.CallBegin("train_step", static_cast<int>(call.step));
        Train(call.step);
        t_.CallEnd("train_step", static_cast<int>(call.step));
      } else {
        t_.CallBegin(call.letter == 'c' ? "create" : "destroy");
        t_.CallEnd(call.letter == 'c' ? "create" : "destroy");
      }
    }
    return t_.Done();
  }

 private:
  struct Pass {
    int32_t microbatch, chunk;
  };

  std::vector<Pass> Passes(bool forward) const {
    const InstanceSpec& spec = facts_.spec();
    std::vector<Pass> passes;
    for (int32_t first = 0; first < spec.microbatches; first += spec.pp) {
      for (int32_t c = 0; c < spec.chunks; ++c) {
        for (int32_t m = first; m < first + spec.pp; ++m)
          passes.push_back({m, forward ? c : spec.chunks - 1 - c});
      }
    }
    return passes;
  }

  std::vector<const spf_node*> NodesOf(const Pass& pass, int phase) const {
    const int64_t sample =
        int64_t{pass.microbatch} * DpCpSize(facts_.spec()) + facts_.DataRank(rank_);
    const spf_program& program = facts_.model().Program(step_, sample, facts_.Place(rank_));
    std::vector<const spf_node*> nodes;
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[i];
      if (node.chunk == pass.chunk && node.uses[phase].n > 0) nodes.push_back(&node);
    }
    if (phase != SPF_FWD) std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  void Train(int64_t step) {
    step_ = step;
    const std::vector<Pass> forward = Passes(true), backward = Passes(false);
    const std::vector<int32_t>& pp = *facts_.List("pp", rank_);
    const auto place = static_cast<size_t>(std::find(pp.begin(), pp.end(), rank_) - pp.begin());
    const auto chunks = static_cast<size_t>(facts_.spec().chunks);
    const size_t warmup =
        std::min(forward.size(), 2 * (pp.size() - place - 1) + (chunks - 1) * pp.size() + 1);
    for (size_t k = 0; k < warmup; ++k) One(forward[k], SPF_FWD);
    for (size_t k = 0; k < backward.size(); ++k) {
      if (k + warmup >= forward.size()) {
        One(backward[k], SPF_BWD);
      } else {
        Both(forward[k + warmup], backward[k]);
      }
    }
  }

  void One(const Pass& pass, int phase) {
    for (const spf_node* node : NodesOf(pass, phase))
      t_.Compute(stream_, node->id, phase, pass.microbatch, {});
  }

  void Both(const Pass& forward, const Pass& backward) {
    if (!combined_) {
      One(forward, SPF_FWD);
      return One(backward, SPF_BWD);
    }
    const auto f = NodesOf(forward, SPF_FWD), b = NodesOf(backward, SPF_BWD);
    for (size_t i = 0; i < std::max(f.size(), b.size()); ++i) {
      if (i < f.size()) t_.Compute(stream_, f[i]->id, SPF_FWD, forward.microbatch, {});
      if (i < b.size()) t_.Compute(stream_, b[i]->id, SPF_BWD, backward.microbatch, {});
    }
  }

  const InstanceFacts& facts_;
  const int32_t rank_;
  const bool combined_;
  int64_t step_ = 0;
  int stream_ = -1;
  TraceBuilder t_;
};

// combined_on: which rank combines its passes; -1: all, -2: none.
WrittenRun Pipeline(int32_t combined_on) {
  return WriteRun(ParseId("w4.ddp.ep2.pp2.k4.layers4.moe4.vpp2.1f1b"),
                  [&](const Case& c, const InstanceFacts& facts, int32_t rank) {
                    const bool combined = combined_on == -1 || combined_on == rank;
                    return Interleaved(c, facts, rank, combined).Run();
                  });
}

TEST(OverlapInPipelines, CombinedSteps) {
  const WrittenRun made = Pipeline(-1);
  const CheckResult result = CheckOverlapKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].seen);
  EXPECT_TRUE(result.judged.contains("KN-08"));
}

TEST(OverlapInPipelines, PassesOneAfterTheOtherAreFound) {
  const WrittenRun made = Pipeline(-2);
  const CheckResult result = CheckOverlapKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "KN-08");
  EXPECT_EQ(result.findings.at(0).seen, "0");
}

TEST(OverlapInPipelines, OnOneRankItIsFoundOnTheOthers) {
  const WrittenRun made = Pipeline(1);
  const CheckResult result = CheckOverlapKnobs(made.run);
  EXPECT_EQ(FoundIn(result), "KN-08");
  for (const Finding& finding : result.findings) EXPECT_NE(finding.rank, 1);
}

}  // namespace
}  // namespace shardproof
