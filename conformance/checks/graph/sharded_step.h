// sharded_step.h: a step of a sharded engine, for tests of what hides under compute.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/common/at.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {

// A step of a sharded engine with four layers on two ranks: gathers on one stream, compute on
// another, reductions on a third, and what the knobs below leave out or add.
struct Shape {
  bool gather_waits_for_compute = false;     // each gather waits for the compute before it
  bool compute_waits_for_reduction = false;  // each compute waits for the reduction before it
  bool twin = true;
  bool gather_waits_for_reduction = false;
  bool decoys = false;
  int world = 2;
  std::vector<int32_t> ranks = {0, 1};  // who reduces and gathers
  int labelled = -1;  // as this module, and for something else: each collective; -1: as what it is
};

inline void Order(TraceBuilder& t, int from, int to) {
  const int event = t.EventCreate();
  t.Record(event, from);
  t.Wait(event, to);
}

inline Trace StepOf(int rank, const Shape& shape) {
  TraceBuilder t(rank, shape.world);
  const int dp = t.Group("dp_cp", shape.ranks),
            twin = shape.twin ? t.Group("dp_cp_ag", shape.ranks) : dp;
  const int compute = t.Stream("compute"), gather = t.Stream("gather"), reduce = t.Stream("reduce");
  const int decoy = shape.decoys ? t.Stream("decoy") : reduce;
  t.CallBegin("create");
  t.CallEnd("create");
  t.CallBegin("train_step", 0);
  for (int layer = 0; layer < 4; ++layer) {
    if (shape.gather_waits_for_compute) Order(t, compute, gather);
    if (shape.gather_waits_for_reduction) Order(t, reduce, gather);
    const bool honest = shape.labelled < 0;
    const int module = honest ? layer : shape.labelled;
    t.Collective(SPF_ALL_GATHER, twin, gather, 8, {},
                 {.label = {honest ? SPF_FOR_PARAM_FULL : SPF_FOR_OTHER, module, 0}});
    Order(t, gather, compute);
    t.Compute(compute, layer, SPF_BWD, 0, {});
    Order(t, compute, reduce);
    t.Collective(SPF_REDUCE_SCATTER, dp, reduce, 8, {},
                 {.label = {honest ? SPF_FOR_GRAD : SPF_FOR_CHECKPOINT, module, 0}});
    if (shape.compute_waits_for_reduction) Order(t, reduce, compute);
    if (shape.decoys)
      t.Collective(SPF_ALL_REDUCE, dp, decoy, 1, {}, {.label = {SPF_FOR_GRAD, layer, 0}});
  }
  t.CallEnd("train_step", 0);
  return t.Done();
}

inline std::vector<Trace> Step(const Shape& shape) { return {StepOf(0, shape), StepOf(1, shape)}; }

inline Case FullySharded() {
  Case c;
  c.world = c.instances[0].span = 2;
  c.instances[0].strategy = ShardingStrategy::kOptimGradsParams;
  c.instances[0].twin = GatherTwin::kGiven;
  return c;
}

inline std::set<std::string> Found(const CheckResult& result) {
  Show(result);
  std::set<std::string> ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  return ids;
}
using Ids = std::set<std::string>;

// What the collectives of StepOf carried: a layer each.
inline std::vector<BroughtByEvent> LayersBrought(const std::vector<Trace>& traces) {
  std::vector<BroughtByEvent> brought;
  for (const Trace& trace : traces) {
    BroughtByEvent& of = brought.emplace_back();
    for (int64_t i = 0, n = 0; i < Length(trace.events); ++i) {
      const Event& event = At(trace.events, i);
      if (event.kind != EventKind::kCollective || event.collective == SPF_ALL_REDUCE) continue;
      const bool gather = n % 2 == 0;
      of[i] = {gather, !gather, static_cast<int32_t>(n++ / 2), false};
    }
  }
  return brought;
}

}  // namespace shardproof
