// sim.h: what does a program of many ranks do under a chosen timing, all in one process and
// repeatable?
//
// Ranks are fibers, streams are queues, and one seeded policy picks what happens next: a host
// that runs on, a stream's first entry, a communication that completes. The same seed gives the
// same timing, step for step. A deadlock is seen at once and exactly: nothing can happen and
// somebody is not done.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/fabric.h"

namespace shardproof {

enum class TimingPolicy : uint8_t {
  kEager,     // device work completes as soon as it can; hosts take turns
  kLazyComm,  // no communication completes before nothing else can happen: shows a missing wait
              // behind a collective
  kRandom,    // any next step, with weights that the seed chooses
  kPct,       // random priorities with pct_depth change points (probabilistic concurrency testing)
  kLazyCompute  // no local work runs before nothing else can happen: shows a missing wait before a
                // collective
};

struct SimOptions {
  uint64_t seed = 1;
  TimingPolicy policy = TimingPolicy::kEager;
  int pct_depth = 3;
  // Hardware queues of a rank: the streams share them, and each serves its entries strictly in the
  // order in which the host issued them (1: what CUDA_DEVICE_MAX_CONNECTIONS=1 may do at worst). 0:
  // a queue for each stream.
  int queues = 0;
  uint64_t arena_bytes = uint64_t{1}
                         << 30;  // address space a rank; pages cost nothing until they are written
  uint32_t stack_bytes = 256 << 10;
  // Let some ranks run far ahead: hosts do not take turns at every call, and under kRandom some
  // hosts are slow.
  bool drift = false;
  // Called once before the ranks start. For a SIGSEGV handler: what may an address be? Valid until
  // RunSim returns.
  std::function<void(std::function<bool(uint64_t address, std::string* text)> describe)> on_start;
  // Called after each step of device work; for who watches whether the run goes on: a host that
  // waits does nothing meanwhile. May be null.
  std::function<void()> on_device_step;
};

struct SimResult {
  bool deadlock = false;  // nothing could happen, and no rank had failed
  bool aborted = false;   // deadlock, or some ranks were ended because another one failed
  // By rank: what it waited for, and for whom, when nothing could happen.
  std::vector<std::string> blocked;
  // By rank: what its main threw before any abort, or its reason for Fail.
  std::vector<std::string> errors;
  std::vector<std::string> threw;       // by rank: what an engine's function threw in device work
  std::vector<std::string> mismatches;  // operations that met without being alike, at most 64
  std::vector<int32_t> live_blocks;     // by rank: blocks never freed
  uint64_t timing_steps = 0;
  uint64_t timing_hash = 0;  // equal hashes: equal timings
};

// Runs rank_main once for each of world ranks (1..64) and returns when all are done and all device
// work has run, or nothing more can happen. Collectives need all members before they complete under
// kEager and the lazy policies; under kRandom and kPct only the peers whose data the result
// needs, and a send completes without its receiver. If the simulation itself fails, or device work
// throws what is no EngineThrew, each rank_main comes to its end, and what went wrong is thrown.
SimResult RunSim(int world, const SimOptions& options,
                 const std::function<void(Fabric&)>& rank_main);

}  // namespace shardproof
