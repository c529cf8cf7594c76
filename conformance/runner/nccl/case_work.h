// case_work.h: what does a rank process do for one case on a GPU, and how do the ranks'
// answers become the end of the case?
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/fabric/nccl/rendezvous/store.h"
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/nccl/rank_processes.h"
#include "conformance/runner/options.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/rank_main.h"

namespace shardproof {

// One leg of a case (cases/legs.h), as rank processes run one at a time.
struct NcclItem {
  size_t run = 0;  // of the job's runs of cases; those of one case share a folder of checkpoints
  size_t leg = 0;
  std::string id;  // of the case

  std::string Meeting() const;  // the name of its rendezvous
};
std::string TextOf(const NcclItem& item);
// Throws std::invalid_argument for what TextOf does not give.
NcclItem ItemOf(const std::string& text);

// What all items of a job share; outlives the work.
struct NcclJob {
  const Options& options;
  const Plugin& plugin;
  std::string folder;  // for checkpoints, reached by all ranks
};

// Runs items, as TextOf says them, on a machine. REQUIRES: neither is null.
std::unique_ptr<RankWork> MakeNcclWork(const NcclJob& job, const RankSide& side,
                                       std::unique_ptr<RankMachine> machine,
                                       std::unique_ptr<Store> store);

// How a rank ended, from what its program and its machine say.
RankAnswer AnswerWith(const RankOutput& output, const MachineEnd& end);

// The ranks' answers, put together: those who waited in a hang hang; those who were told, or whose
// machine broke, because somebody died or ran for nothing were ended by that.
CaseEnd EndOf(std::vector<RankAnswer> answers);

}  // namespace shardproof
