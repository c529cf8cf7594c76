// run_command.h: what does each command do?
#pragma once
#include <functional>

#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/options.h"

namespace shardproof {

// What a program was linked with, beside the simulator; null: nothing.
struct OtherFabrics {
  std::function<int(const Options& options, int argc, char** argv)> mpi;
  std::function<int(const Options& options, const NcclKit& kit, int argc, char** argv)>
      nccl_under_mpi;
  NcclKit nccl;
};

// What an earlier run left in the folder of --report says nothing of this one, however this one
// ends: refused, or killed while the engine is loaded. Once for a run, by the process that writes
// it. Not before --last-failed: it may be in that report, and each rank reads it.
void VoidOldReport(const Options& options);

// Each answers the program's exit code. Under mpi RunCommand runs on every rank of mpirun; rank 0
// reports.
int RunCommand(const Options& options, const OtherFabrics& others, int argc, char** argv);
int CheckCommand(const Options& options);
int ListCommand(const Options& options);
int ProbeCommand(const Options& options);
int ReplayCommand(const Options& options);
int ShowCommand(const Options& options);
int PlanCommand(const Options& options);
int ExplainCommand(const Options& options);
int ExportCommand(const Options& options);
int ConvertCommand(const Options& options);
int DiffCommand(const Options& options);
int ShrinkCommand(const Options& options);
int VerdictCommand(const Options& options);
int BadgeCommand(const Options& options);
int WaiveCommand(const Options& options);
int EdgesCommand(const Options& options);

}  // namespace shardproof
