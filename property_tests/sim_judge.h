// sim_judge.h: does the reference conform in this case, under this timing?
#pragma once
#include <string>

#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/scratch_folder.h"

namespace shardproof {

class SimJudge {
 public:
  // Empty: it passes. Else why not, with the first finding.
  std::string Complaint(const Case& c, TimingPolicy policy, uint64_t timing_seed);

 private:
  Plugin plugin_{"builtin:reference"};
  ScratchFolder folder_;  // for checkpoints, emptied between cases
};

}  // namespace shardproof
