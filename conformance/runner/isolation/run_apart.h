// run_apart.h: how does a case run on sim without foreign code in this process?
#pragma once
#include <functional>
#include <string>

#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"
#include "conformance/runner/workers/engine_process.h"

namespace shardproof {

// Thrown where a run gave no evidence since its engine ended the process, or hangs. No
// std::exception: it is the engine's failure, not the suite's.
struct EngineDied {
  EngineProcessEnd end;
};

// What it is, as a finding GE-26 or GE-27; a failure of the suite, if no engine had been entered.
Verdict VerdictOf(const EngineDied& died);

// Runs each case in a fresh process, which loads the engine and ends with the run. All runs of one
// RunCase together have options.limit_seconds from now on. The evidence is read and checked here.
// It throws EngineDied, and std::runtime_error for what goes wrong in the suite, or cannot be read.
RunCase RunApart(const std::string& address, const EngineProcessOptions& options);

// The same, with something to do beside the run in its process.
using RunInside = std::function<RunData(const Plugin& plugin, const SimRunOptions& options)>;
RunData RunApartWith(const std::string& address, const EngineProcessOptions& options, const Case& c,
                     const SimRunOptions& sim, const RunInside& run);

// The same for what is no RunData: what work returns, then what it has left behind in words, as the
// last field. What it says lies in the answer's memory. sim may not be cut.
using FrameInside = std::function<Frame(const Plugin& plugin, const SimRunOptions& options)>;
EngineProcessEnd FrameFromApart(const std::string& address, const EngineProcessOptions& options,
                                const SimRunOptions& sim, const FrameInside& work);

}  // namespace shardproof
