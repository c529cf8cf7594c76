// races.h: do two pieces of work touch the same bytes in no order, one of them writing?
//
// Order is what streams, events and the host give, and what an operation's result implies about its
// peers; not what an implementation happens to do. Two accesses of one rank race exactly if neither
// must be over before the other starts.
#pragma once
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

// For each range that two accesses race on at least one race, in time about linear in the accesses.
// Each access that races with others that come before it is in one with some of them. README.md
// proves it. skip: entries that did not start (by entry; empty: all did). REQUIRES: no cycle.
std::vector<Race> FindRaces(const Program& program, MustOrder& order,
                            const std::vector<bool>& skip);

// All racing pairs, each once, by trying each pair of accesses. For small programs.
std::vector<Race> FindAllRaces(const Program& program, MustOrder& order);

// What an entry touches. Free and alloc write the whole block.
std::vector<Range> RangesOf(const Program& program, const Entry& entry);

// Findings for races: one for each kind of pair.
void ReportRaces(const Program& program, const std::vector<Race>& races, CheckResult& result);

// GE-05, GE-06, GE-11. The program must match and have no cycle.
void JudgeRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip,
                CheckResult& result);

}  // namespace shardproof::graph
