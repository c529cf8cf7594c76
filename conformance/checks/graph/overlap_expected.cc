#include "conformance/checks/graph/overlap_expected.h"

#include <algorithm>

#include "conformance/checks/base/facts.h"
#include "conformance/checks/base/reduces.h"
#include "conformance/common/at.h"

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

std::vector<int32_t> NumbersOf(const std::vector<std::vector<int32_t>>& lists, int32_t world) {
  std::vector<int32_t> numbers(static_cast<size_t>(world), -1);
  int32_t number = 0;
  for (const std::vector<int32_t>& list : lists) {
    for (const int32_t rank : list) At(numbers, rank) = number;
    ++number;
  }
  return numbers;
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

DataRanks::DataRanks(const InstanceSpec& spec, int32_t world) {
  std::vector<std::vector<int32_t>> tensor;
  for (const GroupFamily& family : GroupFamilies(spec, world)) {
    if (family.name == "dp_cp") dense_ = NumbersOf(family.lists, world);
    if (family.name == "tp" && spec.tensor_parallel) tensor = family.lists;
    if (family.name == "expt_dp" && spec.model.moe.experts > 0)
      expert_ = NumbersOf(family.lists, world);
  }
  // Experts that are not split over tp are replicated over it: there labels do not tell their sums
  // from those of dense parameters.
  for (const std::vector<int32_t>& list : tensor) {
    if (expert_.empty() || list.size() < 2) continue;
    const int32_t first = At(expert_, list.front());
    const bool same = std::count(expert_.begin(), expert_.end(), first) == Length(list) &&
                      std::all_of(list.begin(), list.end(),
                                  [&](int32_t rank) { return At(expert_, rank) == first; });
    for (const int32_t rank : list) At(expert_, rank) = same ? -1 : At(expert_, rank);
  }
}

bool DataRanks::Share(int32_t rank, const std::vector<int32_t>& ranks) const {
  const auto share = [&](const std::vector<int32_t>& numbers) {
    if (numbers.empty() || At(numbers, rank) < 0) return false;
    return std::any_of(ranks.begin(), ranks.end(), [&](int32_t other) {
      return other != rank && At(numbers, other) == At(numbers, rank);
    });
  };
  return share(dense_) || share(expert_);
}

Expected Expect(const InstanceSpec& spec, int32_t world) {
  const bool full = ShardsParams(spec);
  Expected expected;
  expected.outer = OuterLists(spec, world);
  expected.data = DataRanks(spec, world);
  expected.buckets = spec.strategy == ShardingStrategy::kLayerWise;
  // Without sharded parameters all units are gathered once a step, ahead if the knob says so.
  const bool once = (spec.strategy == ShardingStrategy::kOptim ||
                     spec.strategy == ShardingStrategy::kOptimGrads) &&
                    spec.overlap_param_gather;
  expected.gathers = expected.buckets ? spec.overlap_param_gather
                                      : (full || once) && spec.prefetch_limit_bytes < 0;
  // Without a twin a gather that may not be launched ahead follows the last unit's reduction on the
  // same communicator, and the next unit's compute follows the gather: nothing is left to hide. Nor
  // where backward has copies whose shards outer ranks fill up, as they do in the first microbatch:
  // outer groups have no twins.
  const bool filled_up = spec.backward_copies && spec.outer > 1 && spec.microbatches == 1 &&
                         spec.outer_strategy == OuterStrategy::kOptim;
  const bool separate =
      (spec.twin == GatherTwin::kGiven && !filled_up) || spec.prefetch_limit_bytes < 0;
  expected.aligned = expected.buckets && spec.layer_wise.layout == LayerWiseLayout::kAligned;
  expected.reductions = !TakesTurns(spec) && (full ? separate : spec.overlap_grad_reduce);
  expected.gathers_by_name = spec.overlap_param_gather;
  expected.reductions_by_name = spec.overlap_grad_reduce;
  expected.shared = MostRanksOfAParameter(spec) > 1;
  expected.limited = spec.prefetch_limit_bytes >= 0;
  expected.twin = full && spec.twin == GatherTwin::kGiven;
  return expected;
}

}  // namespace shardproof::overlap
