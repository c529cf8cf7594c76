// Races in words: one finding for each kind of pair, not for each pair.
#include <algorithm>
#include <map>
#include <tuple>

#include "conformance/checks/graph/finding_at.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/graph/requirement_ids.h"
#include "conformance/checks/program/describe.h"

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

std::string Verb(const Program& program, uint32_t e, const Race& race) {
  const Entry& entry = program.entries[e];
  const EventKind kind = program.event(entry).kind;
  if (kind == EventKind::kAlloc) return "allocates it";
  if (kind == EventKind::kFree) return "frees it";
  uint8_t access = 0;
  for (const Range& range : RangesOf(program, entry)) {
    if (range.alloc == race.alloc && range.offset < race.offset + race.length &&
        race.offset < range.offset + range.length) {
      access = static_cast<uint8_t>(access | range.access);
    }
  }
  return access == kRead ? "reads it" : access == kWrite ? "writes it" : "reads and writes it";
}

// "bytes [0, 4096) of block 12 (full parameters, module 3)"
std::string Bytes(const Program& program, const Trace& trace, const Race& race) {
  std::string text = "block " + std::to_string(race.alloc);
  int64_t bytes = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAlloc || event.alloc != race.alloc) continue;
    bytes = event.count;
    const std::string what = Describe(trace, event, program.names);
    const size_t of = what.find(" of block " + std::to_string(race.alloc) + " of ");
    const size_t stream = what.rfind(" (");
    if (of != std::string::npos) {
      const size_t from = what.find(" of ", of + 4) + 4;
      text += " (" + what.substr(from, stream == std::string::npos ? stream : stream - from) + ")";
    }
    break;
  }
  const int64_t end =
      bytes > 0 ? std::min(bytes, race.offset + race.length) : race.offset + race.length;
  if (end - race.offset > (int64_t{1} << 50)) return text;
  return "bytes [" + std::to_string(race.offset) + ", " + std::to_string(end) + ") of " + text;
}

std::string Advice(const Program& program, const Race& race) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  if (second.stream < 0)
    return "Let the host wait for the former (event_sync or stream_sync) before it goes on";
  if (first.stream < 0) return "Issue the latter after the host is done with the bytes";
  return "Record an event after the former and let " +
         StreamName(program.trace(second.rank), second.stream) + " wait for it before the latter";
}

void Report(const Program& program, const Race& race, int64_t similar, CheckResult& result) {
  const Entry& first = program.entries[race.first];
  const Entry& second = program.entries[race.second];
  const Trace& trace = program.trace(second.rank);
  Finding finding = FindingAt(Requirement(program, race), program, second.rank, second.event);
  finding.begins = first.event;
  finding.operation = Describe(program, second);
  finding.expected =
      "ordered after " + Describe(program, first) + " (event " + std::to_string(first.event) + ")";
  finding.seen = "no order";
  finding.message = "rank " + std::to_string(second.rank) + ": " + Describe(program, first) + " " +
                    Verb(program, race.first, race) + ", " + Describe(program, second) + " " +
                    Verb(program, race.second, race) +
                    ", and nothing orders them: " + Bytes(program, trace, race) + ". " +
                    Advice(program, race);
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
