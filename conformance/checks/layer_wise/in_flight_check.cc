// What goes on while a gather is under way: other gathers. Accesses to its bytes: race_check.cc.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/layer_wise/layer_wise.h"

namespace shardproof::layer_wise {

namespace {

constexpr size_t kOutstandingMax = 2;  // one that is being installed and one that travels

// Issue order: how many buckets of a chain are gathered and not yet where they belong?
class Outstanding {
 public:
  Outstanding(const Facts& facts, int32_t rank, Report& report)
      : facts_(facts), trace_(facts.a().trace(rank)), rank_(rank), report_(report) {
    for (const Gather& gather : facts.At(rank).gathers) {
      if (gather.group->world_ranks.size() > 1) gathers_[gather.event] = &gather;
    }
    for (const Event& event : trace_.events) {
      if (event.kind == EventKind::kCompute) computing_.insert(event.stream);
    }
  }

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      Sync(event);
      Touch(event);
      if (const auto at = gathers_.find(static_cast<int64_t>(i)); at != gathers_.end())
        Launch(event, *at->second);
    }
  }

 private:
  // A bucket that is gathered.
  struct Round {
    int32_t id = -1;  // Gather::round
    const Gather* last = nullptr;
    std::set<int32_t> streams;  // that nothing has waited for since
    std::vector<Range>
        to_install;  // other ranks' values in a buffer, that nothing has read or cleared
  };

  void Launch(const Event& event, const Gather& gather) {
    std::vector<Round>& chain = chains_[{gather.instance, gather.expert}];
    std::erase_if(chain, [](const Round& round) {
      return round.streams.empty() && round.to_install.empty();
    });
    auto round = std::find_if(chain.begin(), chain.end(),
                              [&](const Round& one) { return one.id == gather.round; });
    const bool begins = round == chain.end();
    if (begins) round = chain.insert(chain.end(), Round{gather.round, nullptr, {}, {}});
    round->last = &gather;
    // Where modules compute, it takes its turn among them.
    if (!computing_.contains(event.stream)) round->streams.insert(event.stream);
    for (const Share& share : gather.shares) {
      if (share.from == rank_ || facts_.Aligned(gather.instance)) continue;
      round->to_install.push_back({gather.to.alloc, kWrite, share.begin, share.end - share.begin});
    }
    // Without overlap all of them may be issued at once: nothing goes on beside them.
    if (!begins || !facts_.spec(gather.instance).overlap_param_gather) return;
    report_.Judged({"LW-24"});
    if (chain.size() <= kOutstandingMax) return;
    report_.Add("LW-24", rank_, gather.event, "at most two gathers of a chain under way",
                std::to_string(chain.size()) + " that nothing waited for, or installed",
                "gathers are launched further ahead than the next bucket: their buffers add up");
  }

  // What is copied on, cleared, computed with or given back is in a buffer no more.
  void Touch(const Event& event) {
    if (event.kind == EventKind::kAlloc) return;
    const auto end = [&](const auto& meets) {
      for (auto& [place, chain] : chains_) {
        for (Round& round : chain) std::erase_if(round.to_install, meets);
      }
    };
    if (GivesBack(event.kind)) end([&](const Range& at) { return at.alloc == event.alloc; });
    for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
      if (!TakesOn(event) && (trace_.ranges[k].access & kWrite) == 0) continue;
      end([&, k](const Range& at) { return Meet(at, trace_.ranges[k]); });
    }
  }

  // What it reads arrives elsewhere. Who looks at values, or publishes them, leaves them there.
  static bool TakesOn(const Event& event) {
    return event.kind == EventKind::kCopy || event.kind == EventKind::kCompute ||
           (event.kind == EventKind::kLaunch &&
            (event.id == SPF_K_AXPBY || event.id == SPF_K_CUSTOM));
  }

  // Work of this stream is waited for.
  void Done(int32_t stream, const std::set<const Gather*>* among = nullptr) {
    for (auto& [place, chain] : chains_) {
      for (Round& round : chain) {
        if (among == nullptr || among->contains(round.last)) round.streams.erase(stream);
      }
    }
  }

  void Sync(const Event& event) {
    switch (event.kind) {
      case EventKind::kRecord: {
        auto& [stream, gathers] = recorded_[event.event];
        stream = event.stream;
        gathers.clear();
        for (const auto& [place, chain] : chains_) {
          for (const Round& round : chain) {
            if (round.streams.contains(event.stream)) gathers.insert(round.last);
          }
        }
        return;
      }
      case EventKind::kWait:
      case EventKind::kEventSync: {
        const auto at = recorded_.find(event.event);
        if (at != recorded_.end() && event.stream != at->second.first)
          Done(at->second.first, &at->second.second);
        return;
      }
      case EventKind::kCompute:
      case EventKind::kStreamSync:
        return Done(event.stream);  // compute behind it on the same stream
      case EventKind::kDeviceSync:
        for (auto& [place, chain] : chains_) {
          for (Round& round : chain) round.streams.clear();
        }
        return;
      default:
        return;
    }
  }

  const Facts& facts_;
  const Trace& trace_;
  const int32_t rank_;
  Report& report_;
  std::map<int64_t, const Gather*> gathers_;                       // by event
  std::set<int32_t> computing_;                                    // streams
  std::map<std::pair<int32_t, bool>, std::vector<Round>> chains_;  // (instance, expert)
  std::map<int32_t, std::pair<int32_t, std::set<const Gather*>>>
      recorded_;  // event -> stream, gathers
};

}  // namespace

CheckResult CheckInFlight(const Facts& facts) {
  CheckResult result;
  const Analysis& a = facts.a();
  for (const Trace& trace : a.traces()) {
    if (trace.provides.sync && trace.provides.memory) continue;
    CannotJudge(result, {"LW-17", "LW-24"},
                "rank " + std::to_string(trace.rank) + "'s trace lacks synchronisation or memory");
    return result;
  }
  Report report(facts, result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Outstanding(facts, rank, report).Run();
  JudgeRaces(facts, report);
  return result;
}

}  // namespace shardproof::layer_wise
