// judge_many.h: what is the verdict on a run of more ranks than all traces of which fit at once?
#pragma once
#include <optional>
#include <string>

#include "conformance/cases/case.h"
#include "conformance/checks/symmetry/compact_world.h"
#include "conformance/runner/judge.h"

namespace shardproof {

// Above so many events of all ranks together, a run on the dry fabric is judged through shapes.
inline constexpr int64_t kMostEventsAtOnce = 1'500'000;
// Of a world whose traces are read at once, whatever they hold.
inline constexpr int32_t kMostRanksAtOnce = 512;

// left_behind: in what the engine's process was not left as it was found; nothing: nobody has
// looked.
//
// Matching and deadlock of all ranks (checks/symmetry); of each shape what needs no case and no
// other rank: races, lifetime, memory, objects, how it ended; whether all groups have the members
// that the case gives them. Everything else is not asked, by name.
Verdict JudgeManyRanks(const Case& c, const symmetry::CompactWorld& world,
                       const std::optional<std::string>& left_behind);

}  // namespace shardproof
