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

// One leg of a case (cases/legs.h): what rank processes run at a time.
struct NcclLeg {
  Case spec;
  size_t of = 0;  // the place of its case; the legs of a case share a folder of checkpoints
};

// What all legs of a run share; outlives the work.
struct NcclLegs {
  const Options& options;
  const std::vector<NcclLeg>& legs;
  const Plugin& plugin;
  std::string folder;  // for checkpoints, reached by all ranks
};

// The name of a leg's rendezvous.
std::string MeetingOf(size_t leg);

// Runs legs on a machine; an item is the place of one. REQUIRES: neither is null.
std::unique_ptr<RankWork> MakeNcclWork(const NcclLegs& legs, const RankSide& side,
                                       std::unique_ptr<RankMachine> machine,
                                       std::unique_ptr<Store> store);

// How a rank ended, from what its program and its machine say.
RankAnswer AnswerWith(const RankOutput& output, const MachineEnd& end);

// The ranks' answers, put together: those who waited in a hang hang; those who were told, or whose
// machine broke, because somebody died or ran for nothing were ended by that.
CaseEnd EndOf(std::vector<RankAnswer> answers);

}  // namespace shardproof
