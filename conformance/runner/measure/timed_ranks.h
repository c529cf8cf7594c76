// timed_ranks.h: how are device times taken in rank processes, one measurement after another?
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/store.h"
#include "conformance/runner/nccl/kit.h"
#include "conformance/runner/nccl/rank_processes.h"

namespace shardproof {

// Lists of milliseconds, as many and as long on every rank.
using TimeLists = std::vector<std::vector<double>>;

struct RankTimes {
  TimeLists lists;
  std::string why;  // nothing could be measured; empty: it could
};

struct TimedRanksOptions {
  int ranks = 2;  // of this machine
  std::string gemm = "fp32";
  double seconds = 120;                        // of a measurement
  std::function<int(size_t number)> ranks_of;  // that take part in it; null: all do
};

class TimedRanks {
 public:
  // measure: called in a rank process, for the measurement with that number; no memory is poisoned.
  using Measure = std::function<RankTimes(CaseMachine& machine, Rendezvous& meeting,
                                          const RankSide& side, size_t number)>;
  TimedRanks(const TimedRanksOptions& options, const NcclKit& kit, const Measure& measure);

  // Of each time the slowest rank's. A number is used once. Throws std::runtime_error with the rank
  // and what it said.
  TimeLists Run(size_t number);
  const std::vector<std::string>& facts() const { return processes_.facts(); }  // of the machine

 private:
  TimedRanksOptions options_;
  std::unique_ptr<Store> store_;
  RankProcesses processes_;
};

}  // namespace shardproof
