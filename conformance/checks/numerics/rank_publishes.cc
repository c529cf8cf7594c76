// A rank that publishes a parameter after one train_step does so after each (FS-28): a replica that
// leaves a step out early would show nothing wrong, if others publish what it left.
#include "conformance/checks/numerics/rank_publishes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "conformance/checks/base/published.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

struct Elements {
  int64_t begin = 0, end = 0;
};

// Elements of one tensor: intervals that do not touch. Each is taken up once: n of them in
// n log n.
class ElementSet {
 public:
  void Add(Elements more) {
    if (more.begin >= more.end) return;
    auto next = ends_.upper_bound(more.begin);
    if (next != ends_.begin() && std::prev(next)->second >= more.begin) --next;
    while (next != ends_.end() && next->first <= more.end) {
      more.begin = std::min(more.begin, next->first);
      more.end = std::max(more.end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace_hint(next, more.begin, more.end);
  }
  void Add(const ElementSet& others) {
    for (const auto& [begin, end] : others.ends_) Add({begin, end});
  }
  bool empty() const { return ends_.empty(); }
  bool Has(int64_t element) const {
    const auto next = ends_.upper_bound(element);
    return next != ends_.begin() && element < std::prev(next)->second;
  }
  // The first of these that are not in the set; empty: all are.
  Elements FirstMissing(const ElementSet& wanted) const {
    for (const auto& [begin, end] : wanted.ends_) {
      const auto next = ends_.upper_bound(begin);
      const int64_t first =
          next == ends_.begin() ? begin : std::max(begin, std::prev(next)->second);
      if (first < end) return {first, next == ends_.end() ? end : std::min(end, next->first)};
    }
    return {};
  }

 private:
  std::map<int64_t, int64_t> ends_;  // by begin
};

// Of parameters (by key), what one rank publishes, by train_step.
using Shown = std::map<int32_t, std::map<int32_t, ElementSet>>;

Shown ShownBy(const Analysis& a, int instance, int32_t rank) {
  const InstanceFacts& facts = a.Facts(static_cast<size_t>(instance));
  Shown shown;
  for (const Event& event : a.trace(rank).events) {
    if (event.kind != EventKind::kPublish || event.instance != instance ||
        event.result != SPF_RESULT_PARAM || facts.CallAt(event.call).letter != 't')
      continue;
    const ParamFacts& param = facts.Param(rank, event.id);
    const bool fits = event.offset >= 0 && event.offset + event.count <= param.numel;
    if (!param.frozen && fits)
      shown[event.call][param.key].Add({event.offset, event.offset + event.count});
  }
  return shown;
}

// What it publishes after any train_step.
std::map<int32_t, ElementSet> EverOf(const Shown& shown) {
  std::map<int32_t, ElementSet> ever;
  for (const auto& [call, params] : shown) {
    for (const auto& [key, elements] : params) ever[key].Add(elements);
  }
  return ever;
}

// A train_step after which it publishes this element.
int32_t StepThatHas(const Shown& shown, int32_t key, int64_t element) {
  for (const auto& [call, params] : shown) {
    const auto of = params.find(key);
    if (of != params.end() && of->second.Has(element)) return call;
  }
  return -1;
}

}  // namespace

void JudgeRankPublishes(const Analysis& a, int instance, const OracleRun& oracle,
                        const Published& params, FindingSink& sink) {
  const InstanceFacts& facts = a.Facts(static_cast<size_t>(instance));
  const auto calls = static_cast<int32_t>(std::min(oracle.calls.size(), facts.calls().size()));
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    if (!facts.InGrid(rank)) continue;
    Shown shown = ShownBy(a, instance, rank);
    const auto ever = EverOf(shown);
    for (int32_t call = 0; call < calls; ++call) {
      const OracleCall& want = At(oracle.calls, call);
      if (want.letter != 't' || !want.updated || !params.AnyIn(call) ||
          !CallCompleted(a, instance, call))
        continue;
      for (const auto& [key, elements] : ever) {
        const Elements missing = shown[call][key].FirstMissing(elements);
        if (missing.begin == missing.end) continue;
        const std::string& name = facts.ByKey(key).name;
        const std::string range =
            "[" + std::to_string(missing.begin) + ", " + std::to_string(missing.end) + ")";
        const std::string other =
            a.CallName(rank, instance, StepThatHas(shown, key, missing.begin));
        sink.Add(a.AtCall("FS-28", rank, instance, call, rank),
                 "elements " + range + " of " + name + ", as in " + other,
                 shown[call][key].empty() ? "none of this parameter" : "others of it",
                 "the rank publishes these elements after " + other +
                     ", and not after this step: what other ranks publish does not show that this "
                     "rank's copy is updated");
        break;  // of this call: the rest follows
      }
    }
  }
}

}  // namespace shardproof
