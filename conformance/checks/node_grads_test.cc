#include "conformance/checks/base/node_grads.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/facts.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

MiniRun Bf16() {
  return RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.param_dtype = KnobDtype::kBf16; }));
}

// Ranges of parameter gradients of nodes, made as long as in bf16; on this rank, or (-1) on all.
void MakeNarrow(MiniRun& mini, int32_t rank) {
  const InstanceFacts facts(mini.spec->instances[0], mini.spec->world);
  for (Trace& trace : mini.run.traces) {
    if (rank >= 0 && trace.rank != rank) continue;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute) continue;
      const spf_uses& uses = facts.Node(event.id, trace.rank).uses[event.phase];
      for (int32_t i = 0; i < uses.n; ++i) {
        if (uses.use[i].table != SPF_IN_GRAD) continue;
        trace.ranges[event.ranges.begin + size_t(i)].length =
            2 * facts.Param(trace.rank, uses.use[i].id).numel;
      }
    }
  }
}

TEST(NodeGrads, EveryNodeOfEveryRankAddsInBf16) {
  MiniRun mini = Bf16();
  EXPECT_FALSE(NodesAddInBf16(*mini.spec, 0, mini.run.traces));
  MakeNarrow(mini, 1);
  EXPECT_FALSE(NodesAddInBf16(*mini.spec, 0, mini.run.traces)) << "rank 0 adds in fp32";
  MakeNarrow(mini, -1);
  EXPECT_TRUE(NodesAddInBf16(*mini.spec, 0, mini.run.traces));
}

TEST(NodeGrads, WhereNothingRanNothingWasAdded) {
  const MiniRun mini = Bf16();
  EXPECT_FALSE(NodesAddInBf16(*mini.spec, 0, {}));
}

}  // namespace
}  // namespace shardproof
