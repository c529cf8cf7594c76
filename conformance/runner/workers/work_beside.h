// work_beside.h: how does one piece of work go on in a process beside this one?
//
// The process is forked, so the work has all that this one has in memory when it begins; what it
// changes is lost. No foreign code runs in it.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "conformance/runner/workers/worker.h"

namespace shardproof {

class WorkBeside {
 public:
  // Throws std::runtime_error if there can be no process. REQUIRES: !under_way().
  void Begin(const std::function<std::string()>& work);
  bool under_way() const { return under_way_; }
  // Whether Await would return at once. REQUIRES: under_way().
  bool Ended();
  // Waits for the end; after limit_seconds it is ended. REQUIRES: under_way().
  WorkResult Await(double limit_seconds);

 private:
  Worker worker_;
  Worker::Said said_ = Worker::Said::kNothing;
  Frame answer_;
  bool under_way_ = false;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace shardproof
