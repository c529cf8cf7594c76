#include "property_tests/sim_judge.h"

#include <cstdlib>

namespace shardproof {

SimJudge::SimJudge() {
  std::string name = (std::filesystem::temp_directory_path() / "sim_judge_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
  folder_ = name;
}

SimJudge::~SimJudge() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string SimJudge::Complaint(const Case& c, Strategy strategy, uint64_t schedule_seed) {
  const std::filesystem::path checkpoints = folder_ / "case";
  std::filesystem::remove_all(checkpoints);
  std::filesystem::create_directory(checkpoints);
  SimRunOptions options;
  options.rank.folder = checkpoints.string();
  options.strategy = strategy;
  options.seed = schedule_seed;
  const Verdict verdict = JudgeOnSim(c, plugin_, options);
  if (verdict.outcome == Outcome::kPass) return "";
  std::string text =
      Id(c) + " under " + StrategyName(strategy) + ", seed " + std::to_string(schedule_seed) + ": ";
  if (verdict.result.findings.empty()) return text + "not judged: " + verdict.reason;
  const Finding& first = verdict.result.findings.front();
  return text + first.requirement + " on rank " + std::to_string(first.rank) + ": " +
         first.message + " (expected " + first.expected + ", seen " + first.seen + ")";
}

}  // namespace shardproof
