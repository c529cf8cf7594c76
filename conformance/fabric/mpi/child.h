// child.h: what does the process do that runs a rank's engine?
#pragma once
#include <functional>
#include <string>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/mpi/machine.h"

namespace shardproof::mpi {

// The fabric of a rank as its engine sees it: every call goes to the machine.
class MpiFabric final : public Fabric {
 public:
  explicit MpiFabric(Machine* machine) : machine_(machine) {}
  int rank() const override { return machine_->rank(); }
  int world() const override { return machine_->world(); }
  bool aborted() const override { return machine_->aborted(); }
  int32_t CreateStream(std::string_view name, int priority) override;
  void DestroyStream(int32_t stream) override;
  spf_status SyncStream(int32_t stream) override;
  int32_t CreateEvent() override;
  void DestroyEvent(int32_t event) override;
  void Record(int32_t event, int32_t stream) override;
  bool Wait(int32_t event, int32_t stream) override;
  spf_status SyncEvent(int32_t event, bool* recorded) override;
  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override;
  void Free(int32_t stream, const Block& block) override;
  void Enqueue(int32_t stream, std::string_view what, Body body) override;
  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override;
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override;
  spf_status DestroyGroup(int32_t group) override;
  spf_status RegisterBlock(int32_t group, const Block& block) override;
  spf_status DeregisterBlock(int32_t group, const Block& block) override;
  void Communicate(std::vector<CommOp> ops) override;
  spf_status Drain() override;
  void Fail(std::string_view reason) override;

 private:
  spf_status AwaitWorkOn(int32_t group, const char* call);
  spf_status Meet(int32_t group, const char* call, MessageKind kind);

  Machine* machine_;
};

// Runs rank_main on a machine of its own and ends the process. Called in a forked child; never
// returns.
[[noreturn]] void RunChild(const MachineConfig& config, SharedMemory& shared,
                           const std::function<std::string(Fabric&)>& rank_main);

}  // namespace shardproof::mpi
