// Blocks and handles: bytes at rest, drift over steps, and what is left at the end.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/lifetime/at_rest.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/lifetime/user_buffers.h"

namespace shardproof {

namespace {

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
    std::set<int32_t> released;  // of these, those that a pool has not reused yet
  };

  // A pool keeps memory and marks what is dead. With nccl_ub registered memory stays where it is.
  void Keep(const Event& event) {
    const bool has_spec = a_.has_case() && event.instance < a_.n_instances();
    const bool twice = has_spec && a_.Facts(event.instance).spec().double_buffer;
    pools_.try_emplace(event.instance, trace_, SPF_DEVICE, twice).first->second.See(event);
    if (!has_spec || !a_.Facts(event.instance).spec().nccl_ub) return;
    kept_.try_emplace(event.instance, trace_, SPF_REGISTRABLE, twice).first->second.See(event);
  }
  static int64_t Spared(const std::map<int32_t, KeptBuffers>& of, int32_t instance) {
    const auto at = of.find(instance);
    return at == of.end() ? 0 : at->second.SparedBytes();
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
      case EventKind::kRelease:
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
      if (event.kind == EventKind::kFree && of.released.erase(event.alloc) > 0) return;
      Add("FS-33", index_, "each block freed once",
          "block " + std::to_string(event.alloc) + " freed " +
              (of.freed.contains(event.alloc) ? "again" : "without an alloc"),
          "a block is freed twice, or was never allocated");
      return;
    }
    if (block->second.device) of.device_bytes -= block->second.bytes;
    of.freed.insert(event.alloc);
    if (event.kind == EventKind::kRelease) of.released.insert(event.alloc);
    of.blocks.erase(block);
  }

  void CallEnd(const Event& event, OfInstance& of) {
    const std::string_view name = trace_.Text(event.text);
    if (name == "destroy") {
      Leftovers(of);
      of = OfInstance{};
      return;
    }
    if (name != "train_step") return;
    if (a_.has_case()) AtRest(event, of, a_.CallName(rank_, event.instance, event.call));
    Judge(result_, {"FS-32"});
    const int64_t bytes = of.device_bytes - Spared(pools_, event.instance);
    if (of.rest < 0) of.rest = bytes;
    if (bytes <= of.rest) return;
    Add("FS-32", index_, std::to_string(of.rest) + " bytes, as after the first step",
        std::to_string(bytes) + " bytes",
        "device memory grows from step to step: something is not released");
    of.rest = bytes;
  }

  void AtRest(const Event& event, const OfInstance& of, const std::string& call) {
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (!facts.InGrid(trace_.rank)) return;
    if (facts.spec().strategy == ShardingStrategy::kLayerWise && !trace_.provides.results) {
      return CannotJudge(result_, {"FS-31"},
                         "the trace has no results, so what a rank owns is not known");
    }
    Judge(result_, {"FS-31"});
    const Allowed allowed = AllowedAtRest(a_, rank_, event.instance);
    const int64_t kept = Spared(kept_, event.instance), pool = Spared(pools_, event.instance);
    if (of.device_bytes <= allowed.formula + allowed.padding + kept + pool) return;
    Add("FS-31", index_,
        "at most " + std::to_string(allowed.formula) + " bytes for " +
            facts.spec().strategy.Text() + " and " + std::to_string(allowed.padding) +
            " of padding and scratch" + Beside(kept, " registered and idle") +
            Beside(pool, " discarded and kept for use"),
        std::to_string(of.device_bytes) + " bytes",
        "more device memory is held after " + call +
            " than the strategy allows: what should be sharded is not");
  }
  static std::string Beside(int64_t bytes, const char* what) {
    return bytes > 0 ? ", and " + std::to_string(bytes) + what : std::string();
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
  std::map<int32_t, KeptBuffers> kept_, pools_;  // registered; other device memory: by instance
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
