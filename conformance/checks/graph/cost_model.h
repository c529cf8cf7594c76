// cost_model.h: if work took this long, how long would a run take, and how much communication would
// show?
//
// A replay with given durations over streams, events, host calls and communicators; resources are
// not shared (a communicator has its own wire, kernels do not slow each other down). For comparing
// orders of issue, not for prediction.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "conformance/checks/program/program.h"

namespace shardproof::graph {

struct CostModel {
  double latency_us = 10;  // of a collective
  double wire_bytes_per_us = 50'000;
  double launch_us = 2;  // of local work
  double memory_bytes_per_us = 1'000'000;
  // Instead of the above, if set: of local work, and of an operation as one member issued it. In
  // microseconds.
  std::function<double(const Trace&, const Event&)> duration_us;
};

struct CostedRank {
  double compute_us = 0;        // some compute or launch is in progress
  double communication_us = 0;  // some communicator kernel is
  double exposed_us = 0;        // the latter without the former
};

struct CostedRun {
  double total_us = 0;
  std::vector<CostedRank> ranks;
};

// The program must match and be free of cycles.
CostedRun Simulate(const Program& program, const CostModel& model);

}  // namespace shardproof::graph
