// run_nccl.h: how are cases judged on GPUs?
//
// Ranks are processes. Without a job in the environment this process starts them all (--ranks,
// local to it); in a job each process starts its own one, which it watches, and rank 0 gathers and
// judges.
#pragma once
#include <memory>

#include "conformance/fabric/nccl/rendezvous/store.h"
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/options.h"

namespace shardproof {

// job: this process's end of a job; null: ranks are started here. Answers the exit code; in a job,
// rank 0's on all. Throws JobRefused (job/job_run.h) where cases cannot run on this machine. No
// device may have been used in this process.
int RunNcclCommand(const Options& options, const NcclKit& kit, std::unique_ptr<Store> job);

}  // namespace shardproof
