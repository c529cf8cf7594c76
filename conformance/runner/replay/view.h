// view.h: which events of a run does replay show?
//
// Pure functions of a run and what was found in it.
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>

#include "conformance/checks/base/check.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"

namespace shardproof {

// What of a run is wanted; of all ranks unless options.rank says one. Throws std::invalid_argument
// that names what the run does not have: a rank, an event, a stream.
void CheckView(const Run& run, const ReplayView& view);

// Rank and event of the first finding that is told; event -1: there is none, or it names no event.
std::pair<int32_t, int64_t> FirstPlace(const Run& run, const CaseReport& report);

// The neighbourhood of the first finding that is told: the event that fails (">"), those that have
// part in it ("*": the other side of a race, the same operation on other ranks, the last accesses
// of its bytes), what order is missing, and where ranks ended early. With `around` of that event;
// without either, what the other options select, or everything with `whole`.
void ShowRun(const Run& run, const CaseReport& report, const ReplayView& view, std::ostream& out);

}  // namespace shardproof
