#include "conformance/checks/order/lost_prefetch.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "conformance/checks/base/rank_check.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// The gather of a unit, in the forward or the backward of a microbatch.
struct Gather {
  int64_t event = -1;
  bool ahead = false;  // something else was computed between it and the first read
};

class LostPrefetch : RankCheck {
 public:
  LostPrefetch(const Analysis& a, int32_t rank, int instance, const RankWindows& windows,
               CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        windows_(windows) {}

  void Judge() {
    const std::vector<ScriptCall>& calls = facts_.calls();
    for (int32_t call = 1; call < Length(calls); ++call) {
      if (At(calls, call - 1).letter != 't' || At(calls, call).letter != 't') continue;
      const Gathers before = GathersOf(call - 1), now = GathersOf(call);
      if (before.empty() || Passes(before) != Passes(now)) continue;
      shardproof::Judge(result_, {"FS-45"});
      for (const auto& [place, gather] : now) {
        const auto was = before.find(place);
        if (gather.ahead || was == before.end() || !was->second.ahead) continue;
        Tell(call, std::get<2>(place), gather.event);
        return;  // later steps follow from it
      }
    }
  }

 private:
  // Microbatch; whether it is in backward; unit; how often the unit was gathered there before.
  using Place = std::tuple<int32_t, bool, int32_t, int32_t>;
  using Gathers = std::map<Place, Gather>;

  const Event& EventAt(int64_t index) const { return At(trace_.events, index); }

  // Places without their count. A step that uses other units, or in other microbatches, may have
  // nowhere to gather from ahead.
  static std::set<std::tuple<int32_t, bool, int32_t>> Passes(const Gathers& gathers) {
    std::set<std::tuple<int32_t, bool, int32_t>> passes;
    for (const auto& [place, gather] : gathers) {
      const auto& [microbatch, backward, unit, count] = place;
      passes.insert({microbatch, backward, unit});
    }
    return passes;
  }

  // Of what is read in this call. One that was gathered in the call before is ahead too.
  Gathers GathersOf(int32_t call) const {
    Gathers gathers;
    for (const Window& window : windows_.windows) {
      if (window.instance != instance_ || window.unit < 0 || window.reads.empty()) continue;
      const Event& read = EventAt(window.reads.front());
      if (read.call != call) continue;
      Place place = {read.microbatch, read.phase != SPF_FWD || read.flag, window.unit, 0};
      while (gathers.contains(place)) ++std::get<3>(place);
      gathers[place] = {window.gather, IsAhead(window)};
    }
    return gathers;
  }

  bool IsAhead(const Window& window) const {
    const auto begin = trace_.events.begin();
    return std::any_of(begin + window.gather, begin + window.reads.front(), [&](const Event& e) {
      return e.kind == EventKind::kCompute && e.instance == instance_;
    });
  }

  void Tell(int32_t call, int32_t unit, int64_t event) {
    const std::string name = facts_.ModuleName(unit, rank_);
    Add("FS-45", event, "unit " + name + " gathered ahead, as in " + CallText(call - 1),
        "gathered where it is needed",
        "the prefetch of unit " + name + " is lost: " + CallText(call - 1) + " has it, " +
            CallText(call) + " has not");
  }
  std::string CallText(int32_t call) const { return a_.CallName(rank_, instance_, call); }

  const int instance_;
  const InstanceFacts& facts_;
  const RankWindows& windows_;
};

}  // namespace

void JudgeLostPrefetch(const Analysis& a, int32_t rank, const RankWindows& windows,
                       CheckResult& result, FindingSink& sink) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceFacts& facts = a.Facts(i);
    if (!facts.InGrid(rank) || !ShardsParams(facts.spec()) || facts.Interleaves()) continue;
    LostPrefetch(a, rank, static_cast<int>(i), windows, result, sink).Judge();
  }
}

}  // namespace shardproof
