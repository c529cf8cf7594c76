// shrink.h: what is the smallest case that fails as this one does?
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "conformance/cases/support/random_cases.h"
#include "conformance/report/report.h"
#include "conformance/runner/support/up_to_last.h"

namespace shardproof {

// Judges cases; their reports, in order, up to the first of which `last` is true. Null: of all.
using JudgeCases =
    std::function<std::vector<CaseReport>(const std::vector<Case>& cases, const IsLast& last)>;

// The requirement of a failed case's first finding, which is the cause of others; else empty.
std::string CauseOf(const CaseReport& report);

struct Shrunk {
  CaseReport report;  // of the smallest one, with its id
  int runs = 0;       // of cases, each time up to the first that has the cause
  std::string from;   // id of the case that shrinking began with
};

// All go from a case that fails to a simpler one with the same cause, as long as there is one, and
// are deterministic in what `judge` answers. `report`: of the case.

// By tokens of its id, letters of its scripts, and ranks (cases/support/simpler_cases.h). on_step:
// hears of each simpler one; null: nobody does.
Shrunk ShrinkCase(const Case& c, const CaseReport& report, const JudgeCases& judge,
                  const std::function<void(const CaseReport& smaller)>& on_step = nullptr);

// By pieces of what was drawn first, which leaves out much at a time; then by tokens.
Shrunk ShrinkDrawn(const DrawnCase& drawn, const CaseReport& report, const JudgeCases& judge);

struct FailedDraw {
  DrawnCase drawn;
  CaseReport report;
};
// Of several with one cause. Begins with the one with the shortest id. While what it comes to has
// more than six tokens (its features together may hide a simpler way to the finding), tries the
// next one, of a space that was not tried if there is one, three at most. Returns the one with the
// fewest tokens; runs: of all tries. REQUIRES: failed is not empty.
Shrunk ShrinkSeveral(std::vector<FailedDraw> failed, const JudgeCases& judge);

}  // namespace shardproof
