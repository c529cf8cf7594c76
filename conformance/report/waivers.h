// waivers.h: which failures are known, why, and until when?
//
// conformance/docs/WAIVERS.md has the format and the rules.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

// Of a cause: checks/cause/order_by_cause.h says what follows from it.
struct Waiver {
  std::string requirement, case_glob, message, reason, expires;
  int line = 0;
  std::string seen = {};
};
struct WaiverFile {
  std::vector<Waiver> waivers;
  bool strict = false;  // a run of a whole profile needs each of them
};

// Throws std::invalid_argument with file name and line for what is no waiver file.
WaiverFile ParseWaivers(std::string_view text, const std::string& file_name);

// Marks findings, warnings too, and changes the status to what follows then (verdict_rule.h).
// today: "2026-11-21".
void WaiveFindings(CaseReport& report, const std::vector<Waiver>& waivers,
                   const std::string& today);
// The same for all cases; what is wrong with the waivers is appended to the problems, and what this
// run could not tell of them to the facts. Cases may have had their findings waived before.
void ApplyWaivers(RunReport& report, const WaiverFile& file, const std::string& today);

bool GlobMatches(std::string_view glob, std::string_view text);

}  // namespace shardproof
