#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/report/console.h"

namespace shardproof {

namespace {

// Requirements by why nothing was said about them, and in how many cases.
struct Reason {
  std::set<std::string> requirements, cases;
};
using Reasons = std::map<std::string, Reason>;

void Collect(const CaseReport& report, NotCheckable::Kind kind, Reasons& reasons) {
  for (const NotCheckable& row : report.not_checkable) {
    if (row.kind != kind) continue;
    reasons[row.why].requirements.insert(row.requirement);
    reasons[row.why].cases.insert(report.id);
  }
}

std::string Joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string OpenText(const CaseReport& report) {
  Reasons reasons;
  Collect(report, NotCheckable::Kind::kMissing, reasons);
  std::string text;
  for (const auto& [why, reason] : reasons)
    text += (text.empty() ? "" : "; ") + Joined(reason.requirements) + ": " + why;
  return text;
}

std::vector<std::string> PrintedLines(const CaseReport& report, size_t last) {
  std::vector<std::string> shown;
  for (const auto& [rank, text] : report.printed) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(VisibleLine(line));
    const size_t from = lines.size() > last ? lines.size() - last : 0;
    std::string who = rank < 0 ? "the engine" : "rank " + std::to_string(rank);
    who += " printed";
    if (from > 0)
      who += " (the last " + std::to_string(last) + " of " + std::to_string(lines.size()) +
             " lines; --report DIR has more)";
    shown.push_back(who + ":");
    for (size_t i = from; i < lines.size(); ++i) shown.push_back("  " + lines[i]);
  }
  return shown;
}

std::vector<std::string> RequirementLines(const RunReport& report, size_t most) {
  const RequirementCounts counts = CountRequirements(report);
  std::vector<std::string> lines = {"requirements: " + std::to_string(counts.judged) + " judged, " +
                                    std::to_string(counts.missing) + " not judged in some case, " +
                                    std::to_string(counts.not_asked) + " not asked"};
  using Kind = NotCheckable::Kind;
  const std::pair<Kind, std::string> kinds[] = {{Kind::kMissing, "not judged ("},
                                                {Kind::kBounded, "judged within a bound ("},
                                                {Kind::kNotAsked, "not asked ("}};
  for (const auto& [kind, name] : kinds) {
    Reasons reasons;
    for (const CaseReport& c : report.cases) Collect(c, kind, reasons);
    size_t told = 0;
    for (const auto& [why, reason] : reasons) {
      if (told++ == most) {
        lines.push_back("and for " + std::to_string(reasons.size() - most) +
                        " more reasons (--report DIR lists all)");
        break;
      }
      const bool one = reason.cases.size() == 1;
      // What keeps a run from being conformant is looked at, in one case.
      const std::string where = kind != Kind::kMissing ? ""
                                : one                  ? ", " + *reason.cases.begin()
                                                       : ", such as " + *reason.cases.begin();
      lines.push_back(name + std::to_string(reason.cases.size()) + (one ? " case" : " cases") +
                      where + "): " + Joined(reason.requirements) + ": " + why);
    }
  }
  return lines;
}

std::vector<std::string> WarningLines(const RunReport& report, const Sentence& sentence) {
  std::vector<std::string> lines;
  for (const auto& [id, cases] : CountWarnings(report))
    lines.push_back("warning (" + std::to_string(cases) + (cases == 1 ? " case): " : " cases): ") +
                    id + "  " + sentence(id));
  if (!lines.empty()) {
    lines.push_back(
        "warnings are of a SHOULD: --verbose and --report DIR show them, --strict "
        "makes them failures");
  }
  return lines;
}

}  // namespace shardproof
