#include "conformance/runner/reporting.h"

#include <ctime>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/cases/support/simpler_cases.h"
#include "conformance/common/version.h"
#include "conformance/report/files.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/replay_line.h"

namespace shardproof {

namespace {

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// What is asked instead of a profile; empty: a profile is.
std::string AskedText(const Options& options) {
  const auto counted = [](size_t n, const char* what) {
    return std::to_string(n) + what + (n == 1 ? "" : "s");
  };
  if (options.random > 0) return counted(static_cast<size_t>(options.random), " random case");
  if (options.cases.empty()) return "";
  return counted(options.cases.size(), " case") +
         (options.last_failed.empty() ? "" : " of --last-failed");
}

}  // namespace

RunReport ReportFor(const Options& options) {
  RunReport report;
  report.impl = options.impl;
  report.fabric = options.fabric;
  report.asked = AskedText(options);
  report.profile = report.asked.empty() ? options.profile : "-";
  report.shard = options.shard;
  report.fault = options.fault;
  report.began = Now();
  report.seed = options.seed;
  report.allow_partial = options.allow_partial;
  report.strict = options.strict;
  report.all_findings = options.all_findings;
  report.whole = options.cases.empty() && options.select.empty() && options.exclude.empty() &&
                 options.shard.empty() && options.random == 0 && options.max_fail == 0;
  return report;
}

CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options) {
  CaseReport report;
  report.id = Id(c);
  report.legal = c.illegal.empty();
  report.reason = std::move(verdict.reason);
  const std::set<std::string> warnings =
      options.strict ? std::set<std::string>() : WarningsOf(verdict.result);
  for (Finding& finding : verdict.result.findings) {
    const bool warning = warnings.contains(finding.requirement);
    report.findings.push_back({std::move(finding), "", warning});
  }
  report.not_checkable = std::move(verdict.result.not_checkable);
  report.notes = std::move(verdict.result.notes);
  report.judged.assign(verdict.result.judged.begin(), verdict.result.judged.end());
  report.drawings = std::move(verdict.drawings);
  report.status = StatusAfter(verdict.outcome, report);
  report.replay = ReplayLine(options, report.id);
  if (report.status == Status::kFail && !SimplerCases(c).empty())
    report.shrink = ShrinkLine(options, report.id);
  report.printed = std::move(verdict.printed);
  return report;
}

std::string HeaderLine(const Options& options) {
  std::string line = "shardproof " + VersionText() + ", ABI " + std::to_string(SPF_ABI_MAJOR) +
                     "." + std::to_string(SPF_ABI_MINOR) + ": " + options.impl + " on " +
                     options.fabric;
  if (options.ranks > 0) line += " of " + std::to_string(options.ranks) + " ranks";
  const std::string asked = AskedText(options);
  line += ", " + (asked.empty() ? "profile " + options.profile : asked);
  line += ", seed " + std::to_string(options.seed);
  return options.fault.empty() ? line : line + ", fault " + options.fault;
}

Lessons LessonsOfRequirements() {
  return [registry = Registry::Builtin()](std::string_view id) {
    const Requirement* row = registry.Find(id);
    if (row == nullptr) return Lesson{};
    return Lesson{row->why, row->bug.empty() ? row->reason : row->bug, row->fix};
  };
}

Sentence Sentences() {
  return [registry = Registry::Builtin()](std::string_view id) {
    const Requirement* row = registry.Find(id);
    return row == nullptr ? std::string("(not in the registry)") : row->text;
  };
}

}  // namespace shardproof
