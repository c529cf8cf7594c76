// cut_saves.h: what does an engine load when its save was killed in the middle?
//
// For a case whose first leg is killed. The save is run again and again in a process that is ended
// before one of its operations on files (fabric/process/file_operations.h), half of a write being
// done, and once when save has returned on every rank. Then the second leg loads: the state that
// was being saved, or every rank refuses it. If it is refused, the second leg goes on from the
// checkpoint before it, if there is one, and its first save lies where the half one does.
#pragma once
#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

inline constexpr size_t kMostCuts = 24;

// The verdict on the case, given the one on its legs as they run uncut. run: as of RunApart().
Verdict JudgeCutSaves(Verdict uncut, const Case& c, const RunCase& run,
                      const SimRunOptions& options);

}  // namespace shardproof
