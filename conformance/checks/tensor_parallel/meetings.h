// meetings.h: which values of nodes, and gradients of values, go into collectives over tp and cp,
// by the model's tables?
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "conformance/checks/base/facts.h"

namespace shardproof {

enum class Axis : uint8_t { kTp, kCp };
inline const char* NameOf(Axis axis) { return axis == Axis::kTp ? "tp" : "cp"; }

// Whose values meet: of split layers, rows that a split vocabulary looks up, its loss.
enum class Meets : uint8_t { kLayers, kRows, kLoss };

// A value, or its gradient, that is read behind a collective.
struct Met {
  std::string node;    // of the tables, that names it
  int32_t value = -1;  // what goes into the collective
  bool gathered = false;
  Axis axis = Axis::kTp;
  Meets of = Meets::kLayers;
};
using Values = std::map<std::pair<int32_t, int32_t>, Met>;  // by table and value

// What of a rank goes into collectives, and what is read behind them.
struct Meetings {
  Values sent, read;
};
Meetings MeetingsOf(const InstanceFacts& facts, int32_t rank);

// The requirement that it meets at all, and the one that it meets in the right group.
const char* MeetingId(const Met& met, bool gradient);
inline const char* GroupId(const Met& met) { return met.axis == Axis::kTp ? "TP-03" : "CP-03"; }

}  // namespace shardproof
