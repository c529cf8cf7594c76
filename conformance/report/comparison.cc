#include "conformance/report/comparison.h"

#include <algorithm>
#include <set>

#include "conformance/report/failures.h"

namespace shardproof {
namespace {

bool IsKnown(Judgement judgement) { return judgement != Judgement::kFollows; }

void Put(ChangedCases& cases, const std::string& requirement, const std::string& id) {
  cases[requirement].push_back(id);
}

// Then what the case does not judge any more may follow from that.
bool NewlyBroken(const ReadCase& before, const ReadCase& after) {
  return std::any_of(after.requirements.begin(), after.requirements.end(), [&](const auto& one) {
    const auto was = before.requirements.find(one.first);
    return one.second == Judgement::kBroken &&
           (was == before.requirements.end() || was->second != Judgement::kBroken);
  });
}

// Answers whether something has changed.
bool CompareCase(const std::string& id, const ReadCase& before, const ReadCase& after,
                 Comparison* out) {
  std::set<std::string> requirements;
  for (const auto& [requirement, as] : before.requirements) requirements.insert(requirement);
  for (const auto& [requirement, as] : after.requirements) requirements.insert(requirement);
  const bool ends_early = NewlyBroken(before, after);
  bool changed = false;
  for (const std::string& requirement : requirements) {
    const auto was = before.requirements.find(requirement);
    const auto is = after.requirements.find(requirement);
    const bool was_known = was != before.requirements.end() && IsKnown(was->second);
    ChangedCases* to = nullptr;
    if (is == after.requirements.end()) {
      if (was_known && !ends_early) to = &out->lost;
    } else if (is->second == Judgement::kBroken) {
      if (!was_known || was->second != Judgement::kBroken) to = &out->broken;
    } else if (is->second == Judgement::kWaived) {
      if (!was_known || was->second != Judgement::kWaived) to = &out->waived;
    } else if (is->second == Judgement::kHolds) {
      if (was_known && was->second != Judgement::kHolds) to = &out->fixed;
    }
    if (to != nullptr) Put(*to, requirement, id);
    changed = changed || to != nullptr;
  }
  return changed;
}

void SmallestFirst(ChangedCases& changed) {
  for (auto& [requirement, ids] : changed) std::sort(ids.begin(), ids.end(), IsSmaller);
}

}  // namespace

Comparison Compare(const ReadReport& earlier, const ReadReport& later) {
  Comparison out;
  out.earlier_verdict = earlier.verdict;
  out.later_verdict = later.verdict;
  for (const auto& [id, before] : earlier.cases) {
    const auto after = later.cases.find(id);
    if (after != later.cases.end()) {
      out.same += CompareCase(id, before, after->second, &out) ? 0 : 1;
    } else if (!before.requirements.empty()) {  // one in which nothing was judged is no loss
      out.gone.push_back(id);
    }
  }
  for (const auto& [id, after] : later.cases) {
    if (earlier.cases.contains(id)) continue;
    out.fresh.push_back(id);
    for (const auto& [requirement, as] : after.requirements) {
      if (as == Judgement::kBroken) Put(out.broken, requirement, id);
    }
  }
  for (const std::string& problem : later.problems) {
    const auto known = std::find(earlier.problems.begin(), earlier.problems.end(), problem);
    if (known == earlier.problems.end()) out.problems.push_back(problem);
  }
  for (ChangedCases* changed : {&out.broken, &out.fixed, &out.lost, &out.waived})
    SmallestFirst(*changed);
  std::sort(out.gone.begin(), out.gone.end(), IsSmaller);
  std::sort(out.fresh.begin(), out.fresh.end(), IsSmaller);
  for (const auto& [requirement, ids] : out.broken) {
    const ReadCase& first = later.cases.at(ids.front());
    out.messages[requirement] = first.messages.at(requirement);
    out.replays[requirement] = first.replay;
  }
  return out;
}

bool IsWorse(const Comparison& comparison) {
  return !comparison.broken.empty() || !comparison.lost.empty() || !comparison.gone.empty() ||
         !comparison.problems.empty();
}

}  // namespace shardproof
