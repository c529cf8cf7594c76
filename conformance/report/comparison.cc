#include "conformance/report/comparison.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "conformance/report/failures.h"
#include "conformance/report/report.h"

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

bool IsRed(const ReadCase& c) {
  return std::any_of(c.requirements.begin(), c.requirements.end(),
                     [](const auto& one) { return one.second == Judgement::kBroken; });
}

// Nothing is said of it, though the case passes: all was judged that it could show.
bool NothingToJudge(const ReadCase& c, const std::string& requirement) {
  const bool passes =
      c.status == StatusName(Status::kPass) || c.status == StatusName(Status::kBounded);
  return passes && !c.open.contains(requirement) && !c.requirements.contains(requirement);
}

using Place = std::map<std::string, Judgement>::const_iterator;

// Of a requirement that was judged before, and of which nothing is said now.
ChangedCases* NotMentioned(const ReadCase& before, const ReadCase& after, Place was,
                           Comparison* out) {
  if (NewlyBroken(before, after)) return nullptr;
  if (!IsRed(before) || !NothingToJudge(after, was->first)) return &out->lost;
  return was->second == Judgement::kBroken ? &out->fixed : nullptr;
}

// Where the requirement belongs; nullptr: nothing has changed.
ChangedCases* ChangeOf(const std::string& requirement, const ReadCase& before,
                       const ReadCase& after, Comparison* out) {
  const Place was = before.requirements.find(requirement),
              is = after.requirements.find(requirement);
  const bool was_known = was != before.requirements.end() && IsKnown(was->second);
  if (is == after.requirements.end())
    return was_known ? NotMentioned(before, after, was, out) : nullptr;
  if (is->second == Judgement::kBroken || is->second == Judgement::kWaived) {
    if (was_known && was->second == is->second) return nullptr;
    return is->second == Judgement::kBroken ? &out->broken : &out->waived;
  }
  if (is->second == Judgement::kFollows || !was_known) return nullptr;
  if (was->second == Judgement::kBroken || was->second == Judgement::kWaived) return &out->fixed;
  return is->second < was->second ? &out->lost : nullptr;  // within a bound now
}

// Answers whether something has changed.
bool CompareCase(const std::string& id, const ReadCase& before, const ReadCase& after,
                 Comparison* out) {
  std::set<std::string> requirements;
  for (const auto& [requirement, as] : before.requirements) requirements.insert(requirement);
  for (const auto& [requirement, as] : after.requirements) requirements.insert(requirement);
  bool changed = false;
  for (const std::string& requirement : requirements) {
    ChangedCases* to = ChangeOf(requirement, before, after, out);
    if (to != nullptr) Put(*to, requirement, id);
    changed = changed || to != nullptr;
  }
  return changed;
}

// Of an id its parts, and each pair of them.
std::set<std::string> Combinations(const std::string& id) {
  std::vector<std::string> parts;
  std::istringstream words(id);
  for (std::string part; std::getline(words, part, '.');) parts.push_back(part);
  std::set<std::string> all(parts.begin(), parts.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t j = i + 1; j < parts.size(); ++j)
      all.insert(std::min(parts[i], parts[j]) + "." + std::max(parts[i], parts[j]));
  }
  return all;
}

std::set<std::string> JudgedIn(const ReadReport& report) {
  std::set<std::string> all;
  for (const auto& [id, c] : report.cases) {
    if (!c.requirements.empty() && c.status != StatusName(Status::kUnsupported))
      all.merge(Combinations(id));
  }
  return all;
}

void CompareGone(const std::string& id, const ReadCase& before, const std::set<std::string>& judged,
                 Comparison* out) {
  if (before.requirements.empty()) return;  // one in which nothing was judged is no loss
  if (id == kEngineRow) {                   // no case: what was found by loading the engine
    for (const auto& [requirement, as] : before.requirements) Put(out->fixed, requirement, id);
    return;
  }
  const std::set<std::string> asked = Combinations(id);
  const bool covered = std::includes(judged.begin(), judged.end(), asked.begin(), asked.end());
  (covered ? out->covered : out->gone).push_back(id);
}

void RequireJudged(const ReadReport& earlier, const ReadReport& later) {
  for (const ReadReport* report : {&earlier, &later}) {
    for (const auto& [id, c] : report->cases) {
      if (!c.requirements.empty()) return;
    }
  }
  throw std::invalid_argument(earlier.file + " and " + later.file +
                              ": nothing was judged in either, so nothing can be compared");
}

void SmallestFirst(ChangedCases& changed) {
  for (auto& [requirement, ids] : changed) std::sort(ids.begin(), ids.end(), IsSmaller);
}

}  // namespace

Comparison Compare(const ReadReport& earlier, const ReadReport& later) {
  RequireJudged(earlier, later);
  Comparison out;
  const std::set<std::string> judged = JudgedIn(later);
  out.earlier_verdict = earlier.verdict;
  out.later_verdict = later.verdict;
  for (const auto& [id, before] : earlier.cases) {
    const auto after = later.cases.find(id);
    if (after != later.cases.end()) {
      out.same += CompareCase(id, before, after->second, &out) ? 0 : 1;
    } else {
      CompareGone(id, before, judged, &out);
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
  std::sort(out.covered.begin(), out.covered.end(), IsSmaller);
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
