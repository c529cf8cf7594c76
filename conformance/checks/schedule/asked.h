// asked.h: which rows of the family does a case ask for?
//
// From the case alone. A row that is asked for and that a run cannot show is said to be not
// checkable, with the reason.
#pragma once
#include <set>
#include <string>

#include "conformance/checks/base/facts.h"

namespace shardproof::schedule {

// Experts, or the overlap knob.
bool Asks(const InstanceSpec& spec);
// The schedule is asked for, and this version can say what it looks like.
bool Overlaps(const InstanceSpec& spec);

// An interleaved pipeline with the overlap: the order of its train steps is judged, too.
bool OverlapsInPipeline(const InstanceSpec& spec);

// The rows that CheckSchedule judges on its own.
std::set<std::string> RowsAskedFor(const InstanceFacts& facts, int32_t world);

}  // namespace shardproof::schedule
