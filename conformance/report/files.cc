#include "conformance/report/files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/report/console.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

namespace {

using nlohmann::json;

json FindingJson(const ReportedFinding& row) {
  const Finding& f = row.finding;
  json out = {{"requirement", f.requirement}, {"message", f.message}};
  const auto text = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  if (f.rank >= 0) out["rank"] = f.rank;
  if (f.event >= 0) out["event"] = f.event;
  if (f.step >= 0) out["step"] = f.step;
  text("stream", f.stream);
  text("operation", f.operation);
  text("expected", f.expected);
  text("seen", f.seen);
  text("waived_because", row.waived_because);
  return out;
}

json CaseJson(const CaseReport& c) {
  json out = {
      {"case", c.id}, {"status", StatusName(c.status)}, {"judged", c.judged}, {"replay", c.replay}};
  if (!c.reason.empty()) out["reason"] = c.reason;
  for (const ReportedFinding& row : c.findings) out["findings"].push_back(FindingJson(row));
  for (const NotCheckable& row : c.not_checkable) {
    const bool missing = row.kind == NotCheckable::Kind::kMissing;
    out[missing ? "not_checkable" : "not_asked"].push_back(
        {{"requirement", row.requirement}, {"why", row.why}});
  }
  if (!c.notes.empty()) out["notes"] = c.notes;
  return out;
}

std::string Line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// For XML. What may not stand there (control characters, bytes that are no UTF-8) becomes a
// question mark.
std::string Escaped(const std::string& text) {
  std::string valid = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  valid = json::parse(valid).get<std::string>();
  std::string out;
  for (const char c : valid) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

// A case that was judged in part does not let the run pass, unless the user allows that.
enum class JunitKind { kPassed, kFailure, kError, kSkipped };
JunitKind KindOf(Status status, const RunReport& report) {
  switch (status) {
    case Status::kPass:
    case Status::kWaived:
      return JunitKind::kPassed;
    case Status::kFail:
      return JunitKind::kFailure;
    case Status::kPartial:
    case Status::kNotCheckable:
      return report.allow_partial ? JunitKind::kSkipped : JunitKind::kFailure;
    case Status::kSuiteError:
      return JunitKind::kError;
    case Status::kUnsupported:
    case Status::kDisabled:
      break;
  }
  return JunitKind::kSkipped;
}

void WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace

std::string JsonLines(const RunReport& report) {
  std::string text = Line({{"shardproof_report", 1},
                           {"impl", report.impl},
                           {"fabric", report.fabric},
                           {"profile", report.profile},
                           {"seed", report.seed},
                           {"assurance", report.assurance}});
  for (const CaseReport& c : report.cases) text += Line(CaseJson(c));
  const RunVerdict verdict = Decide(report).verdict;
  const RequirementCounts requirements = CountRequirements(report);
  json counts = json::object();
  for (const auto& [status, n] : Count(report)) counts[StatusName(status)] = n;
  return text + Line({{"end", report.cases.size()},
                      {"conformant", verdict == RunVerdict::kConformant},
                      {"verdict", VerdictName(verdict)},
                      {"counts", counts},
                      {"requirements",
                       {{"judged", requirements.judged},
                        {"not_checkable", requirements.missing},
                        {"not_asked", requirements.not_asked}}},
                      {"facts", report.facts},
                      {"problems", report.problems}});
}

std::string Junit(const RunReport& report, const Sentence& sentence) {
  const auto count = [&report](JunitKind kind) {
    return std::to_string(
        std::count_if(report.cases.begin(), report.cases.end(),
                      [&](const CaseReport& c) { return KindOf(c.status, report) == kind; }));
  };
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"shardproof " +
                     Escaped(report.impl + " on " + report.fabric) + "\" tests=\"" +
                     std::to_string(report.cases.size()) + "\" failures=\"" +
                     count(JunitKind::kFailure) + "\" errors=\"" + count(JunitKind::kError) +
                     "\" skipped=\"" + count(JunitKind::kSkipped) + "\">\n";
  for (const CaseReport& c : report.cases) {
    text +=
        "  <testcase classname=\"" + Escaped(report.fabric) + "\" name=\"" + Escaped(c.id) + "\">";
    std::string body;
    for (const ReportedFinding& row : c.findings) {
      if (row.waived_because.empty()) body += FindingText(row.finding, c, sentence);
    }
    if (body.empty()) body = c.status == Status::kPartial ? OpenText(c) : c.reason;
    const JunitKind kind = KindOf(c.status, report);
    if (kind == JunitKind::kFailure) {
      text += "<failure type=\"" + std::string(StatusName(c.status)) + "\" message=\"" +
              Escaped(body.substr(0, body.find('\n'))) + "\">" + Escaped(body) + "</failure>";
    } else if (kind == JunitKind::kError) {
      text += "<error message=\"" + Escaped(c.reason) + "\"/>";
    } else if (kind == JunitKind::kSkipped) {
      text +=
          "<skipped message=\"" + Escaped(std::string(StatusName(c.status)) + ": " + body) + "\"/>";
    }
    text += "</testcase>\n";
  }
  return text + "</testsuite>\n";
}

std::string SummaryMarkdown(const RunReport& report, const Sentence& sentence) {
  std::string text = "# " + LastLine(report) + "\n\n" + report.impl + " on " + report.fabric +
                     ", profile " + report.profile + ", seed " + std::to_string(report.seed) +
                     ", assurance " + report.assurance + "\n\n| status | cases |\n|---|---|\n";
  for (const auto& [status, n] : Count(report)) {
    text += std::string("| ") + StatusName(status) + " | " + std::to_string(n) + " |\n";
  }
  for (const std::string& fact : report.facts) text += "\n" + fact + "\n";
  for (const std::string& problem : report.problems) text += "\nwaivers: " + problem + "\n";
  for (const std::string& line : RequirementLines(report, SIZE_MAX)) text += "\n" + line + "\n";
  for (const CaseReport& c : report.cases) {
    if (c.status != Status::kFail && c.status != Status::kSuiteError) continue;
    text += "\n## " + c.id + ": " + StatusName(c.status) + "\n\n" + c.reason + "\n";
    for (const ReportedFinding& row : c.findings) {
      text += "\n```\n" + FindingText(row.finding, c, sentence) + "```\n";
      if (!row.waived_because.empty()) text += "waived: " + row.waived_because + "\n";
    }
  }
  return text;
}

void WriteReportFolder(const std::string& folder, const RunReport& report,
                       const Sentence& sentence) {
  const std::filesystem::path path(folder);
  std::filesystem::create_directories(path);
  WriteFile(path / "report.jsonl", JsonLines(report));
  WriteFile(path / "junit.xml", Junit(report, sentence));
  WriteFile(path / "summary.md", SummaryMarkdown(report, sentence));
}

}  // namespace shardproof
