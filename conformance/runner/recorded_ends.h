// recorded_ends.h: how did the ranks of recorded traces end, as far as the traces tell?
//
// Evidence is the footer, what entry calls answered, calls that began and never ended and, with a
// case, the calls of its script that never began. A footer alone is no evidence that all went well:
// who writes it may have stopped recording anywhere.
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"

namespace shardproof {

// By rank. Empty: the traces do not tell, that is, no footer names an early end, and of some rank
// that takes part (without a case: of any rank) there is no entry call, or calls are not provided.
// c: the case that the traces are of, or null.
std::vector<EngineOutcome> RecordedEnds(const std::vector<Trace>& traces, const Case* c);

// The case that the traces say they are of. False: none of ours. Throws TraceError, which names
// the folder's first file, if it is one of another number of ranks.
bool RecordedCase(const std::vector<Trace>& traces, const std::string& folder, Case* c);

}  // namespace shardproof
