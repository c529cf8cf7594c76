// rank_processes.h: how do ranks run case after case in processes of their own, so that an engine
// that dies or hangs ends its case and no other?
//
// A rank process serves many cases, since what it needs (a CUDA context) is slow to make. It is
// forked before this process has done anything with a device, watched, and replaced when a case has
// left it in doubt. Several of them, of one host, belong to one RankProcesses; other hosts' are
// told through the hooks of a case.
#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/host/progress.h"
#include "conformance/runner/nccl/rank_answer.h"

namespace shardproof {

// What a rank process shares with the one that watches it.
struct RankSide {
  int rank = 0;                  // of the job
  Progress* progress = nullptr;  // of the engine
  std::atomic<uint64_t>* waits =
      nullptr;  // to grow while the host waits inside the fabric: then the engine does not hang
};

// Lives in a rank process.
class RankWork {
 public:
  virtual ~RankWork() = default;
  virtual std::vector<std::string> Facts() { return {}; }  // about the machine, for the report
  virtual RankAnswer Run(const std::string& item) = 0;
};
// Called in a fresh rank process. What it throws means that there can be no run at all.
using MakeRankWork = std::function<std::unique_ptr<RankWork>(const RankSide& side)>;

struct RankProcessOptions {
  int first_rank = 0, ranks = 1;  // of the job, in this RankProcesses
  double stall_seconds = 5;       // until a rank counts as stuck (workers/worker.h)
  double case_seconds = 120;      // of a case, whatever the progress
  double start_seconds = 120;     // until a process is ready
  double grace_seconds = 2;       // for the others, when a rank has died or is stuck
};

// How a case reaches the ranks that are elsewhere, and the fabrics of those that are here.
struct CaseHooks {
  std::function<void(const std::string& reason)> abort;
  std::function<std::optional<std::string>()> aborted;  // why, if somebody has ended the case
};

class RankProcesses {
 public:
  RankProcesses(const RankProcessOptions& options, MakeRankWork make);
  ~RankProcesses();  // ends all processes
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  // Until the first `world` ranks of the job have a process here that is ready. Throws
  // std::runtime_error with the rank and what it said, if it did not come so far.
  void Prepare(int world);
  // Runs the item, which says to the work what is to be done, on those ranks. Answers how each rank
  // ended, in order of rank. REQUIRES: Prepare(world).
  std::vector<RankAnswer> Run(const std::string& item, int world, const CaseHooks& hooks);

  const std::vector<std::string>& facts() const;  // of the first process that was ready
  int started() const;                            // processes so far
  pid_t pid(int rank) const;                      // -1: none

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shardproof
