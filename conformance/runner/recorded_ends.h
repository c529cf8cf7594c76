// recorded_ends.h: what is the verdict on recorded traces, and how did their ranks end, as far as
// they tell?
//
// Evidence is the footer, what entry calls answered, calls that began and never ended and, with a
// case, the calls of its script that never began. A footer alone is no evidence that all went well:
// who writes it may have stopped recording anywhere.
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/runner/judge.h"

namespace shardproof {

// By rank. Empty: the traces do not tell, that is, no footer names an early end, and of some rank
// that takes part (without a case: of any rank) there is no entry call, or calls are not provided.
// c: the case that the traces are of, or null.
std::vector<EngineOutcome> RecordedEnds(const std::vector<Trace>& traces, const Case* c);

struct JudgedTraces {
  Case c;             // that the traces say they are of
  bool ours = false;  // false: that is no case of this suite, and c is empty
  Verdict verdict;
};
// The verdict on the traces of a folder, by rank. Throws TraceError, which names the folder, if
// they are of another number of ranks than their case, and the line, if an event names an engine,
// entry call, parameter or node that the case does not have.
JudgedTraces JudgeTraces(std::vector<Trace> traces, const std::string& folder);

}  // namespace shardproof
