#include "conformance/report/files.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/common/version.h"
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
  if (!c.shrink.empty()) out["shrink"] = c.shrink;
  for (const auto& [rank, text] : c.printed) {
    json row = {{"text", text}};
    if (rank >= 0) row["rank"] = rank;
    out["printed"].push_back(std::move(row));
  }
  return out;
}

// ASCII: what is no ASCII is written as \\uXXXX, and bytes that are no UTF-8 as \\ufffd.
std::string Line(const json& value) {
  return value.dump(-1, ' ', true, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string HeaderLine(const RunReport& report) {
  json header = {{"shardproof_report", 1},  {"version", Version()},         {"impl", report.impl},
                 {"fabric", report.fabric}, {"profile", report.profile},    {"seed", report.seed},
                 {"strict", report.strict}, {"assurance", report.assurance}};
  const auto text = [&header](const char* name, const std::string& value) {
    if (!value.empty()) header[name] = value;
  };
  text("commit", Commit());
  text("asked", report.asked);
  text("shard", report.shard);
  text("fault", report.fault);
  text("engine", report.engine);
  text("began", report.began);
  const auto texts = [&header](const char* name, const std::vector<std::string>& values) {
    if (!values.empty()) header[name] = values;
  };
  texts("select", report.select);
  texts("exclude", report.exclude);
  texts("options", report.options);
  return Line(header);
}

std::string CaseLine(const CaseReport& report) { return Line(CaseJson(report)); }

std::string FooterLine(const RunReport& report) {
  const RunVerdict verdict = Decide(report).verdict;
  const RequirementCounts requirements = CountRequirements(report);
  json counts = json::object();
  for (const auto& [status, n] : Count(report)) counts[StatusName(status)] = n;
  json footer = {
      {"end", report.cases.size()},
      {"conformant", verdict == RunVerdict::kConformant || verdict == RunVerdict::kWithinBounds},
      {"verdict", VerdictName(verdict)},
      {"counts", counts},
      {"requirements",
       {{"judged", requirements.judged},
        {"not_checkable", requirements.missing},
        {"not_asked", requirements.not_asked}}},
      {"warnings", CountWarnings(report)},
      {"facts", report.facts},
      {"problems", report.problems}};
  if (!report.cut_short.empty()) footer["cut_short"] = report.cut_short;
  if (!report.taken_elsewhere.empty()) footer["taken_elsewhere"] = report.taken_elsewhere;
  return Line(footer);
}

std::string JsonLines(const RunReport& report) {
  std::string text = HeaderLine(report);
  for (const CaseReport& c : report.cases) text += CaseLine(c);
  return text + FooterLine(report);
}

}  // namespace shardproof
