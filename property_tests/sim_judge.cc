#include "property_tests/sim_judge.h"

#include <filesystem>

namespace shardproof {

std::string SimJudge::Complaint(const Case& c, TimingPolicy policy, uint64_t timing_seed) {
  const std::filesystem::path checkpoints = std::filesystem::path(folder_.path()) / "case";
  std::filesystem::remove_all(checkpoints);
  std::filesystem::create_directory(checkpoints);
  SimRunOptions options;
  options.rank.folder = checkpoints.string();
  options.policy = policy;
  options.seed = timing_seed;
  const Verdict verdict = JudgeOnSim(c, RunHere(plugin_), options);
  if (verdict.outcome == Outcome::kPass) return "";
  std::string text =
      Id(c) + " under " + TimingPolicyName(policy) + ", seed " + std::to_string(timing_seed) + ": ";
  if (verdict.outcome == Outcome::kPartial) {
    for (const NotCheckable& row : verdict.result.not_checkable) {
      if (row.kind != NotCheckable::Kind::kMissing) continue;
      text += "\n  " + row.requirement + " is open: " + row.why;
    }
    return text;
  }
  if (verdict.result.findings.empty()) return text + "not judged: " + verdict.reason;
  const Finding& first = verdict.result.findings.front();
  return text + first.requirement + " on rank " + std::to_string(first.rank) + ": " +
         first.message + " (expected " + first.expected + ", seen " + first.seen + ")";
}

}  // namespace shardproof
