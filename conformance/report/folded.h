// folded.h: what of a case's findings is told, and what only counted?
//
// A finding that follows from another one (checks/cause/order_by_cause.h) is counted with it, and
// so are further ones of its requirement. Where the cause is not
// told, the first that follows from it is.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

struct ToldFinding {
  const ReportedFinding* row = nullptr;
  const Finding& finding() const { return row->finding; }
  std::vector<std::string> also;         // requirements by which the same event is as wrong
  size_t more = 0;                       // further findings of its requirement
  std::map<std::string, size_t> follow;  // findings that follow, by requirement
};

// Findings that nobody waived, causes first, warnings behind all others. all: each is told by
// itself. An error is never counted with a warning.
std::vector<ToldFinding> TellFindings(const CaseReport& report, bool all);

// "FS-16, EP-22": what the told finding breaks.
std::string BrokenBy(const ToldFinding& told);
// One line: "and 7 more of FS-15; 20 findings follow from it: ..."; empty if there are none.
std::string FoldedLine(const ToldFinding& told);

}  // namespace shardproof
