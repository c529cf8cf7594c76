// shrink.h: what is the smallest case that fails as this one does?
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/support/random_cases.h"
#include "conformance/report/report.h"

namespace shardproof {

// Judges cases; their reports, in order.
using JudgeCases = std::function<std::vector<CaseReport>(const std::vector<Case>& cases)>;

// The requirement of a failed case's first finding, which is the cause of others; else empty.
std::string CauseOf(const CaseReport& report);

struct Shrunk {
  DrawnCase drawn;
  CaseReport report;  // of it
  int runs = 0;       // of cases
};
// Goes from a case that fails to a simpler one with the same cause, as long as there is one.
// Deterministic in what `judge` answers. `report`: of `drawn`. Cases at once: `batch`.
Shrunk ShrinkCase(const DrawnCase& drawn, const CaseReport& report, const JudgeCases& judge,
                  size_t batch);

}  // namespace shardproof
