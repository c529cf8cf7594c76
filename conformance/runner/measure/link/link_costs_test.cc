// Do the costs of a step follow from its trace as they should, by hand and for the reference?
#include "conformance/runner/measure/link/link_costs.h"

#include <gtest/gtest.h>

#include "conformance/abi/shardproof.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {
namespace {

// Rank 1 of a group of ranks 0 to 2, of a world of 4: ranks 0 and 1 are on its host.
uint64_t Bytes(int kind, int64_t count, const std::vector<int64_t>& counts = {}, int peer = -1) {
  Trace trace;
  trace.rank = 1;
  trace.world = 4;
  trace.groups.push_back({"comm", "g", 0, {0, 1, 2}});
  trace.numbers = counts;
  Event event;
  event.kind = EventKind::kCollective;
  event.collective = static_cast<uint8_t>(kind);
  event.dtype = SPF_F32;
  event.group = 0;
  event.count = count;
  event.peer = peer;
  event.send_counts = event.recv_counts = {0, static_cast<uint32_t>(counts.size())};
  return BytesOverLink(trace, event);
}

TEST(LinkCosts, BytesOfEachKind) {
  // Two members here, one there: each sends its part to each on the other side.
  for (const int kind : {SPF_ALL_GATHER, SPF_REDUCE_SCATTER, SPF_ALL_REDUCE})
    EXPECT_EQ(Bytes(kind, 10), 4u * 10 * 2 * 1) << kind;
  EXPECT_EQ(Bytes(SPF_ALL_GATHER_V, 0, {1, 2, 30}), 4u * 30 * 2);  // from there, to both
  EXPECT_EQ(Bytes(SPF_ALL_GATHER_V, 0, {10, 20, 3}), 4u * 30 * 1);
  EXPECT_EQ(Bytes(SPF_ALL_TO_ALL_V, 0, {1, 2, 3}), 4u * 3 * 2);
  EXPECT_EQ(Bytes(SPF_BROADCAST, 10, {}, 0), 4u * 10 * 1);
  EXPECT_EQ(Bytes(SPF_BROADCAST, 10, {}, 2), 4u * 10 * 2);
  EXPECT_EQ(Bytes(SPF_SEND, 10, {}, 0), 0u);
  EXPECT_EQ(Bytes(SPF_SEND, 10, {}, 2), 40u);
}

// A run of the reference on sim.
struct Scene {
  explicit Scene(const std::string& id)
      : spec(ParseId(id)),
        models(MakeModels(spec)),
        data(RunOnSim(spec, models, Plugin("builtin:reference"), {})) {}
  const std::vector<Trace>& traces() const { return data.run.traces; }
  NodeTimes Times(double us_per_element, int32_t rank = 0) const {
    return {*models.front(), ModelRank(rank % spec.instances.front().ep), us_per_element};
  }
  StepCosts Costs(double us_per_element, const LinkCost& link) const {
    return CostsOf(traces().front(), Times(us_per_element), link);
  }
  double Predicted(double us_per_element, const LinkCost& link) const {
    std::vector<NodeTimes> nodes;
    for (int32_t rank = 0; rank < spec.world; ++rank) nodes.push_back(Times(us_per_element, rank));
    return PredictedStep(traces(), nodes, link, 0);
  }
  // Of matrices, each of which one node uses.
  double Elements() const {
    const spf_model& tables = models.front()->Tables({});
    double elements = 0;
    for (int32_t i = 0; i < tables.n_params; ++i)
      if (tables.params[i].n_dim > 1) elements += static_cast<double>(tables.params[i].numel);
    return elements;
  }

  const Case spec;
  const Models models;
  const RunData data;
};

constexpr LinkCost kNoLink{0, 0}, kEach{1, 0};

TEST(LinkCosts, ABackwardLastsTwiceAsLongAsAForward) {
  const Scene scene("w2.zero3.k2");
  EXPECT_EQ(scene.Costs(1, kNoLink).compute, 2 * 3 * scene.Elements());
  const NodeTimes times = scene.Times(1);
  EXPECT_GT(times.Of("layers.0.attention.qkv FWD"), 0);
  EXPECT_EQ(times.Of("layers.0.attention.qkv BWD"), 2 * times.Of("layers.0.attention.qkv FWD"));
  EXPECT_EQ(times.Of("layers.0.attention.qkv"), 0);
  EXPECT_EQ(times.Of("loss FWD"), 0);
  const Scene delayed("w2.zero3.ep2.k2.moe4.1f1b.dw"), whole("w2.zero3.ep2.k2.moe4");
  EXPECT_EQ(delayed.Costs(1, kNoLink).compute, whole.Costs(1, kNoLink).compute);
}

TEST(LinkCosts, WorkWithoutAStatedTimeIsCountedApart) {
  const Scene scene("w2.zero3");
  const NodeTimes times = scene.Times(1);
  const double forward = times.Of("layers.0.attention.qkv FWD");
  WorkTally tally;
  EXPECT_EQ(tally.Lasts(times, "ADAM", 7), 7);  // not yet
  tally.Count(true);
  EXPECT_EQ(tally.Lasts(times, "layers.0.attention.qkv FWD", forward / 2), forward);
  EXPECT_EQ(tally.Lasts(times, "layers.0.attention.qkv FWD", forward + 1), forward + 1);
  EXPECT_EQ(tally.Lasts(times, "ADAM", 5), 5);
  EXPECT_EQ(tally.Lasts(times, "loss FWD", 3), 3);
  EXPECT_EQ(tally.Lasts(times, "alloc of block 7", 100), 100);
  EXPECT_EQ(tally.nodes(), 2);
  EXPECT_EQ(tally.late(), 1);
  EXPECT_EQ(tally.other_us(), 8);
}

// ZeRO-3 gathers each unit twice but for the last one, which stays for backward, and reduces it.
TEST(LinkCosts, EachOperationIsCountedAndTheEndsAreTwoOfThem) {
  const Scene scene("w2.zero3.ogr.opg.layers4");
  const StepCosts costs = scene.Costs(1, kEach);
  EXPECT_GE(costs.communication, 3 * 6 - 1);
  EXPECT_EQ(costs.ends, 2);
  EXPECT_EQ(scene.Costs(1, kNoLink).communication, 0);
}

// The first microbatch's two exchanges forward and the last one's two backward, of each layer, as
// tokens and as probabilities.
TEST(LinkCosts, ExchangesThatNothingCanHideAreEnds) {
  const Scene two("w2.zero3.ep2.k2.moe4"), four("w2.zero3.ep2.k4.moe4");
  const double ends = two.Costs(1, kEach).ends;
  EXPECT_GE(ends, 2 + 2 * 2 * 2);
  EXPECT_EQ(ends, four.Costs(1, kEach).ends);
  EXPECT_GT(four.Costs(1, kEach).communication, two.Costs(1, kEach).communication);
}

TEST(LinkCosts, WithoutALinkAStepIsItsCompute) {
  const Scene scene("w2.zero3.k2.ogr.opg");
  EXPECT_DOUBLE_EQ(scene.Predicted(1, kNoLink), scene.Costs(1, kNoLink).compute);
}

// Of ZeRO-3 the gathers ahead alone can be left out; of the layer-wise optimizer everything.
TEST(LinkCosts, OverlapIsPredictedFromTheOrderOfIssue) {
  const std::string lw = "w2.lw.bs1000.layers8";
  for (const auto& [off, on] : {std::pair(std::string("w2.zero3.pf0.layers8"), "w2.zero3.layers8"),
                                std::pair(lw, "w2.lw.bs1000.layers8.ogr.opg")}) {
    const Scene without(off), with(on);
    const LinkCost link{0, 0.4};  // a byte; a forward takes 1 an element
    const StepCosts costs = with.Costs(1, link);
    const double bound = std::max(costs.compute, costs.communication) + costs.ends;
    EXPECT_GT(without.Predicted(1, link), 1.15 * bound) << off;
    EXPECT_LT(with.Predicted(1, link), 0.85 * without.Predicted(1, link)) << on;
    EXPECT_GE(with.Predicted(1, link), costs.compute) << on;
  }
}

TEST(LinkCosts, OneStepHasNothingBehindTheFirst) {
  const Scene scene("w2.zero3.do=t");
  EXPECT_THROW(scene.Costs(1, kEach), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
