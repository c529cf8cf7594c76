// world.h: which ranks, queues and communicators are there, and what happens when one of them takes
// a step?
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/arena.h"
#include "conformance/fabric/device.h"
#include "conformance/fabric/sim/comm.h"
#include "conformance/fabric/sim/fiber.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/fabric/sim/timing_policy.h"

namespace shardproof {

class World;

// What a blocking call of a host waits for. All given conditions.
struct HostWait {
  EntryId entry = -1;                // done
  bool drained = false;              // nothing pending
  const HostMeeting* all = nullptr;  // everybody has arrived
  int32_t members = 0;               // at all
  std::string what;                  // "stream_sync of comm (stream 1)"
};

enum class HostState : uint8_t { kRunnable, kBlocked, kDone };

// One rank: what the fabric reaches through the world.
struct Rank {
  Rank(int32_t index, const SimOptions& options)
      : device(index, options.queues), arena(index, options.arena_bytes) {}
  Device device;
  Arena arena;
  std::unique_ptr<Fabric> fabric;
  std::unique_ptr<Fiber> fiber;
  HostState host = HostState::kRunnable;
  HostWait wait;
  std::vector<Comm*> comms;            // by group id
  std::map<EntryId, int32_t> unready;  // started kernels: ops that cannot complete yet
  // Under kLazyComm, while blocked: what must complete first, in issue order.
  std::vector<EntryId> needed;
};

class World {
 public:
  World(int world, const SimOptions& options, const std::function<void(Fabric&)>& rank_main);
  ~World();

  SimResult Run();

  // For the fabric of a rank, from its fiber.
  Rank& rank(int32_t index) { return *ranks_[static_cast<size_t>(index)]; }
  int size() const { return static_cast<int>(ranks_.size()); }
  bool aborted() const { return aborted_; }
  // Entries were added: lets ready ones be chosen, and perhaps others go first.
  void Issued(int32_t rank);
  spf_status BlockHost(int32_t rank, HostWait wait);
  // Wakes them if they are complete.
  void Arrived(const HostMeeting& all, const std::vector<int32_t>& world_ranks);
  Comm* FindComm(std::string_view key, const std::vector<int32_t>& world_ranks, int32_t rank);
  void Fail(int32_t rank, std::string_view reason);
  void Mismatch(std::string text);

 private:
  void HostMain(int32_t rank, const std::function<void(Fabric&)>& rank_main);
  std::vector<Action>& enabled(ActionKind kind) { return enabled_[static_cast<size_t>(kind)]; }
  void Enable(ActionKind kind, int32_t rank, EntryId entry);
  bool AnythingEnabled() const;
  void Step();
  void RunHost(int32_t rank);
  void RunLocal(int32_t rank, EntryId entry);
  void StartKernel(int32_t rank, EntryId entry);
  void FinishKernel(int32_t rank, EntryId entry);
  void PartReady(KernelId kernel);
  void Pump(int32_t rank);  // moves newly ready entries into enabled_; passes records and waits
  void WakeHost(int32_t rank);
  bool Satisfied(const Rank& rank) const;
  bool TakeNeededFinish(Action* action);
  EntryId NeededFinish(Rank* rank);
  void FindNeeded(Rank* rank);
  bool Stuck();  // nothing is enabled. True: the run goes on, as an abort
  void Abort();  // throws nothing
  void EndHosts();

  SimOptions options_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<std::string, std::unique_ptr<Comm>, std::less<>> comms_;
  Chooser chooser_;
  Enabled enabled_;
  bool aborted_ = false;
  SimResult result_;
};

// report.cc. What rank waits for and for whom; empty if it is done and has nothing pending.
std::string DescribeBlocked(World* world, int32_t rank);

// report.cc. Which rank's block or stack is this? False: none of theirs.
bool DescribeAddress(World* world, uint64_t address, std::string* text);

// sim_fabric.cc
std::unique_ptr<Fabric> MakeSimFabric(World* world, int32_t rank);

}  // namespace shardproof
