#include "conformance/report/waivers.h"

#include <toml++/toml.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "conformance/common/nearest.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

namespace {

[[noreturn]] void Bad(const std::string& file, int line, const std::string& what) {
  throw std::invalid_argument(file + ":" + std::to_string(line) + ": " + what);
}

bool IsDate(const std::string& text) {
  constexpr std::string_view kShape = "0000-00-00";
  if (text.size() != kShape.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == '0' ? !digit : text[i] != '-') return false;
  }
  const auto number = [&](size_t at, size_t digits) { return std::stoi(text.substr(at, digits)); };
  return std::chrono::year_month_day(std::chrono::year(number(0, 4)),
                                     std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                     std::chrono::day(static_cast<unsigned>(number(8, 2))))
      .ok();
}

// What keeps a waiver from meaning one known failure; empty: nothing.
std::string TooBroad(const Waiver& waiver) {
  if (waiver.requirement.find_first_of("*?") != std::string::npos)
    return "its requirement must be one exact id";
  // Every id begins with "w" and a number, and has a point behind it.
  const bool any_case = waiver.case_glob.find_first_not_of("w.*?") == std::string::npos;
  if (any_case && waiver.message.empty() && waiver.seen.empty())
    return "it matches every case and every message: narrow case, message or seen";
  return "";
}

std::string Name(const Waiver& waiver) {
  return "waivers: line " + std::to_string(waiver.line) + " (" + waiver.requirement + ", case \"" +
         waiver.case_glob + "\")";
}

bool Matches(const Waiver& waiver, const CaseReport& c, const Finding& finding) {
  return waiver.requirement == finding.requirement && GlobMatches(waiver.case_glob, c.id) &&
         finding.message.find(waiver.message) != std::string::npos &&
         finding.seen.find(waiver.seen) != std::string::npos;
}

}  // namespace

bool GlobMatches(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (g < glob.size() && (glob[g] == '?' || (glob[g] == text[t] && glob[g] != '*'))) {
      ++g, ++t;
    } else if (g < glob.size() && glob[g] == '*') {
      star = g++;
      mark = t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

namespace {

Waiver WaiverOf(const toml::table& row, const std::string& file, int line) {
  Waiver waiver;
  waiver.line = line;
  struct Field {
    std::string_view name;
    std::string* value;
    bool needed;
  };
  const Field fields[] = {
      {"requirement", &waiver.requirement, true}, {"case", &waiver.case_glob, true},
      {"message", &waiver.message, false},        {"seen", &waiver.seen, false},
      {"reason", &waiver.reason, true},           {"expires", &waiver.expires, true}};
  std::vector<std::string> names;
  for (const Field& field : fields) {
    names.emplace_back(field.name);
    const toml::node* node = row.get(field.name);
    if (node == nullptr && !field.needed) continue;
    const auto text = node == nullptr ? std::nullopt : node->value<std::string>();
    if (!text) Bad(file, line, "\"" + names.back() + "\" is missing or no string");
    *field.value = *text;
  }
  for (const auto& [key, value] : row) {
    const std::string name(key.str());
    if (std::find(names.begin(), names.end(), name) == names.end())
      Bad(file, line, "a waiver has no field \"" + name + "\"" + DidYouMean(name, names));
  }
  if (waiver.reason.empty()) Bad(file, line, "a waiver needs a reason");
  if (!IsDate(waiver.expires)) Bad(file, line, "expires must be a date like \"2027-06-30\"");
  return waiver;
}

}  // namespace

WaiverFile ParseWaivers(std::string_view text, const std::string& file_name) {
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    Bad(file_name, static_cast<int>(error.source().begin.line), std::string(error.description()));
  }
  WaiverFile file;
  for (const auto& [key, value] : root) {
    const int at = static_cast<int>(value.source().begin.line);
    const toml::array* rows = value.as_array();
    if (key.str() == "strict" && value.is_boolean()) {
      file.strict = *value.value<bool>();
      continue;
    }
    if (key.str() != "waiver" || rows == nullptr)
      Bad(file_name, at, "only [[waiver]] tables and strict = true or false are known here");
    for (const toml::node& node : *rows) {
      const int line = static_cast<int>(node.source().begin.line);
      if (node.as_table() == nullptr) Bad(file_name, line, "a waiver is a table");
      file.waivers.push_back(WaiverOf(*node.as_table(), file_name, line));
    }
  }
  return file;
}

namespace {

// Causes stand before or behind what follows from them; each is followed to the first one.
void WaiveWhatFollows(CaseReport& report) {
  for (ReportedFinding& row : report.findings) {
    const ReportedFinding* cause = &row;
    for (size_t links = 0; links < report.findings.size() && cause->waived_because.empty() &&
                           cause->finding.follows >= 0 &&
                           static_cast<size_t>(cause->finding.follows) < report.findings.size();
         ++links)
      cause = &report.findings[static_cast<size_t>(cause->finding.follows)];
    if (cause != &row && !cause->waived_because.empty())
      row.waived_because =
          "it follows from " + cause->finding.requirement + ": " + cause->waived_because;
  }
}

bool NotPassed(const CaseReport& c) {
  return c.status == Status::kFail || c.status == Status::kSuiteError;
}

}  // namespace

void WaiveFindings(CaseReport& report, const std::vector<Waiver>& waivers,
                   const std::string& today) {
  if (report.id == kEngineRow) return;  // no case ran: nothing is excused by that
  for (const Waiver& waiver : waivers) {
    if (!TooBroad(waiver).empty() || waiver.expires < today) continue;
    for (ReportedFinding& row : report.findings) {
      if (Matches(waiver, report, row.finding)) row.waived_because = waiver.reason;
    }
  }
  WaiveWhatFollows(report);
  report.status = StatusAfter(report.status, report);
}

namespace {

bool IsUsed(const Waiver& waiver, const RunReport& report) {
  return std::any_of(report.cases.begin(), report.cases.end(), [&](const CaseReport& c) {
    return c.id != kEngineRow &&
           std::any_of(c.findings.begin(), c.findings.end(),
                       [&](const ReportedFinding& row) { return Matches(waiver, c, row.finding); });
  });
}

// What is to be said of a waiver that no finding needed. Only what ran can tell: other cases of its
// glob may be in another profile or shard.
void TellUnused(const Waiver& waiver, bool strict, RunReport* report) {
  size_t named = 0, passed = 0, failed = 0;
  for (const CaseReport& c : report->cases) {
    if (c.id == kEngineRow || !GlobMatches(waiver.case_glob, c.id)) continue;
    ++named;
    const bool judged =
        std::find(c.judged.begin(), c.judged.end(), waiver.requirement) != c.judged.end();
    failed += NotPassed(c) ? 1 : 0;
    passed += judged && !NotPassed(c) ? 1 : 0;
  }
  const bool whole = strict && report->whole;
  const bool one_case = waiver.case_glob.find_first_of("*?") == std::string::npos;
  if (failed > 0) {  // the run is red without this
    report->facts.push_back(Name(waiver) +
                            " was not needed: cases that it names failed by something else");
  } else if (passed > 0 && (one_case || whole)) {
    report->problems.push_back(Name(waiver) + ": unexpected pass, remove the waiver");
  } else if (whole) {
    report->problems.push_back(
        Name(waiver) + " is unused: " +
        (named == 0 ? "no case of this run has such an id" : "no case that it names was judged") +
        ", remove or mend it");
  } else if (passed > 0) {
    report->facts.push_back(Name(waiver) + " was not needed by the " + std::to_string(passed) +
                            (passed == 1 ? " case" : " cases") +
                            " that it names and that were judged here");
  }
}

}  // namespace

void ApplyWaivers(RunReport& report, const WaiverFile& file, const std::string& today) {
  for (CaseReport& c : report.cases) WaiveFindings(c, file.waivers, today);
  for (const Waiver& waiver : file.waivers) {
    const std::string broad = TooBroad(waiver);
    if (!broad.empty()) {
      report.problems.push_back(Name(waiver) + " is over-broad: " + broad);
    } else if (waiver.expires < today) {
      report.problems.push_back(Name(waiver) + " expired on " + waiver.expires +
                                ": mend or renew it");
    } else if (!IsUsed(waiver, report)) {
      TellUnused(waiver, file.strict, &report);
    }
  }
}

}  // namespace shardproof
