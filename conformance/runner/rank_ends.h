// rank_ends.h: what is the verdict on a case whose ranks were processes that ended in these ways?
#pragma once
#include "conformance/cases/case.h"
#include "conformance/fabric/mpi/case_end.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/options.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

// end.ranks[r].blob, where there is one, is a packed RankOutput. The cause is named, not those who
// waited for it: a rank that died, or that ran for nothing ("without progress"). Throws
// std::runtime_error where a rank ended in the suite's code.
RunData DataOf(const Case& c, const CaseEnd& end);

// Judges it, and writes the traces if the options say so. What goes wrong in the suite is the
// verdict, too.
Verdict JudgeEnd(const Case& c, const CaseEnd& end, const Options& options);

}  // namespace shardproof
