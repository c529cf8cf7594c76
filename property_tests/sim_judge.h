// sim_judge.h: does the reference conform in this case, under this schedule?
#pragma once
#include <filesystem>
#include <string>

#include "conformance/runner/judge.h"

namespace shardproof {

class SimJudge {
 public:
  SimJudge();
  ~SimJudge();
  SimJudge(const SimJudge&) = delete;
  SimJudge& operator=(const SimJudge&) = delete;

  // Empty: it passes. Else why not, with the first finding.
  std::string Complaint(const Case& c, Strategy strategy, uint64_t schedule_seed);

 private:
  Plugin plugin_{"builtin:reference"};
  std::filesystem::path folder_;  // for checkpoints, emptied between cases
};

}  // namespace shardproof
