// Blocks and handles: bytes at rest, drift over steps, and what is left at the end.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/lifetime/user_buffers.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

// Upper bound of device bytes that a rank of the strategy keeps between steps.
struct Persistent {
  int64_t formula = 0, padding = 0;
};

constexpr int64_t kScratchBytes = 4096;  // norms, counters, losses

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
Persistent LayerWiseBytes(const Trace& trace, const InstanceFacts& facts, int32_t instance) {
  const InstanceSpec& spec = facts.spec();
  std::set<int32_t> owned;
  for (const Event& event : trace.events) {
    const bool param = event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM;
    if (param && event.instance == instance) owned.insert(event.id);
  }
  const int64_t grad_width = spec.main_grads_dtype == KnobDtype::kBf16 ? 2 : 4;
  Persistent bytes{0, kScratchBytes};
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

Persistent PersistentBytes(const InstanceFacts& facts, int32_t rank) {
  const InstanceSpec& spec = facts.spec();
  const auto size = [](const std::vector<int32_t>* list) {
    return list == nullptr ? int64_t{1} : static_cast<int64_t>(list->size());
  };
  const auto part = [](int64_t elements, int64_t parts) { return (elements + parts - 1) / parts; };
  const int64_t grad_width = spec.main_grads_dtype == KnobDtype::kBf16 ? 2 : 4;
  Persistent bytes;
  for (int32_t id = 0; id < facts.n_params(rank); ++id) {
    const ParamFacts& param = facts.Param(rank, id);
    const int64_t n = size(facts.InnerList(param.expert, rank)),
                  m = size(facts.OuterList(param.expert, rank));
    const bool shards_params = ShardsParams(spec), shards_grads = ShardsGrads(spec);
    const bool shards_main = shards_grads || spec.strategy == ShardingStrategy::kOptim;
    const int64_t outer = spec.outer_strategy == OuterStrategy::kOptim ? m : 1;
    const auto width = static_cast<int64_t>(DtypeBytes(param.dtype));
    const auto add = [&](int64_t element_bytes, int64_t parts) {
      bytes.formula += element_bytes * part(param.numel, parts);
      bytes.padding += element_bytes * param.row * (parts > 1 ? 1 : n);
    };
    add(width, shards_params ? n : 1);
    add(4, shards_main ? n * outer : 1);
    if (param.frozen) continue;
    add(grad_width, shards_grads ? n : 1);
    if (outer > 1) add(grad_width + width, n * outer);
    const int64_t state = spec.optimizer == Optimizer::kAdamw  ? 8
                          : spec.optimizer == Optimizer::kMuon ? (param.matrix ? 4 : 8)
                                                               : 0;
    if (state > 0) add(state, shards_main ? n * outer : 1);
  }
  bytes.padding += kScratchBytes;
  return bytes;
}

class Memory : RankCheck {
 public:
  Memory(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      index_ = static_cast<int64_t>(i);
      Step(trace_.events[i]);
      Keep(trace_.events[i]);
    }
    if (a_.has_case() && !peaks_.empty()) NotePeak();
  }

 private:
  struct Block {
    int64_t bytes = 0;
    bool device = true;
    int64_t event = -1;
  };
  struct OfInstance {
    std::map<int32_t, Block> blocks;
    std::map<int32_t, int64_t> streams, events, groups;  // id -> event that made it
    int64_t device_bytes = 0, peak = 0;
    int64_t rest = -1;  // at the end of the first train step
    std::set<int32_t> freed;
  };

  // With nccl_ub registered memory stays where it is, to be used again.
  void Keep(const Event& event) {
    const bool asked = a_.has_case() && event.instance < a_.n_instances() &&
                       a_.Facts(event.instance).spec().nccl_ub;
    if (asked) kept_.try_emplace(event.instance, trace_).first->second.See(event);
  }

  void Step(const Event& event) {
    OfInstance& of = instances_[event.instance];
    switch (event.kind) {
      case EventKind::kAlloc:
        of.blocks[event.alloc] = {event.count, event.id != SPF_PINNED, index_};
        if (event.id != SPF_PINNED) of.device_bytes += event.count;
        of.peak = std::max(of.peak, of.device_bytes);
        peaks_[event.instance] = of.peak;
        break;
      case EventKind::kFree:
        Free(event, of);
        break;
      case EventKind::kStreamCreate:
        of.streams[event.stream] = index_;
        break;
      case EventKind::kStreamDestroy:
        of.streams.erase(event.stream);
        break;
      case EventKind::kEventCreate:
        of.events[event.event] = index_;
        break;
      case EventKind::kEventDestroy:
        of.events.erase(event.event);
        break;
      case EventKind::kGroupCreate:
        if (event.group >= 0) of.groups[event.group] = index_;
        break;
      case EventKind::kGroupDestroy:
        of.groups.erase(event.group);
        break;
      case EventKind::kCallEnd:
        if (event.status == SPF_OK) CallEnd(event, of);
        break;
      default:
        break;
    }
  }

  void Free(const Event& event, OfInstance& of) {
    const auto block = of.blocks.find(event.alloc);
    if (block == of.blocks.end()) {
      Add("FS-33", index_, "each block freed once",
          "block " + std::to_string(event.alloc) + " freed " +
              (of.freed.contains(event.alloc) ? "again" : "without an alloc"),
          "a block is freed that is not live");
      return;
    }
    if (block->second.device) of.device_bytes -= block->second.bytes;
    of.freed.insert(event.alloc);
    of.blocks.erase(block);
  }

  void CallEnd(const Event& event, OfInstance& of) {
    const std::string call = a_.CallName(rank_, event.instance, event.call);
    if (call.starts_with("destroy")) {
      Leftovers(of);
      of = OfInstance{};
      return;
    }
    if (!call.starts_with("train_step")) return;
    if (a_.has_case()) AtRest(event, of, call);
    Judge(result_, {"FS-32"});
    if (of.rest < 0) of.rest = of.device_bytes;
    if (of.device_bytes <= of.rest) return;
    Add("FS-32", index_, std::to_string(of.rest) + " bytes, as after the first step",
        std::to_string(of.device_bytes) + " bytes",
        "device memory grows from step to step: something is not released");
    of.rest = of.device_bytes;
  }

  void AtRest(const Event& event, const OfInstance& of, const std::string& call) {
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (!facts.InGrid(trace_.rank)) return;
    if (facts.spec().strategy == ShardingStrategy::kLayerWise && !trace_.provides.results) {
      return CannotJudge(result_, {"FS-31"},
                         "the trace has no results, so what a rank owns is not known");
    }
    Judge(result_, {"FS-31"});
    const bool layer_wise = facts.spec().strategy == ShardingStrategy::kLayerWise;
    const Persistent allowed =
        layer_wise ? LayerWiseBytes(trace_, facts, event.instance) : PersistentBytes(facts, rank_);
    const auto kept = kept_.find(event.instance);
    const int64_t spared = kept == kept_.end() ? 0 : kept->second.SparedBytes();
    if (of.device_bytes <= allowed.formula + allowed.padding + spared) return;
    Add("FS-31", index_,
        "at most " + std::to_string(allowed.formula) + " bytes for " +
            facts.spec().strategy.Text() + " and " + std::to_string(allowed.padding) +
            " of padding and scratch" +
            (spared > 0 ? ", and " + std::to_string(spared) + " registered and idle"
                        : std::string()),
        std::to_string(of.device_bytes) + " bytes",
        "more device memory is held after " + call +
            " than the strategy allows: what should be sharded is not");
  }

  void Leftovers(const OfInstance& of) {
    Judge(result_, {"FS-33"});
    if (!a_.ended_well()) return;  // after an error leaks are not judged
    for (const auto& [id, block] : of.blocks) {
      Add("FS-33", block.event, "freed by destroy", std::to_string(block.bytes) + " bytes left",
          "a block is left behind after destroy");
    }
    for (const auto& [id, event] : of.streams)
      Add("FS-33", event, "destroyed", "alive", "a stream is left behind");
    for (const auto& [id, event] : of.events)
      Add("FS-33", event, "destroyed", "alive", "an event is left behind");
    for (const auto& [id, event] : of.groups)
      Add("FS-33", event, "destroyed", "alive", "a group is left behind");
  }

  void NotePeak() {
    if (rank_ != 0) return;
    for (const auto& [instance, peak] : peaks_) {
      result_.notes.push_back("rank 0, instance " + std::to_string(instance) +
                              ": peak device memory " + std::to_string(peak) + " bytes");
    }
  }

  std::map<int32_t, OfInstance> instances_;
  std::map<int32_t, KeptBuffers> kept_;  // by instance
  std::map<int32_t, int64_t> peaks_;
  int64_t index_ = 0;
};

}  // namespace

CheckResult CheckMemory(const Analysis& a) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.memory && trace.provides.calls) continue;
    CannotJudge(result, {"FS-31", "FS-32", "FS-33"},
                "rank " + std::to_string(trace.rank) + "'s trace has no memory events");
    return result;
  }
  if (!a.has_case()) NeedsCase(a, result, {"FS-31"});
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Memory(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
