#include "conformance/report/waivers.h"

#include <toml++/toml.h>

#include <algorithm>
#include <stdexcept>

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
  return true;
}

// What keeps a waiver from meaning one known failure; empty: nothing.
std::string TooBroad(const Waiver& waiver) {
  if (waiver.requirement.find_first_of("*?") != std::string::npos)
    return "its requirement must be one exact id";
  const bool any_case = waiver.case_glob.find_first_not_of("*?") == std::string::npos;
  if (any_case && waiver.message.empty())
    return "it matches every case and every message: narrow case or message";
  return "";
}

std::string Name(const Waiver& waiver) {
  return "waivers: line " + std::to_string(waiver.line) + " (" + waiver.requirement + ", case \"" +
         waiver.case_glob + "\")";
}

bool Matches(const Waiver& waiver, const CaseReport& c, const Finding& finding) {
  return waiver.requirement == finding.requirement && GlobMatches(waiver.case_glob, c.id) &&
         finding.message.find(waiver.message) != std::string::npos;
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

std::vector<Waiver> ParseWaivers(std::string_view text, const std::string& file_name) {
  toml::table root;
  try {
    root = toml::parse(text, file_name);
  } catch (const toml::parse_error& error) {
    Bad(file_name, static_cast<int>(error.source().begin.line), std::string(error.description()));
  }
  std::vector<Waiver> waivers;
  for (const auto& [key, value] : root) {
    const toml::array* rows = value.as_array();
    if (key.str() != "waiver" || rows == nullptr) {
      Bad(file_name, static_cast<int>(value.source().begin.line),
          "only [[waiver]] tables are known here");
    }
    for (const toml::node& node : *rows) {
      const int line = static_cast<int>(node.source().begin.line);
      const toml::table* row = node.as_table();
      if (row == nullptr) Bad(file_name, line, "a waiver is a table");
      Waiver waiver;
      waiver.line = line;
      const std::pair<const char*, std::string*> fields[] = {{"requirement", &waiver.requirement},
                                                             {"case", &waiver.case_glob},
                                                             {"message", &waiver.message},
                                                             {"reason", &waiver.reason},
                                                             {"expires", &waiver.expires}};
      for (const auto& [name, field] : fields) {
        const auto text_value = (*row)[name].value<std::string>();
        if (!text_value)
          Bad(file_name, line, std::string("\"") + name + "\" is missing or no string");
        *field = *text_value;
      }
      if (row->size() != std::size(fields))
        Bad(file_name, line, "a waiver has five fields, see waivers.h");
      if (waiver.reason.empty()) Bad(file_name, line, "a waiver needs a reason");
      if (!IsDate(waiver.expires))
        Bad(file_name, line, "expires must be a date like \"2027-06-30\"");
      waivers.push_back(std::move(waiver));
    }
  }
  return waivers;
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

void ApplyWaivers(RunReport& report, const std::vector<Waiver>& waivers, const std::string& today) {
  for (CaseReport& c : report.cases) WaiveFindings(c, waivers, today);
  for (const Waiver& waiver : waivers) {
    const std::string broad = TooBroad(waiver);
    if (!broad.empty()) {
      report.problems.push_back(Name(waiver) + " is over-broad: " + broad);
      continue;
    }
    if (waiver.expires < today) {
      report.problems.push_back(Name(waiver) + " expired on " + waiver.expires +
                                ": mend or renew it");
      continue;
    }
    bool used = false, passed = false, failed = false;
    for (const CaseReport& c : report.cases) {
      const bool here =
          std::any_of(c.findings.begin(), c.findings.end(),
                      [&](const ReportedFinding& row) { return Matches(waiver, c, row.finding); });
      used = used || here;
      const bool judged =
          std::find(c.judged.begin(), c.judged.end(), waiver.requirement) != c.judged.end();
      const bool meant = !here && GlobMatches(waiver.case_glob, c.id);
      passed = passed || (meant && judged && !NotPassed(c));
      failed = failed || (meant && NotPassed(c));
    }
    if (used) continue;
    report.problems.push_back(
        Name(waiver) +
        (passed   ? ": unexpected pass, remove the waiver"
         : failed ? " is unused: cases that it names failed by something else, mend that first"
                  : " is unused: no case of this run met it, remove or mend it"));
  }
}

}  // namespace shardproof
