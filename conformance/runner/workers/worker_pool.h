// worker_pool.h: how do many cases run at once in processes of their own, so that an engine that
// dies takes nothing with it?
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "conformance/runner/workers/worker.h"

namespace shardproof {

struct WorkResult {
  bool done = false;
  std::string blob;   // what work returned, if done
  bool hung = false;  // otherwise: it was killed
  std::string
      death;  // "ended by SIGSEGV (Segmentation fault): address 0x8", "no progress for 5 s: ..."
  int rank = -1;      // whose engine code ran; -1: the suite's own
  std::string where;  // "train_step 1, after communicate"
};

struct PoolOptions {
  int jobs = 1;
  // A worker that is stuck for so long (worker.h) is killed: it loops without issuing anything.
  double stall_seconds = 5;
  double limit_seconds = 600;  // of one item, whatever the progress
};

// Calls work(i) for i in [0, items) in forked workers and done(i, result) here, in order of
// completion. A worker that dies or stalls ends only its own item; a fresh one goes on with the
// next.
void RunInWorkers(size_t items, const PoolOptions& options,
                  const std::function<std::string(size_t item, WorkerSide& side)>& work,
                  const std::function<void(size_t item, const WorkResult& result)>& done);

}  // namespace shardproof
