// A rank that publishes a parameter after one train_step does so after each (FS-28): a replica that
// leaves a step out early would show nothing wrong, if others publish what it left.
#include "conformance/checks/numerics/rank_publishes.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/base/published.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

struct Elements {
  int64_t begin = 0, end = 0;
};

// Elements of one tensor: intervals, in order, that do not touch.
class ElementSet {
 public:
  void Add(Elements more) {
    if (more.begin >= more.end) return;
    const auto touches = [&](const Elements& one) {
      return one.begin <= more.end && more.begin <= one.end;
    };
    for (const Elements& one : parts_) {
      if (!touches(one)) continue;
      more.begin = std::min(more.begin, one.begin);
      more.end = std::max(more.end, one.end);
    }
    std::erase_if(parts_, touches);
    parts_.insert(
        std::upper_bound(parts_.begin(), parts_.end(), more.begin,
                         [](int64_t begin, const Elements& one) { return begin < one.begin; }),
        more);
  }
  const std::vector<Elements>& parts() const { return parts_; }
  // The first of these that are not in the set; empty: all are.
  Elements FirstMissing(const ElementSet& wanted) const {
    for (Elements want : wanted.parts_) {
      for (const Elements& one : parts_) {
        if (one.begin <= want.begin && want.begin < one.end)
          want.begin = std::min(want.end, one.end);
        else if (want.begin < one.begin)
          want.end = std::min(want.end, one.begin);
      }
      if (want.begin < want.end) return want;
    }
    return {};
  }

 private:
  std::vector<Elements> parts_;
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
    for (const auto& [key, elements] : params) {
      for (const Elements& part : elements.parts()) ever[key].Add(part);
    }
  }
  return ever;
}

// A train_step after which it publishes this element.
int32_t StepThatHas(const Shown& shown, int32_t key, int64_t element) {
  for (const auto& [call, params] : shown) {
    const auto of = params.find(key);
    if (of == params.end()) continue;
    for (const Elements& part : of->second.parts()) {
      if (part.begin <= element && element < part.end) return call;
    }
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
                 shown[call][key].parts().empty() ? "none of this parameter" : "others of it",
                 "the rank publishes these elements after " + other +
                     ", and not after this step: what other ranks publish does not show that this "
                     "rank's copy is updated");
        break;  // of this call: the rest follows
      }
    }
  }
}

}  // namespace shardproof
