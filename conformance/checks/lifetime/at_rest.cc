// The formula of each strategy, and the padding that an engine's collectives show.
#include "conformance/checks/lifetime/at_rest.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

constexpr int64_t kScratchBytes = 4096;          // norms, counters, losses
constexpr int64_t kMostPadding = (1 << 16) - 1;  // elements of a shard: of a multiple of 2^16

// Elements of padding in buffers of aligned shards: what a rank hands to its reduce-scatters beyond
// its parameters, and what it gets of them beyond those that it owns.
struct AlignedPadding {
  int64_t all = 0, mine = 0;
};

AlignedPadding PaddingOf(const Trace& trace, const InstanceFacts& facts, int32_t instance,
                         const std::set<int32_t>& owned) {
  AlignedPadding padding;
  std::set<std::pair<int32_t, int64_t>> buffers;
  for (const Event& event : trace.events) {
    const bool reduces =
        event.kind == EventKind::kCollective && event.collective == SPF_REDUCE_SCATTER;
    if (!reduces || event.instance != instance || event.group < 0 || event.ranges.empty()) continue;
    const Range& from = trace.ranges[event.ranges.begin];
    if (!buffers.insert({from.alloc, from.offset}).second) continue;
    padding.all +=
        event.count * static_cast<int64_t>(At(trace.groups, event.group).world_ranks.size());
    padding.mine += event.count;
  }
  for (int32_t id = 0; id < facts.n_params(trace.rank); ++id) {
    const ParamFacts& param = facts.Param(trace.rank, id);
    const std::vector<int32_t>* list = facts.FullList(param.expert, trace.rank);
    if (param.frozen || list == nullptr || list->size() == 1) continue;
    padding.all -= param.numel;
    if (owned.contains(id)) padding.mine -= param.numel;
  }
  return {std::max<int64_t>(0, padding.all), std::max<int64_t>(0, padding.mine)};
}

// Whole model weights and gradients; main weights and state of what the rank publishes, as its
// owner.
Allowed LayerWiseBytes(const Trace& trace, const InstanceFacts& facts, int32_t instance) {
  const InstanceSpec& spec = facts.spec();
  std::set<int32_t> owned;
  for (const Event& event : trace.events) {
    const bool param = event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM;
    if (param && event.instance == instance) owned.insert(event.id);
  }
  const int64_t grad_width = spec.main_grads_dtype == KnobDtype::kBf16 ? 2 : 4;
  Allowed bytes{0, kScratchBytes};
  int64_t widest = 0;
  for (int32_t id = 0; id < facts.n_params(trace.rank); ++id) {
    const ParamFacts& param = facts.Param(trace.rank, id);
    const std::vector<int32_t>* list = facts.FullList(param.expert, trace.rank);
    const auto width = static_cast<int64_t>(DtypeBytes(param.dtype));
    const int64_t state = spec.optimizer == Optimizer::kAdamw  ? 8
                          : spec.optimizer == Optimizer::kMuon ? (param.matrix ? 4 : 8)
                                                               : 0;
    widest = std::max(widest, width);
    bytes.formula += param.numel * (width + (param.frozen ? 0 : grad_width));
    if (owned.contains(id)) bytes.formula += param.numel * (4 + (param.frozen ? 0 : state));
    bytes.padding +=
        (width + grad_width) * param.row * static_cast<int64_t>(list == nullptr ? 1 : list->size());
  }
  if (spec.layer_wise.layout != LayerWiseLayout::kAligned) return bytes;
  const AlignedPadding padding = PaddingOf(trace, facts, instance, owned);
  const int64_t state = spec.optimizer == Optimizer::kSgd ? 0 : 8;
  bytes.padding += padding.all * (widest + grad_width) + padding.mine * (4 + state);
  return bytes;
}

// Bytes of one element between steps: whole on every rank, or one of each shard of the inner group,
// or of both groups.
struct ElementBytes {
  int64_t whole = 0, inner = 0, both = 0;
};

ElementBytes BytesOf(const InstanceSpec& spec, const ParamFacts& param, bool outer_shards) {
  ElementBytes bytes;
  const auto width = static_cast<int64_t>(DtypeBytes(param.dtype));
  const int64_t grad_width = spec.main_grads_dtype == KnobDtype::kBf16 ? 2 : 4;
  const bool shards_grads = ShardsGrads(spec);
  const bool shards_main = shards_grads || spec.strategy == ShardingStrategy::kOptim;
  int64_t& main = !shards_main ? bytes.whole : outer_shards ? bytes.both : bytes.inner;
  (ShardsParams(spec) ? bytes.inner : bytes.whole) += width;
  main += 4;
  const bool twice = spec.backward_copies && ShardsParams(spec) && param.unit >= 0;
  if (twice) bytes.inner += width;
  if (param.frozen) return bytes;
  (shards_grads ? bytes.inner : bytes.whole) += grad_width;
  if (outer_shards) bytes.both += grad_width + (twice ? 2 : 1) * width;
  if (spec.optimizer == Optimizer::kAdamw) main += 8;
  if (spec.optimizer == Optimizer::kMuon) main += param.matrix ? 4 : 8;
  return bytes;
}

class Sharded {
 public:
  Sharded(const Analysis& a, int32_t rank, int32_t instance)
      : a_(a),
        facts_(a.Facts(size_t(instance))),
        trace_(a.trace(rank)),
        rank_(rank),
        instance_(instance) {}

  Allowed Bytes() const {
    Allowed bytes{0, kScratchBytes};
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      const ParamFacts& param = facts_.Param(rank_, id);
      const int64_t n = InnerOf(param), m = OuterOf(param);
      const ElementBytes of = BytesOf(facts_.spec(), param, Outer(param));
      const auto part = [&](int64_t parts) { return (param.numel + parts - 1) / parts; };
      bytes.formula += of.whole * param.numel + of.inner * part(n) + of.both * part(n * m);
      bytes.padding +=
          param.row * (of.whole * n + of.inner * (n > 1 ? 1 : n) + of.both * (n * m > 1 ? 1 : n));
    }
    bytes.padding += Shown();
    return bytes;
  }

 private:
  static int64_t Size(const std::vector<int32_t>* list) {
    return list == nullptr ? int64_t{1} : static_cast<int64_t>(list->size());
  }
  int64_t InnerOf(const ParamFacts& param) const {
    return Size(facts_.InnerList(param.expert, rank_));
  }
  int64_t OuterOf(const ParamFacts& param) const {
    return Size(facts_.OuterList(param.expert, rank_));
  }
  bool Outer(const ParamFacts& param) const {
    return facts_.spec().outer_strategy == OuterStrategy::kOptim && OuterOf(param) > 1;
  }

  // Elements by which a shard of each bucket is longer than its parameters; a bucket is told by its
  // first one, and has shown the least that it showed.
  using Padding = std::map<int32_t, int64_t>;  // by key
  static void Note(Padding& padding, int32_t key, int64_t elements) {
    const int64_t most = std::clamp<int64_t>(elements, 0, kMostPadding);
    const auto [at, added] = padding.emplace(key, most);
    at->second = std::min(at->second, most);
  }

  // What gathers bring beyond parameters.
  void Gathered(Padding& padding) const {
    for (const Carried& carried : CarriedBy(a_, rank_)) {
      const Event& event = At(trace_.events, carried.event);
      const bool gathers = carried.gather && event.collective == SPF_ALL_GATHER;
      if (!gathers || event.instance != instance_) continue;
      const auto ranks = static_cast<int64_t>(carried.group->world_ranks.size());
      int64_t named = 0;
      int32_t first = carried.params.front().content.param;
      for (const Chunk& chunk : carried.params) {
        named += chunk.length / std::max<int64_t>(1, chunk.content.width);
        first = std::min(first, chunk.content.param);
      }
      Note(padding, first, (event.count * ranks - named + ranks - 1) / ranks);
    }
  }

  // Main weights come by it: initial ones, or, where create asks for none, those of a load.
  bool BringsValues(const Event& event) const {
    if (event.ranges.empty()) return false;
    if (event.kind == EventKind::kInit) return true;
    return InitsLater(facts_.spec()) && event.kind == EventKind::kPublish &&
           event.result == SPF_RESULT_PARAM && facts_.CallAt(event.call).letter == 'l';
  }

  // In groups of one rank nothing is gathered: what blocks of first weights hold beyond them.
  void Alone(Padding& padding) const {
    std::map<int32_t, std::pair<int32_t, int64_t>> blocks;  // first key; elements beyond
    std::map<int32_t, int64_t> sizes;
    std::set<std::pair<int32_t, int64_t>> seen;  // block, offset
    for (const Event& event : trace_.events) {
      if (event.instance != instance_) continue;
      if (event.kind == EventKind::kAlloc) sizes[event.alloc] = event.count;
      if (!BringsValues(event)) continue;
      const ParamFacts& param = facts_.Param(rank_, event.id);
      if (InnerOf(param) * OuterOf(param) > 1) continue;
      const int32_t block = trace_.ranges[event.ranges.begin].alloc;
      if (!seen.insert({block, trace_.ranges[event.ranges.begin].offset}).second) continue;
      const auto width = static_cast<int64_t>(DtypeBytes(event.dtype));
      const auto [at, added] =
          blocks.emplace(block, std::pair{param.key, sizes[block] / std::max<int64_t>(1, width)});
      at->second.second -= event.count;
    }
    for (const auto& [block, of] : blocks) Note(padding, of.first, of.second);
  }

  int64_t Shown() const {
    Padding padding;
    if (a_.has_flow()) Gathered(padding);
    Alone(padding);
    int64_t bytes = 0;
    for (const auto& [key, elements] : padding) {
      const ParamFacts& param = facts_.ByKey(key);
      const ElementBytes of = BytesOf(facts_.spec(), param, Outer(param));
      bytes += elements * (of.whole * InnerOf(param) + of.inner + of.both);
    }
    return bytes;
  }

  const Analysis& a_;
  const InstanceFacts& facts_;
  const Trace& trace_;
  const int32_t rank_, instance_;
};

}  // namespace

Allowed AllowedAtRest(const Analysis& a, int32_t rank, int32_t instance) {
  const InstanceFacts& facts = a.Facts(size_t(instance));
  if (facts.spec().strategy == ShardingStrategy::kLayerWise)
    return LayerWiseBytes(a.trace(rank), facts, instance);
  return Sharded(a, rank, instance).Bytes();
}

}  // namespace shardproof
