// symmetry.h: do operations match, and can any timing hang, in a world of many ranks that are
// alike?
#pragma once
#include "conformance/checks/base/check.h"
#include "conformance/checks/symmetry/compact_world.h"

namespace shardproof::symmetry {

struct Limits {
  // Of the traces that the whole graph may be made of, where no quotient answers. More: the
  // requirements are not checkable.
  int64_t events_of_whole_graph = 4'000'000;
  size_t differences = 64;  // that are looked into
};

// GE-01 to GE-04, GE-08 to GE-10, GE-15 to GE-17: what CheckMatching and CheckDeadlock say of the
// traces of all ranks, from one rank of each colour. README.md says how, and why that is enough.
CheckResult CheckManyRanks(const CompactWorld& world, const Limits& limits = {});

// GE-05, GE-06, GE-11. A finding is a race: what no path orders among the colours none orders among
// the ranks. That nothing is found says nothing: a path may lead from one rank to another of its
// colour. (What each shape orders alone, races_test of the graph judges: CheckRaces of Alone().)
CheckResult RacesForCertain(const CompactWorld& world);

}  // namespace shardproof::symmetry
