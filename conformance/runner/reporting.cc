#include "conformance/runner/reporting.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/cases/support/simpler_cases.h"
#include "conformance/common/read_file.h"
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

// One that can be read once alone, as bash's <(...), is left to who needs it.
std::string ChecksumOf(const std::string& file) {
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file, error);
  const std::optional<std::string> text = regular ? ReadFile(file) : std::nullopt;
  if (!text) return "";
  uint64_t sum = 14695981039346656037u;  // FNV-1a
  for (const char c : *text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
  char hex[24];
  std::snprintf(hex, sizeof hex, " (%016llx)", static_cast<unsigned long long>(sum));
  return hex;
}

// Shards of a run have the same, or they are of different lists of cases. What --supports names is
// another file on another machine, so what stands in it counts.
std::vector<std::string> OptionsOf(const Options& options) {
  const Options usual;
  std::vector<std::string> given;
  const auto add = [&](const char* name, const std::string& value, bool differs) {
    if (differs) given.push_back(std::string(name) + " " + value);
  };
  add("--gemm", options.gemm, options.gemm != usual.gemm);
  add("--level", options.level, options.level != usual.level);
  add("--queues", std::to_string(options.queues), options.queues != usual.queues);
  add("ranks", std::to_string(options.ranks), options.ranks != usual.ranks);
  add("--supports",
      std::filesystem::path(options.supports).filename().string() + ChecksumOf(options.supports),
      !options.supports.empty());
  add("--timing", options.timing, options.timing != usual.timing);
  add("--timings", std::to_string(options.timings), options.timings != usual.timings);
  return given;
}

}  // namespace

RunReport ReportFor(const Options& options) {
  RunReport report;
  report.impl = options.impl;
  report.fabric = options.fabric;
  report.asked = AskedText(options);
  report.profile = report.asked.empty() ? options.profile : "-";
  report.shard = options.shard;
  report.select = options.select;
  report.exclude = options.exclude;
  report.options = OptionsOf(options);
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
  for (size_t place = 0; place < verdict.result.findings.size(); ++place) {
    Finding& finding = verdict.result.findings[place];
    const bool warning = warnings.contains(finding.requirement);
    const auto other = verdict.partners.find(place);
    std::string partner;
    if (other != verdict.partners.end()) partner = ReplayLine(options, other->second);
    report.findings.push_back({std::move(finding), "", warning, std::move(partner)});
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
