// Where gathered values arrive, who copies them on, and what is left of it.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/common/at.h"

namespace shardproof::layer_wise {

namespace {

using Kind = Content::Kind;

// Elements that a gather brought and that are still where they arrived.
struct Arrival {
  const Gather* gather = nullptr;
  int32_t key = -1;
  bool own = false, read = false;
  Range at;
};

class Buffers : RankCheck {
 public:
  Buffers(const Facts& facts, int32_t rank, CheckResult& result) : RankCheck(facts, rank, result) {
    CollectStorage();
    for (const Gather& gather : facts.At(rank).gathers) {
      if (gather.group->world_ranks.size() > 1) gathers_[gather.event] = &gather;
    }
  }

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      index_ = static_cast<int64_t>(i);
      const Event& event = trace_.events[i];
      if (!facts_.LayerWise(event.instance)) continue;
      if (GivesBack(event.kind)) Free(event);
      if (event.kind == EventKind::kCompute) FirstGradient(event);
      JudgeOwn(event);
      Touch(event);
      if (const auto at = gathers_.find(index_); at != gathers_.end()) Arrive(*at->second);
      if (event.kind == EventKind::kCallEnd && event.status == SPF_OK) CallEnd(event);
    }
  }

 private:
  // Where nodes read parameters and add gradients.
  void CollectStorage() {
    for (const Event& event : trace_.events) {
      if (event.kind != EventKind::kCompute || !facts_.LayerWise(event.instance)) continue;
      const InstanceFacts& of = facts_.Of(event.instance);
      const spf_uses& uses = of.Node(event.id, rank_).uses[event.phase];
      if (static_cast<uint32_t>(uses.n) != event.ranges.size()) continue;
      for (int32_t k = 0; k < uses.n; ++k) {
        const Range& range = trace_.ranges[event.ranges.begin + size_t(k)];
        if (uses.use[k].table == SPF_IN_PARAM)
          homes_[of.Param(rank_, uses.use[k].id).key][{range.alloc, range.offset}] = range;
        if (uses.use[k].table == SPF_IN_GRAD) grads_.insert(range.alloc);
      }
    }
    for (const auto& [key, ranges] : homes_) {
      for (const auto& [place, range] : ranges) home_blocks_.insert(place.first);
    }
  }
  bool InHome(int32_t key, const Range& range) const {
    const auto at = homes_.find(key);
    return at != homes_.end() &&
           std::any_of(at->second.begin(), at->second.end(),
                       [&](const auto& home) { return Meet(home.second, range); });
  }
  const std::string& Name(const Arrival& arrival) const {
    return facts_.Of(arrival.gather->instance).ByKey(arrival.key).name;
  }

  void Arrive(const Gather& gather) {
    report_.Judged({"LW-12"});
    if (!facts_.Aligned(gather.instance)) JudgePlace(gather);
    if (gather.stays) return;
    for (const Share& share : gather.shares) {
      const Range at{gather.to.alloc, kWrite, share.begin, share.end - share.begin};
      const int32_t owner = facts_.Owner(gather.instance, rank_, share.key);
      if (owner == rank_ && !gather.in_place && InHome(share.key, at))
        WroteOwn(index_, gather.instance, share.key);
      arrived_.insert(gather.instance);
      const bool installed = owner != rank_ && InHome(share.key, at);
      if (owner >= 0 && !installed)
        arrivals_.push_back({&gather, share.key, owner == rank_, false, at});
    }
    if (facts_.Letter(gather.instance, gather.call) == 't') JudgeGradientStorage(gather);
  }

  void JudgePlace(const Gather& gather) {
    // The root of a broadcast has its values already: they may stay where they are.
    const Event& event = At(trace_.events, gather.event);
    if (event.collective == SPF_BROADCAST && At(gather.group->world_ranks, event.peer) == rank_)
      return;
    report_.Judged({"LW-21"});
    const bool grads = facts_.spec(gather.instance).layer_wise.buffer == LayerWiseBuffer::kGrads;
    const bool seen_grads = grads_.contains(gather.to.alloc),
               seen_home = home_blocks_.contains(gather.to.alloc);
    // Storage of gradients that no node of this rank adds to is not known as such.
    if (grads ? !seen_home && (seen_grads || !OwnBuffer(gather)) : !seen_home && !seen_grads)
      return;
    report_.Add("LW-21", rank_, gather.event,
                grads ? "in the bucket's gradient storage" : "in a buffer of its own",
                seen_grads  ? "in gradient storage"
                : seen_home ? "in the model weights"
                            : "in another buffer",
                "gathered values arrive elsewhere than layer_wise_buffer asks");
  }
  // The block was allocated in the same entry call.
  bool OwnBuffer(const Gather& gather) const {
    for (int64_t i = gather.event; i-- > 0;) {
      const Event& event = At(trace_.events, i);
      if (event.kind == EventKind::kAlloc && event.alloc == gather.to.alloc) {
        return event.instance == gather.instance && event.call == gather.call;
      }
    }
    return false;
  }

  // Nothing of this step's gradients is overwritten while there are more to come.
  void JudgeGradientStorage(const Gather& gather) {
    report_.Judged({"LW-23"});
    const auto backward = facts_.At(rank_).backward.find({gather.instance, gather.call});
    if (backward == facts_.At(rank_).backward.end() || gather.event > backward->second.second)
      return;
    const Event& event = At(trace_.events, gather.event);
    const Range* recv = RecvRange(trace_, event);
    if (recv == nullptr) return;
    const EventFlow& flow = a_.flow().At(rank_, gather.event);
    for (const Chunk& chunk : Only(flow.before[RangeIndex(trace_, event, recv)], Kind::kGrad)) {
      const auto& set = a_.flow().sets().Get(chunk.content.tag);
      if (std::none_of(set.begin(), set.end(),
                       [&](const Contribution& one) { return one.call == gather.call; }))
        continue;
      report_.Add("LW-23", rank_, gather.event, "gathers before the step's first gradient",
                  a_.ContentText(chunk.content),
                  "a gather writes where gradients of this step are already added up");
      return;
    }
  }

  // A copy of gathered values onto the rank's own weights.
  void JudgeOwn(const Event& event) {
    if (event.kind == EventKind::kCopy) {
      for (const auto& [from, to] : CopiedRuns(trace_, event)) {
        if (CopiesOwn(event, from, to)) return;
      }
    } else if (event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY &&
               event.ranges.size() >= 2) {
      const Range* ranges = trace_.ranges.data() + event.ranges.begin;
      CopiesOwn(event, ranges[0], ranges[1]);
    }
  }
  bool CopiesOwn(const Event& event, const Range& from, const Range& to) {
    for (const Arrival& arrival : arrivals_) {
      if (!arrival.own || !Meet(arrival.at, from) || !InHome(arrival.key, to)) continue;
      if ((to.access & kRead) != 0) continue;
      WroteOwn(index_, event.instance, arrival.key);
      return true;
    }
    return false;
  }
  void WroteOwn(int64_t event, int32_t instance, int32_t key) {
    const std::string& name = facts_.Of(instance).ByKey(key).name;
    report_.Add(
        "LW-12", rank_, event, "only other ranks' parameters are written", "the rank's own " + name,
        "gathered values overwrite the model weights of " + name + ", which this rank owns");
  }

  // Reads first: an operation may read and write.
  void Touch(const Event& event) {
    if (GivesBack(event.kind) || event.kind == EventKind::kAlloc) return;
    for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
      const Range& range = trace_.ranges[k];
      for (Arrival& arrival : arrivals_)
        arrival.read |= (range.access & kRead) != 0 && Meet(arrival.at, range);
    }
    for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
      const Range& range = trace_.ranges[k];
      if ((range.access & kWrite) == 0) continue;
      const bool clears = event.kind == EventKind::kLaunch && event.id == SPF_K_FILL;
      End([&](const Arrival& arrival) { return Meet(arrival.at, range); },
          clears ? "LW-22" : "LW-18", clears ? "cleared" : "overwritten");
    }
  }
  void Free(const Event& event) {
    End([&](const Arrival& arrival) { return arrival.at.alloc == event.alloc; }, "LW-18", "freed");
  }
  template <class F>
  void End(F&& ended, const char* requirement, const std::string& how) {
    const auto lost = std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
      return ended(arrival) && Lost(arrival);
    });
    if (lost != arrivals_.end()) {
      report_.Add(requirement, rank_, index_, Name(*lost) + " installed first", "not installed",
                  Name(*lost) + " was gathered, at event " + std::to_string(lost->gather->event) +
                      ", and is " + how + " before anything installed it");
    }
    std::erase_if(arrivals_, ended);
  }
  // Somebody else's values that are only here, in a buffer.
  bool Lost(const Arrival& arrival) const {
    return !arrival.own && !arrival.read && !facts_.Aligned(arrival.gather->instance);
  }

  // Everything is installed before the first gradient of a step.
  void FirstGradient(const Event& event) {
    const auto backward = facts_.At(rank_).backward.find({event.instance, event.call});
    if (backward == facts_.At(rank_).backward.end() || backward->second.first != index_) return;
    if (facts_.Letter(event.instance, event.call) != 't') return;
    if (arrived_.contains(event.instance)) report_.Judged({"LW-18"});
    JudgeInstalled(event.instance, "before the step's first gradient");
    for (const auto& [index, gather] : gathers_) {
      if (gather->instance != event.instance || gather->call != event.call ||
          gather->epoch == event.call)
        continue;
      if (index < index_) continue;
      report_.Add(
          "LW-18", rank_, index, "before the step's first gradient", "after it",
          "a gather of the last step's values is issued when gradients of this step are there");
      return;
    }
  }
  void JudgeInstalled(int32_t instance, const std::string& when) {
    for (const Arrival& arrival : arrivals_) {
      if (arrival.gather->instance != instance || !Lost(arrival)) continue;
      report_.Add(
          "LW-18", rank_, arrival.gather->event, Name(arrival) + " installed " + when,
          "not installed",
          Name(arrival) + " is gathered, and nothing copies it to the model weights " + when);
      return;
    }
  }

  void CallEnd(const Event& event) {
    const char letter = facts_.Letter(event.instance, event.call);
    if (letter != 't' && letter != 's') return;
    JudgeInstalled(event.instance,
                   "before " + a_.CallName(rank_, event.instance, event.call) + " returns");
    if (arrived_.contains(event.instance)) report_.Judged({"LW-18", "LW-25"});
    for (const Arrival& arrival : arrivals_) {
      const int32_t alloc = arrival.at.alloc;
      const bool in_storage =
          facts_.spec(event.instance).layer_wise.buffer == LayerWiseBuffer::kGrads &&
          !OwnBuffer(*arrival.gather);
      if (arrival.gather->instance != event.instance || facts_.Aligned(event.instance) ||
          in_storage)
        continue;
      if (home_blocks_.contains(alloc) || grads_.contains(alloc)) continue;
      report_.Add(
          "LW-25", rank_, arrival.gather->event,
          "its buffer freed before " + a_.CallName(rank_, event.instance, event.call) + " returns",
          "block " + std::to_string(alloc) + " is still there",
          "a gather's buffer is kept beyond its use");
      return;
    }
  }

  int64_t index_ = 0;
  std::map<int32_t, std::map<std::pair<int32_t, int64_t>, Range>>
      homes_;                                 // by key, (block, offset)
  std::set<int32_t> home_blocks_, grads_;     // blocks
  std::map<int64_t, const Gather*> gathers_;  // by event
  std::set<int32_t> arrived_;                 // instances of which something did
  std::vector<Arrival> arrivals_;
};

}  // namespace

CheckResult CheckBuffers(const Facts& facts) {
  CheckResult result;
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Buffers(facts, rank, result).Run();
  if (!facts.Deals()) return result;
  const std::string unseen = "no gather that brings parameters is seen";
  Report(facts, result).Unseen({"LW-12"}, unseen, facts.Gathers(), "that needs none");
  Report(facts, result)
      .Unseen({"LW-18", "LW-25"}, unseen + " in a train_step", facts.Gathers(true),
              "that needs none there");
  return result;
}

}  // namespace shardproof::layer_wise
