// sim_cases.h: how are many cases judged on the simulated machine, by all cores?
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"
#include "conformance/runner/support/up_to_last.h"
#include "conformance/runner/workers/worker_pool.h"

namespace shardproof {

// Engines run in processes below workers, which judge.
class SimCases {
 public:
  explicit SimCases(const Options& options);  // outlives it

  // done: as cases end, in any order. enough: no further case is to be begun; null: all are.
  using CaseDone = std::function<void(size_t place, CaseReport report)>;
  void Judge(const std::vector<Case>& cases, const CaseDone& done,
             std::function<bool()> enough = nullptr);
  // Up to the first, in order, of which last is true; null: of all.
  std::vector<CaseReport> Judge(const std::vector<Case>& cases, const IsLast& last = nullptr);

  size_t jobs() const { return static_cast<size_t>(pool_.jobs); }
  size_t different() const { return different_; }  // timings, of all cases

 private:
  const Options& options_;
  PoolOptions pool_;
  size_t different_ = 0;
};

}  // namespace shardproof
