// Races in words: one finding for each kind of pair, not for each pair.
#include <algorithm>
#include <map>
#include <tuple>

#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/race_words.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/graph/requirement_ids.h"

namespace shardproof::graph {

namespace {

constexpr int64_t kFindingsMax = 20;  // of a requirement

const char* Requirement(RaceKind kind) {
  switch (kind) {
    case RaceKind::kLifetime:
      return kNoLifetimeRace;
    case RaceKind::kHost:
      return kNoHostRace;
    default:
      return kNoDeviceRace;
  }
}

const char* Requirement(const Program& program, const Race& race) {
  return Requirement(KindOfRace(program, race.first, race.second));
}

void Report(const Program& program, const Race& race, int64_t similar, CheckResult& result) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  const RaceWords words = InWords(program, race);
  Finding finding = FindingAt(Requirement(program, race), program, second.rank, second.event);
  finding.begins = first.event;
  finding.operation = words.second;
  if (second.stream < 0) finding.stream.clear();  // of a call that is in host order
  finding.expected = words.expected;
  finding.seen = words.seen;
  finding.message = "rank " + std::to_string(second.rank) + ": " + words.first + " " +
                    words.first_verb + " it, " + words.second + " " + words.second_verb +
                    " it, and nothing orders them: " + words.bytes + ". " + words.advice;
  if (similar > 1) finding.message += " (and " + std::to_string(similar - 1) + " more such pairs)";
  result.findings.push_back(std::move(finding));
}

// What makes two races the same mistake.
using Kind = std::tuple<std::string, int32_t, int32_t, EventKind, EventKind, int32_t, int32_t,
                        uint8_t, uint8_t>;

Kind KindOf(const Program& program, const Race& race) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  const Event& a = program.event(first);
  const Event& b = program.event(second);
  return {Requirement(program, race),
          first.stream,
          second.stream,
          a.kind,
          b.kind,
          a.purpose,
          b.purpose,
          a.collective,
          b.collective};
}

// A host that touches memory before older work on it was synchronised with has touched it too
// early, also if that work never started, since the run was cut.
std::vector<Race> BeforeWorkThatNeverStarted(const Program& program, MustOrder& order,
                                             const std::vector<bool>& skip) {
  std::vector<Race> races = FindRaces(program, order, {}).races;
  std::erase_if(races, [&](const Race& race) {
    return !skip[race.first] || skip[race.second] || program.entries[race.first].stream < 0 ||
           program.entries[race.second].kind != EntryKind::kHostAccess;
  });
  return races;
}

}  // namespace

void ReportRaces(const Program& program, const RacesFound& found, CheckResult& result) {
  std::map<Kind, std::pair<size_t, int64_t>> kinds;  // first of the kind, how many
  for (size_t i = 0; i < found.races.size(); ++i)
    ++kinds.try_emplace(KindOf(program, found.races[i]), i, 0).first->second.second;
  std::vector<std::pair<size_t, int64_t>> firsts;
  for (const auto& [kind, first] : kinds) firsts.push_back(first);
  std::sort(firsts.begin(), firsts.end());
  std::map<std::string, int64_t> reported;
  for (const auto& [first, similar] : firsts) {
    const Race& race = found.races[first];
    if (++reported[Requirement(program, race)] <= kFindingsMax)
      Report(program, race, similar, result);
  }
  for (const auto& [requirement, count] : reported) {
    if (count > kFindingsMax)
      result.notes.push_back("races: " + std::to_string(count - kFindingsMax) +
                             " more kinds of racing pairs (" + requirement + ")");
  }
  for (size_t kind = 0; kind < kRaceKinds; ++kind) {
    if (found.left_out[kind] > 0)
      result.notes.push_back("races: accesses met " + std::to_string(found.left_out[kind]) +
                             " more times (" + Requirement(static_cast<RaceKind>(kind)) +
                             "), which was only counted");
  }
}

void JudgeRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip,
                CheckResult& result) {
  RacesFound found = FindRaces(program, order, skip);
  if (!skip.empty()) {
    for (const Race& race : BeforeWorkThatNeverStarted(program, order, skip))
      found.races.push_back(race);
  }
  ReportRaces(program, found, result);
  for (const char* id : {kNoDeviceRace, kNoHostRace, kNoLifetimeRace}) result.judged.insert(id);
}

}  // namespace shardproof::graph
