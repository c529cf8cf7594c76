// waivers.h: which failures are known, why, and until when?
//
// A waiver file is TOML:
//   [[waiver]]
//   requirement = "FS-12"              # exact id
//   case = "w8.zero3.*"                # glob over case ids (* and ?)
//   message = "twice"                  # part of the finding's message, may be ""
//   reason = "tracked as issue 17"
//   expires = "2027-06-30"             # last day on which it holds
// A waiver of a cause covers the findings of its case that follow from it
// (checks/cause/order_by_cause.h); what could not be judged for it stays open. The list is strict
// both ways: a waiver that is expired, that no finding needed, or that would hide everything turns
// the run red.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

struct Waiver {
  std::string requirement, case_glob, message, reason, expires;
  int line = 0;
};

// Throws std::invalid_argument with file name and line for what is no waiver file.
std::vector<Waiver> ParseWaivers(std::string_view text, const std::string& file_name);

// Marks findings, warnings too, and changes the status to what follows then (verdict_rule.h).
// today: "2026-11-21".
void WaiveFindings(CaseReport& report, const std::vector<Waiver>& waivers,
                   const std::string& today);
// The same for all cases, and what is wrong with the waivers is appended to the problems. Cases may
// have had their findings waived before.
void ApplyWaivers(RunReport& report, const std::vector<Waiver>& waivers, const std::string& today);

bool GlobMatches(std::string_view glob, std::string_view text);

}  // namespace shardproof
