#include "conformance/checks/robustness/left_behind.h"

#include <utility>

namespace shardproof {

CheckResult JudgeLeftBehind(const Run& run) {
  CheckResult result;
  if (run.left_behind.empty()) return result;
  result.judged.insert("GE-37");
  const bool by_rank = run.left_behind.size() == run.traces.size();
  for (size_t i = 0; i < run.left_behind.size(); ++i) {
    if (run.left_behind[i].empty()) continue;
    Finding finding;
    finding.requirement = "GE-37";
    finding.rank = by_rank ? static_cast<int>(i) : -1;
    finding.operation = "the end of the run";
    finding.expected = "the process is as it was before create, and nothing else runs";
    finding.seen = run.left_behind[i];
    finding.message = "the engine does not leave its process as it found it";
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace shardproof
