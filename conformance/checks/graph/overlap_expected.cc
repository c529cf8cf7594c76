#include "conformance/checks/graph/overlap_expected.h"

#include "conformance/checks/base/facts.h"

namespace shardproof::overlap {

namespace {

std::vector<std::vector<int32_t>> OuterLists(const InstanceSpec& spec, int32_t world) {
  std::vector<std::vector<int32_t>> lists;
  if (spec.outer_strategy != OuterStrategy::kOptim || spec.outer < 2) return lists;
  for (const GroupFamily& family : GroupFamilies(spec, world)) {
    if (family.name == "inter_dp_cp" || family.name == "inter_expt_dp")
      lists.insert(lists.end(), family.lists.begin(), family.lists.end());
  }
  return lists;
}

// Compute waits for the next sum over tp, gather over cp, all-to-all or message of a stage, and
// that for the reduction that was issued before it: maybe there is nothing between the two to hide
// under.
bool TakesTurns(const InstanceSpec& spec) {
  const bool exchanges = spec.model.moe.experts > 0 && spec.ep > 1;
  return spec.schedule == CommSchedule::kOneCommunicator &&
         ((spec.tensor_parallel && spec.tp > 1) || (spec.context_parallel && spec.cp > 1) ||
          exchanges || spec.chunks > 1);
}

}  // namespace

Expected Expect(const InstanceSpec& spec, int32_t world) {
  const bool full = ShardsParams(spec);
  Expected expected;
  expected.outer = OuterLists(spec, world);
  expected.buckets = spec.strategy == ShardingStrategy::kLayerWise;
  // Without sharded parameters all units are gathered once a step, ahead if the knob says so.
  const bool once = (spec.strategy == ShardingStrategy::kOptim ||
                     spec.strategy == ShardingStrategy::kOptimGrads) &&
                    spec.overlap_param_gather;
  expected.gathers = expected.buckets ? spec.overlap_param_gather
                                      : (full || once) && spec.prefetch_limit_bytes < 0;
  // Without a twin a gather that may not be launched ahead follows the last unit's reduction on the
  // same communicator, and the next unit's compute follows the gather: nothing is left to hide.
  const bool separate = spec.twin == GatherTwin::kGiven || spec.prefetch_limit_bytes < 0;
  expected.aligned = expected.buckets && spec.layer_wise.layout == LayerWiseLayout::kAligned;
  expected.reductions = !TakesTurns(spec) && (full ? separate : spec.overlap_grad_reduce);
  expected.gathers_by_name = spec.overlap_param_gather;
  expected.reductions_by_name = spec.overlap_grad_reduce;
  expected.twin = full && spec.twin == GatherTwin::kGiven;
  return expected;
}

}  // namespace shardproof::overlap
