#include "conformance/report/folded.h"

#include <algorithm>
#include <cstdint>

namespace shardproof {

namespace {

bool SaysTheSame(const Finding& a, const Finding& b) {
  return a.requirement != b.requirement && a.rank == b.rank && a.event == b.event &&
         a.step == b.step && a.expected == b.expected && a.seen == b.seen;
}

void Count(const Finding& finding, ToldFinding& told) {
  if (finding.requirement == told.finding().requirement) {
    ++told.more;
  } else if (SaysTheSame(told.finding(), finding) &&
             std::find(told.also.begin(), told.also.end(), finding.requirement) ==
                 told.also.end()) {
    told.also.push_back(finding.requirement);
  } else {
    ++told.follow[finding.requirement];
  }
}

}  // namespace

std::vector<ToldFinding> TellFindings(const CaseReport& report, bool all) {
  std::vector<ToldFinding> told;
  std::map<int32_t, size_t> by_cause;            // place of a finding -> who tells of it
  std::map<std::string, size_t> by_requirement;  // of those that stand for themselves
  const auto tell = [&](size_t i) {
    const ReportedFinding& row = report.findings[i];
    const bool root = row.finding.follows < 0;
    const int32_t cause = root ? static_cast<int32_t>(i) : row.finding.follows;
    const auto known = by_cause.find(cause);
    const auto same = by_requirement.find(row.finding.requirement);
    if (!all && known != by_cause.end()) {
      Count(row.finding, told[known->second]);
    } else if (!all && root && same != by_requirement.end()) {
      Count(row.finding, told[same->second]);
      by_cause[cause] = same->second;
    } else {
      by_cause[cause] = told.size();
      if (root) by_requirement[row.finding.requirement] = told.size();
      told.push_back({&row, {}, 0, {}});
    }
  };
  for (size_t i = 0; i < report.findings.size(); ++i) {
    if (IsOpen(report.findings[i])) tell(i);
  }
  for (size_t i = 0; i < report.findings.size(); ++i) {
    if (Warns(report.findings[i])) tell(i);
  }
  return told;
}

std::string BrokenBy(const ToldFinding& told) {
  std::string text = told.finding().requirement;
  for (const std::string& id : told.also) text += ", " + id;
  return text;
}

std::string FoldedLine(const ToldFinding& told) {
  std::string text;
  if (told.more > 0)
    text = "and " + std::to_string(told.more) + " more of " + told.finding().requirement;
  size_t count = 0;
  std::string list;
  for (const auto& [id, n] : told.follow) {
    count += n;
    list += (list.empty() ? "" : ", ") + id + (n > 1 ? " (" + std::to_string(n) + ")" : "");
  }
  if (count > 0) {
    text += text.empty() ? "" : "; ";
    text += std::to_string(count) + (count == 1 ? " finding follows" : " findings follow") +
            " from it: " + list;
  }
  return text.empty() ? text : text + " (--all shows each)";
}

}  // namespace shardproof
