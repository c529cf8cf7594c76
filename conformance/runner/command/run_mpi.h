// run_mpi.h: how are cases judged on many processes under mpirun?
#pragma once
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/options.h"

namespace shardproof {

// Runs on every process of the job in lockstep; rank 0 judges and reports, and all answer its exit
// code.
int RunMpiCommand(const Options& options, int argc, char** argv);

// The same on GPUs: MPI only brings the processes together (rendezvous/meet_over_mpi.h).
int RunNcclUnderMpi(const Options& options, const NcclKit& kit, int argc, char** argv);

}  // namespace shardproof
