// worker_pool.h: how are many cases judged at once, in processes of their own?
//
// No foreign code runs in a worker: it runs below one (engine_process.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "conformance/runner/workers/worker.h"

namespace shardproof {

struct PoolOptions {
  int jobs = 1;
  // A worker that is stuck for so long (progress_watch.h) is killed: it loops.
  double stall_seconds = 5;
  double limit_seconds = 600;  // of one item, whatever the progress
  // Whether no further item is to be begun; null: all are. Asked again and again while items run.
  std::function<bool()> enough = nullptr;
};

// Calls work(i) for i in [0, items) in forked workers and done(i, result) here, in order of
// completion. A worker that dies or stalls ends only its own item; a fresh one goes on with the
// next.
void RunInWorkers(size_t items, const PoolOptions& options,
                  const std::function<std::string(size_t item, WorkerSide& side)>& work,
                  const std::function<void(size_t item, const WorkResult& result)>& done);

}  // namespace shardproof
