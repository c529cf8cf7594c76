// races.h: do two pieces of work touch the same bytes in no order, one of them writing?
//
// Order is what streams, events and the host give, and what an operation's result implies about its
// peers; not what an implementation happens to do. Two accesses of one rank race exactly if neither
// must be over before the other starts.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/order.h"
#include "conformance/checks/program/program.h"

namespace shardproof::graph {

struct Race {
  uint32_t first = 0, second = 0;  // entries of one rank, in issue order
  int32_t alloc = -1;
  int64_t offset = 0, length = 0;  // of an overlap
  auto operator<=>(const Race&) const = default;
};

// GE-11: with an allocation or the end of one; GE-06: with an access of the host; GE-05: others.
enum class RaceKind : uint8_t { kDevice, kHost, kLifetime };
constexpr size_t kRaceKinds = 3;
RaceKind KindOfRace(const Program& program, uint32_t first, uint32_t second);

struct RacesFound {
  std::vector<Race> races;
  // By RaceKind: how often accesses met that race and are in no pair of `races`.
  std::array<int64_t, kRaceKinds> left_out{};
};

struct RaceLimits {
  // Pairs of each kind and rank. Beyond, accesses that race are taken for ordered, and counted.
  int64_t told = 100'000;
  size_t rows = 64;  // streams and host threads of a rank; with more, clocks are trees
};

// For each range that two accesses race on at least one race, in time about linear in the accesses.
// Each access that races with others that come before it is in one with some of them. README.md
// proves it, as long as nothing is left out. skip: entries that did not start (by entry; empty: all
// did). REQUIRES: no cycle.
RacesFound FindRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip,
                     const RaceLimits& limits = {});

// All racing pairs, each once, by trying each pair of accesses. For small programs.
std::vector<Race> FindAllRaces(const Program& program, MustOrder& order);

// What an entry touches. Free and alloc write the whole block.
std::vector<Range> RangesOf(const Program& program, const Entry& entry);

// Findings for races: one for each kind of pair, 20 for each requirement; a note says how many
// more.
void ReportRaces(const Program& program, const RacesFound& found, CheckResult& result);

// GE-05, GE-06, GE-11. The program must match and have no cycle.
void JudgeRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip,
                CheckResult& result);

}  // namespace shardproof::graph
