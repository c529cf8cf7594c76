// A rank that publishes a parameter after one train_step does so after each (FS-28): a replica that
// leaves a step out early would show nothing wrong, if others publish what it left.
#include "conformance/checks/numerics/rank_publishes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "conformance/checks/base/published.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

// Elements of parameters (by key) that one rank publishes, by entry call.
using Shown = std::map<int32_t, std::map<int32_t, int64_t>>;

Shown ShownBy(const Analysis& a, int instance, int32_t rank) {
  const InstanceFacts& facts = a.Facts(static_cast<size_t>(instance));
  Shown shown;
  for (const Event& event : a.trace(rank).events) {
    if (event.kind != EventKind::kPublish || event.instance != instance ||
        event.result != SPF_RESULT_PARAM || facts.CallAt(event.call).letter != 't')
      continue;
    const ParamFacts& param = facts.Param(rank, event.id);
    if (!param.frozen) shown[event.call][param.key] += event.count;
  }
  return shown;
}

// The train_step in which most is published of each parameter, and how much.
std::map<int32_t, std::pair<int32_t, int64_t>> MostOf(const Shown& shown) {
  std::map<int32_t, std::pair<int32_t, int64_t>> most;
  for (const auto& [call, params] : shown) {
    for (const auto& [key, count] : params) {
      auto& [at, largest] = most[key];
      if (count <= largest) continue;
      at = call;
      largest = count;
    }
  }
  return most;
}

}  // namespace

void JudgeRankPublishes(const Analysis& a, int instance, const OracleRun& oracle,
                        const Published& params, FindingSink& sink) {
  const InstanceFacts& facts = a.Facts(static_cast<size_t>(instance));
  const auto calls = static_cast<int32_t>(std::min(oracle.calls.size(), facts.calls().size()));
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    if (!facts.InGrid(rank)) continue;
    Shown shown = ShownBy(a, instance, rank);
    const auto most = MostOf(shown);
    for (int32_t call = 0; call < calls; ++call) {
      const OracleCall& want = At(oracle.calls, call);
      if (want.letter != 't' || !want.updated || !params.AnyIn(call) ||
          !CallCompleted(a, instance, call))
        continue;
      for (const auto& [key, largest] : most) {
        const int64_t count = shown[call][key];
        if (count >= largest.second) continue;
        sink.Add(a.AtCall("FS-28", rank, instance, call, rank),
                 std::to_string(largest.second) + " elements of " + facts.ByKey(key).name +
                     ", as in " + a.CallName(rank, instance, largest.first),
                 count == 0 ? "none" : std::to_string(count),
                 "the rank publishes " + facts.ByKey(key).name + " after " +
                     a.CallName(rank, instance, largest.first) +
                     ", and not all of that after this step: what other ranks publish does not "
                     "show that this rank's copy is updated");
        break;  // of this call: the rest follows
      }
    }
  }
}

}  // namespace shardproof
