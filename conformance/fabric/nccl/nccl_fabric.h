// nccl_fabric.h: what is one rank's machine on a GPU with CUDA and NCCL?
//
// All rules of fabric.h on top of Gpu. What is different from the CPU fabrics:
//   - Enqueue calls the body at once, on the host thread. The body puts device work into
//   QueueOf(stream); it touches no
//     memory of the device itself.
//   - Communicators are made at first use, which is a meeting (communicators.h).
//   - Nothing sees a mismatch or a deadlock across ranks. What does not go on is ended by the
//   watchdog: a host that
//     waits looks for completed work, errors of communicators, and the other ranks' end, and gives
//     up when nothing has completed for stall_seconds. Then this rank's communicators are aborted,
//     what was pending is kept in words, and the rendezvous tells the others. The trace checks say
//     what was wrong.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/common/at.h"
#include "conformance/cuda/queue.h"
#include "conformance/fabric/fabric.h"
#include "conformance/fabric/nccl/communicators.h"
#include "conformance/fabric/nccl/gpu.h"
#include "conformance/fabric/nccl/ledger.h"
#include "conformance/fabric/nccl/pinned_pool.h"
#include "conformance/fabric/nccl/plan.h"
#include "conformance/fabric/nccl/rendezvous/rendezvous.h"
#include "conformance/fabric/nccl/watchdog.h"

namespace shardproof {

struct NcclOptions {
  double stall_seconds = 60;
  std::function<int64_t()> now_us;  // a clock that never goes back; empty: the machine's
  // Make communicators in OpenGroup and CreateGroup: for programs that come to their first uses in
  // different orders. Then ranks must open the groups that they share in one order.
  bool communicators_at_open = false;
  // Communicators of at most so many ranks connect all their members when they are made
  // (communicators.h).
  int32_t connect_up_to = 64;
  // Device memory is poisoned, which costs its bandwidth twice for each block. Off for performance
  // runs only: what is read from fresh or freed memory is then not told by its value.
  bool poison = true;
};

// Why a rank's run was ended, as that rank saw it.
struct NcclEnd {
  Watchdog::Cause cause = Watchdog::Cause::kNone;  // kNone with a reason: this rank failed
  std::string reason;                              // names the rank where it began
  std::string host;                                // in what the host waited, or waited last
  std::string pending;  // lines: what this rank had issued that is not known to be complete
  std::vector<CommPosition> positions;
};

class NcclFabric : public Fabric {
 public:
  // gpu, pinned (of this gpu) and rendezvous (of this case) outlive the fabric. The caller's thread
  // is the host thread.
  NcclFabric(Gpu& gpu, PinnedPool& pinned, Rendezvous& rendezvous, NcclOptions options);
  // Closes, if nobody has, and gives everything back.
  ~NcclFabric() override;
  // The end of a run: drains, and ends the communicators together with their other members. Blocks.
  spf_status Close();

  int rank() const override { return rendezvous_.rank(); }
  int world() const override { return rendezvous_.size(); }
  bool aborted() const override { return aborted_; }

  int32_t CreateStream(std::string_view name, int priority) override;
  void DestroyStream(int32_t stream) override;
  spf_status SyncStream(int32_t stream) override;
  void Enqueue(int32_t stream, std::string_view what, Body body) override;

  int32_t CreateEvent() override;
  void DestroyEvent(int32_t event) override;
  void Record(int32_t event, int32_t stream) override;
  bool Wait(int32_t event, int32_t stream) override;
  spf_status SyncEvent(int32_t event, bool* recorded) override;

  // From ncclMemAlloc. What was freed on a stream goes to the next such block of its size on that
  // stream.
  Block AllocRegistrable(int32_t stream, uint64_t bytes) override;
  Block Alloc(int32_t stream, uint64_t bytes, bool pinned) override;
  void Free(int32_t stream, const Block& block) override;
  spf_status RegisterBlock(int32_t group, const Block& block) override;
  spf_status DeregisterBlock(int32_t group, const Block& block) override;

  int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) override;
  spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks, int32_t* group,
                         std::string* key) override;
  spf_status DestroyGroup(int32_t group) override;
  void Communicate(std::vector<CommOp> ops) override;

  spf_status Drain() override;
  void Fail(std::string_view reason) override;

  // For bodies: the stream's end as kernels see it.
  Queue& QueueOf(int32_t stream) { return gpu_.QueueOf(At(streams_, stream)); }

  // Puts a time stamp into the stream; after it is complete, milliseconds from one to another. For
  // performance runs.
  int32_t Stamp(int32_t stream);
  double MillisecondsBetween(int32_t from, int32_t to);

  const NcclEnd& end() const { return end_; }  // REQUIRES: aborted
  int32_t live_blocks() const { return live_blocks_; }
  int64_t pending_entries() const { return ledger_.device().pending(); }
  // What members did not agree on in CreateGroup and RegisterBlock.
  const std::vector<std::string>& mismatches() const { return mismatches_; }

 private:
  // Runs body unless the run has ended; what it throws ends the run.
  template <class F>
  void Try(const std::string& what, F&& body);
  // For calls that block: wait(give_up) answers false when it gave up.
  template <class F>
  spf_status Blocking(const std::string& what, F&& wait);
  void Stop(Watchdog::Cause cause, const std::string& reason);
  void StopByWatchdog();

  bool MakeCommunicator(int32_t group, const std::string& what);
  bool IssueKernel(const KernelPlan& plan, EntryId kernel);
  void OrderBehindPrevious(const KernelPlan& plan, EntryId kernel, int32_t lead);
  void After(int32_t later, int32_t earlier);  // streams
  void GiveEverythingBack();
  void Poison(int32_t stream, const Block& block);
  Block Begin(int32_t stream, uint64_t bytes, const GpuMemory& memory);  // a block of device memory
  spf_status AwaitWorkOn(int32_t group, const std::string& call);
  void Deregister(int32_t group, int32_t block);
  void DeregisterAllOf(int32_t group);

  Gpu& gpu_;
  PinnedPool& pinned_;
  Rendezvous& rendezvous_;
  NcclOptions options_;
  Ledger ledger_;
  Communicators communicators_;
  Watchdog watchdog_;
  bool aborted_ = false, closed_ = false;
  NcclEnd end_;
  std::vector<int32_t> streams_, events_, stamps_;  // the Gpu's; -1: destroyed
  int32_t edge_event_ = -1;                         // the Gpu's, for edges of our own
  int32_t next_block_ = 0;
  std::map<int32_t, Block> live_;  // and what was freed after the end
  int32_t live_blocks_ = 0;
  struct Registrable {
    GpuMemory memory;
    uint64_t bytes = 0;
  };
  std::map<std::byte*, Registrable> registrable_;  // what was ever taken
  std::map<std::pair<int32_t, uint64_t>, std::vector<GpuMemory>>
      spare_registrable_;  // by stream and size
  std::map<std::pair<int32_t, int32_t>, int64_t>
      registrations_;  // by group and block: the Gpu's handle
  std::map<int32_t, int64_t> creates_,
      registers_;  // by group: CreateGroup, RegisterBlock calls so far
  std::vector<std::string> mismatches_;
};

}  // namespace shardproof
