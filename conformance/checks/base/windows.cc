#include "conformance/checks/base/windows.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

int64_t Window::NextRead(int64_t event) const {
  const auto at = std::upper_bound(reads.begin(), reads.end(), event);
  return at == reads.end() ? -1 : *at;
}

int64_t Window::FirstInBackward(const Trace& trace) const {
  const auto at = std::find_if(reads.begin(), reads.end(), [&](int64_t read) {
    const Event& event = At(trace.events, read);
    return event.phase != SPF_FWD || event.flag;
  });
  return at == reads.end() ? -1 : *at;
}

bool Window::KeptInPipeline(const InstanceSpec& spec, const Trace& trace, int64_t event) const {
  return spec.chunks > 1 && spec.reshard_after_forward == 0 && BetweenPasses(trace, event);
}

bool Window::BetweenPasses(const Trace& trace, int64_t event) const {
  std::set<int32_t> forward;
  for (const int64_t read : reads) {
    const Event& at = At(trace.events, read);
    const bool backward = at.phase != SPF_FWD || at.flag;
    if (read < event && !backward) forward.insert(at.microbatch);
    if (read > event && backward && forward.contains(at.microbatch)) return true;
  }
  return false;
}

namespace {

class Walk {
 public:
  Walk(const Analysis& a, int32_t rank) : a_(a), rank_(rank), trace_(a.trace(rank)) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      if (carried.gather && !IsOuter(a_, rank_, carried))
        gathers_.emplace(carried.event, carried.params);
    }
  }

  RankWindows Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Step(static_cast<int64_t>(i), trace_.events[i]);
    return std::move(out_);
  }

 private:
  void Step(int64_t index, const Event& event) {
    switch (event.kind) {
      case EventKind::kFree:
      case EventKind::kRelease:
        return Close(held_.EraseBlock(event.alloc), index);
      case EventKind::kCollective:
        Erase(index, event);
        if (const auto gather = gathers_.find(index); gather != gathers_.end())
          Gather(index, event, gather->second);
        return;
      case EventKind::kCompute:
        Use(index, event);
        return;
      case EventKind::kCopy:
        Copy(index, event);
        return;
      case EventKind::kLaunch:
        if (event.id == SPF_K_AXPBY) return Copy(index, event);
        Erase(index, event);
        return;
      case EventKind::kInit:
        Erase(index, event);
        return;
      default:
        return;
    }
  }

  // Bytes that are overwritten no longer hold what was gathered.
  void Erase(int64_t index, const Event& event) {
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      const Range& range = trace_.ranges[i];
      if ((range.access & kWrite) != 0) EraseRange(index, range);
    }
  }

  void EraseRange(int64_t index, const Range& range) {
    Close(held_.Erase(range.alloc, range.offset, range.offset + range.length), index);
  }
  // Windows that lost bytes.
  void Close(const std::set<size_t>& windows, int64_t index) {
    for (const size_t w : windows) {
      Window& window = out_.windows[w];
      if (window.release < 0 && held_.Bytes(w) <= MayKeep(window)) window.release = index;
    }
  }

  // Bytes of a unit that has been read in forward, and has its backward still to come. Shards may
  // be padded by one row each, of as many ranks as there are with outer ones that shard, too.
  int64_t MayKeep(const Window& window) const {
    const InstanceFacts& facts = a_.Facts(size_t(window.instance));
    const bool trains = facts.CallAt(window.call).letter == 't';
    if (!ReshardsToFewer(facts.spec()) || !trains || window.unit < 0 || window.reads.empty() ||
        window.FirstInBackward(trace_) >= 0)
      return 0;
    const std::vector<int32_t>* shards = facts.FullList(false, rank_);
    int64_t bytes = 0;
    for (int32_t id = 0; id < facts.n_params(rank_); ++id) {
      const ParamFacts& param = facts.Param(rank_, id);
      if (param.unit != window.unit || param.expert) continue;
      const int64_t padding = param.row * (shards == nullptr ? 1 : Length(*shards));
      bytes += (param.numel + padding) * static_cast<int64_t>(DtypeBytes(param.dtype));
    }
    return bytes / facts.spec().reshard_after_forward;
  }

  void Gather(int64_t index, const Event& event, const std::vector<Chunk>& params) {
    const Range* recv = RecvRange(trace_, event);
    const InstanceFacts& facts = a_.Facts(event.instance);
    for (const Chunk& chunk : params) {
      const int32_t unit = facts.ByKey(chunk.content.param).unit;
      const size_t window = WindowFor(index, event, unit);
      out_.windows[window].bytes += chunk.length;
      out_.windows[window].last_gather = index;
      const int64_t begin = recv->offset + chunk.offset;
      held_.Put(recv->alloc, begin, begin + chunk.length, window);
    }
  }

  // The unit's window that is open and unread, or a new one.
  size_t WindowFor(int64_t index, const Event& event, int32_t unit) {
    for (size_t w = out_.windows.size(); w-- > 0;) {
      const Window& window = out_.windows[w];
      if (window.unit != unit || window.instance != event.instance || window.call != event.call)
        continue;
      if (window.release < 0 && window.reads.empty()) return w;
      break;
    }
    Window window;
    window.instance = event.instance;
    window.unit = unit;
    window.call = event.call;
    window.gather = index;
    out_.windows.push_back(window);
    return out_.windows.size() - 1;
  }

  // A copy or cast of gathered bytes is as materialised as they are.
  void Copy(int64_t index, const Event& event) {
    if (event.ranges.size() < 2) return Erase(index, event);
    if (event.ranges.size() == 2)
      return Copy(index, trace_.ranges[event.ranges.begin], trace_.ranges[event.ranges.begin + 1]);
    for (const auto& [from, to] : CopiedRuns(trace_, event)) Copy(index, from, to);
  }
  void Copy(int64_t index, const Range& from, const Range& to) {
    if ((to.access & kRead) != 0 || (to.access & kWrite) == 0) return;
    const auto copied = held_.Get(from.alloc, from.offset, from.offset + from.length);
    EraseRange(index, to);
    const auto scaled = [&](int64_t byte) {
      return to.offset + (byte - from.offset) * to.length / from.length;
    };
    for (const auto& piece : copied) {
      if (out_.windows[piece.value].release >= 0) continue;
      held_.Put(to.alloc, scaled(piece.begin), scaled(piece.end), piece.value);
    }
  }

  // Backward of a node need not read the parameters that were gathered for it. Of two copies a side
  // computes with its own: what nobody has read yet waits for backward.
  static bool ComputesWith(const Window& window, const InstanceFacts& facts, int8_t side) {
    return !facts.spec().backward_copies || window.side == side || (window.side < 0 && side == 1);
  }

  void Use(int64_t index, const Event& event) {
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (event.id < 0 || event.id >= facts.node_count(rank_)) return;
    const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    ParamUse use{index, event.instance, {}};
    const int8_t side = event.phase == SPF_FWD ? 0 : 1;
    const int32_t own = facts.UnitOfModule(facts.Node(event.id, rank_).module, rank_);
    for (Window& window : out_.windows) {
      if (own >= 0 && window.unit == own && window.instance == event.instance &&
          window.release < 0 && ComputesWith(window, facts, side)) {
        window.reads.push_back(index);
      }
    }
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != SPF_IN_PARAM) continue;
      use.units.push_back(facts.Param(rank_, uses.use[i].id).unit);
      const Range& range = trace_.ranges[event.ranges.begin + size_t(i)];
      for (const auto& piece : held_.Get(range.alloc, range.offset, range.offset + range.length)) {
        Window& window = out_.windows[piece.value];
        if (window.side < 0) window.side = side;
        std::vector<int64_t>& reads = window.reads;
        if (reads.empty() || reads.back() != index) reads.push_back(index);
      }
    }
    if (!use.units.empty()) out_.uses.push_back(std::move(use));
  }

  const Analysis& a_;
  const int32_t rank_;
  const Trace& trace_;
  std::unordered_map<int64_t, std::vector<Chunk>> gathers_;
  ByteMap<size_t> held_;  // by window
  RankWindows out_;
};

}  // namespace

RankWindows FindWindows(const Analysis& a, int32_t rank) { return Walk(a, rank).Run(); }

}  // namespace shardproof
