// worker_pool.h: how do many cases run at once in processes of their own, so that an engine that dies takes nothing
// with it?
#pragma once
#include <cstddef>
#include <functional>
#include <string>

#include "conformance/host/progress.h"

namespace shardproof {

struct WorkResult {
  bool done = false;
  std::string blob;   // what work returned, if done
  std::string death;  // otherwise: "signal 11 (Segmentation fault)", "exit(0)", "no progress for 5 s"
  std::string where;  // otherwise: "rank 3 in train_step 1, after communicate"
};

struct PoolOptions {
  int jobs = 1;
  // A worker whose Progress does not move for so long is killed: it loops without calling its host.
  double stall_seconds = 5;
};

// Calls work(i) for i in [0, items) in forked workers and done(i, result) here, in order of completion. A worker that
// dies or stalls ends only its own item; a fresh one goes on with the next.
void RunInWorkers(size_t items, const PoolOptions& options,
                  const std::function<std::string(size_t item, Progress& progress)>& work,
                  const std::function<void(size_t item, const WorkResult& result)>& done);

// In a worker: notes what a fatal signal hit before the process dies. describe may be empty.
void NoteFatalSignals(Progress& progress, std::function<bool(uint64_t address, std::string* text)> describe);

}  // namespace shardproof
