// rank_main.h: what does one rank do in one case, whatever the fabric?
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/fabric/fabric.h"
#include "conformance/host/executor.h"
#include "conformance/host/faulty.h"
#include "conformance/host/progress.h"
#include "conformance/model/model.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/rank_output.h"
#include "conformance/trace/event.h"

namespace shardproof {

// The models of a case, one per instance, shared by all ranks of a process.
using Models = std::vector<std::unique_ptr<const Model>>;
Models MakeModels(const Case& c);

// An allocation of device memory that is answered SPF_NO_MEMORY, counted from 0; rank -1: none is.
struct NoMemoryAt {
  int32_t rank = -1;
  int64_t allocation = -1;
};

class CaseFamilies;  // rank_config.h

struct RankOptions {
  RecordLevel level = RecordLevel::kDigests;
  std::string folder;  // exists; checkpoints go below it
  std::optional<Fault> fault;
  std::atomic<bool>* fault_struck = nullptr;  // shared with who looks at it; may be null
  NoMemoryAt no_memory;                       // of a case with one engine
  std::optional<uint64_t> most_bytes;         // of an engine's memory on a rank; none: HostConfig's
  // For a debugger: stop is called on this rank when this event is about to be recorded.
  int32_t stop_rank = -1;
  int64_t stop_event = -1;
  std::function<void()> stop;
  bool start_together =
      false;  // all ranks meet before the first call, so that engine times compare
  Progress* progress = nullptr;  // may be null
  // REQUIRES: progress. The process ends by SIGKILL when so many saves have returned, of all ranks
  // that share progress; 0: it does not.
  int32_t end_after_saves = 0;
  // Before and after each entry call into an engine, outside of what is recorded; may be null.
  std::function<void(std::string_view call, int64_t step, bool begins)> on_call;
  // After a create that succeeded, before any other call; may be null.
  std::function<void(int32_t rank, spf_engine*)> on_created;
  // Of the case, where many ranks are run; null: made for this one. Outlives the run.
  const CaseFamilies* families = nullptr;
  // Who does a rank's device work, one for all instances of the rank; null: the CPU.
  std::function<std::shared_ptr<Executor>(Fabric&)> executor;
};

// Runs every instance's script on this rank: call by call, round robin over the instances, without
// any barrier. One that declines the case ends, and the others go on; the outcome is the first that
// is neither good nor that, else that. Throws std::runtime_error, which begins with kInTheSuite,
// when no device work of the rank runs any more.
RankOutput RunRank(Fabric& fabric, const Case& c, const Models& models, const Plugin& plugin,
                   const RankOptions& options);

}  // namespace shardproof
