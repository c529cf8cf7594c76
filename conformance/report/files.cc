#include "conformance/report/files.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "conformance/common/safe_text.h"
#include "conformance/report/console.h"
#include "conformance/report/verdict_rule.h"

namespace shardproof {

namespace {

using nlohmann::json;

json FindingJson(const CaseReport& report, const ReportedFinding& row) {
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
  if (row.warning) out["warning"] = true;
  if (f.follows >= 0 && static_cast<size_t>(f.follows) < report.findings.size())
    out["follows"] = {
        {"finding", f.follows},
        {"requirement", report.findings[static_cast<size_t>(f.follows)].finding.requirement}};
  return out;
}

json CaseJson(const CaseReport& c) {
  json out = {
      {"case", c.id}, {"status", StatusName(c.status)}, {"judged", c.judged}, {"replay", c.replay}};
  if (!c.reason.empty()) out["reason"] = c.reason;
  for (const ReportedFinding& row : c.findings) out["findings"].push_back(FindingJson(c, row));
  for (const NotCheckable& row : c.not_checkable) {
    static constexpr const char* kKeys[] = {"not_checkable", "bounded", "not_asked"};
    out[kKeys[static_cast<size_t>(row.kind)]].push_back(
        {{"requirement", row.requirement}, {"why", row.why}});
  }
  if (!c.notes.empty()) out["notes"] = c.notes;
  return out;
}

// ASCII: what is no ASCII is written as \\uXXXX, and bytes that are no UTF-8 as \\ufffd.
std::string Line(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

// A case that was judged in part does not let the run pass, unless the user allows that.
enum class JunitKind { kPassed, kFailure, kError, kSkipped };
JunitKind KindOf(Status status, const RunReport& report) {
  switch (status) {
    case Status::kPass:
    case Status::kWaived:
    case Status::kBounded:
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

}  // namespace

std::string HeaderLine(const RunReport& report) {
  json header = {{"shardproof_report", 1},       {"impl", report.impl}, {"fabric", report.fabric},
                 {"profile", report.profile},    {"seed", report.seed}, {"strict", report.strict},
                 {"assurance", report.assurance}};
  if (!report.shard.empty()) header["shard"] = report.shard;
  return Line(header);
}

std::string CaseLine(const CaseReport& report) { return Line(CaseJson(report)); }

std::string FooterLine(const RunReport& report) {
  const RunVerdict verdict = Decide(report).verdict;
  const RequirementCounts requirements = CountRequirements(report);
  json counts = json::object();
  for (const auto& [status, n] : Count(report)) counts[StatusName(status)] = n;
  return Line(
      {{"end", report.cases.size()},
       {"conformant", verdict == RunVerdict::kConformant || verdict == RunVerdict::kWithinBounds},
       {"verdict", VerdictName(verdict)},
       {"counts", counts},
       {"requirements",
        {{"judged", requirements.judged},
         {"not_checkable", requirements.missing},
         {"not_asked", requirements.not_asked}}},
       {"warnings", CountWarnings(report)},
       {"facts", report.facts},
       {"problems", report.problems}});
}

std::string JsonLines(const RunReport& report) {
  std::string text = HeaderLine(report);
  for (const CaseReport& c : report.cases) text += CaseLine(c);
  return text + FooterLine(report);
}

std::string Junit(const RunReport& report, const Sentence& sentence) {
  // A problem of a file that the user gave turns the run red without a case: it is a failure too.
  const auto problems = static_cast<std::ptrdiff_t>(report.problems.size());
  const auto count = [&](JunitKind kind) {
    return std::to_string(
        std::count_if(report.cases.begin(), report.cases.end(),
                      [&](const CaseReport& c) { return KindOf(c.status, report) == kind; }) +
        (kind == JunitKind::kFailure ? problems : 0));
  };
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"shardproof " +
                     XmlText(report.impl + " on " + report.fabric) + "\" tests=\"" +
                     std::to_string(report.cases.size() + report.problems.size()) +
                     "\" failures=\"" + count(JunitKind::kFailure) + "\" errors=\"" +
                     count(JunitKind::kError) + "\" skipped=\"" + count(JunitKind::kSkipped) +
                     "\">\n";
  for (const CaseReport& c : report.cases) {
    text +=
        "  <testcase classname=\"" + XmlText(report.fabric) + "\" name=\"" + XmlText(c.id) + "\">";
    std::string body, warnings;
    for (const ToldFinding& told : TellFindings(c, report.all_findings))
      (Warns(*told.row) ? warnings : body) += FindingText(told, c, sentence);
    if (body.empty()) body = c.status == Status::kPartial ? OpenText(c) : c.reason;
    const JunitKind kind = KindOf(c.status, report);
    if (kind == JunitKind::kFailure) {
      text += "<failure type=\"" + std::string(StatusName(c.status)) + "\" message=\"" +
              XmlText(body.substr(0, body.find('\n'))) + "\">" + XmlText(body) + "</failure>";
    } else if (kind == JunitKind::kError) {
      text += "<error message=\"" + XmlText(c.reason) + "\"/>";
    } else if (kind == JunitKind::kSkipped) {
      text +=
          "<skipped message=\"" + XmlText(std::string(StatusName(c.status)) + ": " + body) + "\"/>";
    }
    if (!warnings.empty()) text += "<system-out>" + XmlText(warnings) + "</system-out>";
    text += "</testcase>\n";
  }
  for (size_t i = 0; i < report.problems.size(); ++i)
    text += "  <testcase classname=\"" + XmlText(report.fabric) + "\" name=\"problem " +
            std::to_string(i + 1) + "\"><failure type=\"problem\" message=\"" +
            XmlText(report.problems[i]) + "\"/></testcase>\n";
  return text + "</testsuite>\n";
}

}  // namespace shardproof
