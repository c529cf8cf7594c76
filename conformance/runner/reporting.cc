#include "conformance/runner/reporting.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/report/files.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/replay_line.h"

namespace shardproof {

RunReport ReportFor(const Options& options) {
  RunReport report;
  report.impl = options.impl;
  report.fabric = options.fabric;
  report.profile = options.profile;
  report.shard = options.shard;
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
  return report;
}

std::string HeaderLine(const Options& options) {
  std::pair<int, int> newest;
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    std::pair<int, int> since;
    if (std::sscanf(row.since.c_str(), "%4d.%4d", &since.first, &since.second) == 2)
      newest = std::max(newest, since);
  }
  std::string line = "shardproof " + std::to_string(newest.first) + "." +
                     std::to_string(newest.second) + ", ABI " + std::to_string(SPF_ABI_MAJOR) +
                     "." + std::to_string(SPF_ABI_MINOR) + ": " + options.impl + " on " +
                     options.fabric;
  if (options.ranks > 0) line += " of " + std::to_string(options.ranks) + " ranks";
  line += options.random > 0       ? ", " + std::to_string(options.random) + " random cases"
          : !options.cases.empty() ? ", " + std::to_string(options.cases.size()) +
                                         (options.cases.size() == 1 ? " case" : " cases")
                                   : ", profile " + options.profile;
  return line + ", seed " + std::to_string(options.seed);
}

Sentence Sentences() {
  return [registry = Registry::Builtin()](std::string_view id) {
    const Requirement* row = registry.Find(id);
    return row == nullptr ? std::string("(not in the registry)") : row->text;
  };
}

}  // namespace shardproof
