// sim_run.h: how does a case become a Run on the simulated machine?
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "conformance/fabric/process/file_operations.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/runner/rank_main.h"

namespace shardproof {

struct SimRunOptions {
  RankOptions rank;
  uint64_t seed = 1;
  TimingPolicy policy = TimingPolicy::kRandom;
  bool drift = true;
  int queues = 0;            // hardware queues that a rank's streams share; 0: one for each stream
  std::string trace_folder;  // empty: traces are not written
  std::function<void(std::function<bool(uint64_t address, std::string* text)> describe)> on_start;
  // Null: nobody looks. Else the run is made in a process of its own, and may be cut there: as of
  // workers/engine_process.h, in the process that watches.
  std::function<bool(const FileOperation& operation, int32_t saves)> on_file_operation;
};

// A run with what it refers to. Not copyable: Run points into it.
struct RunData {
  Run run;
  bool deadlock = false;
  bool cut = false;  // its process was ended on purpose: nothing else is known of it
  std::vector<std::string> notes;
  std::map<int32_t, std::string> printed;  // by the engine, by rank (workers/engine_process.h)
  uint64_t timing_hash = 0;
};

// Throws std::runtime_error: something failed in the suite, on some rank.
// Of a case with legs before it, that leg alone: what they saved is in options.rank.folder.
RunData RunOnSim(const Case& c, const Models& models, const Plugin& plugin,
                 const SimRunOptions& options);

// How a case is run, here or in a process of its own (isolation/run_apart.h). What it throws that
// is no std::exception passes through those who judge.
using RunCase = std::function<RunData(const Case& c, const SimRunOptions& options)>;
RunCase RunHere(const Plugin& plugin);  // which outlives it

// The legs of a case (LegsOf()), one after the other in one folder, up to the first that does not
// end well: that leg's run. legs outlives it.
RunData RunLegs(const std::vector<Case>& legs, const RunCase& run, const SimRunOptions& options);

// Words for the command line: eager, lazy-comm, lazy-compute, random, pct.
const char* TimingPolicyName(TimingPolicy policy);
TimingPolicy ParseTimingPolicy(const std::string& name);  // throws std::invalid_argument

}  // namespace shardproof
