// fabric.h: what must a machine offer so that an engine can run on it?
//
// One Fabric per rank and engine world. It knows streams, events, memory and communicators; it
// knows nothing of models, parameters or FSDP. Arguments have been validated by the caller
// (conformance/host): a fabric may assert. Ids are small integers, counted per rank from 0 and
// never reused.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace shardproof {

// A block of memory. address is what the engine sees: on the CPU fabrics an unreadable view of the
// same pages for device memory, and host itself for pinned memory. host is what bodies and
// collectives use.
struct Block {
  int32_t id = -1;
  uint64_t address = 0;
  std::byte* host = nullptr;
  uint64_t bytes = 0;
  bool pinned = false;
};

// One operation of a group call. Pointers are valid until the operation has completed on this rank.
// Counts are elements. send and recv follow spf_collective; in place is send pointing into recv or
// the reverse.
struct CommOp {
  int32_t kind = 0, dtype = 0, reduction = 0;  // spf_collective_kind, spf_dtype, spf_reduction
  int32_t group = -1;                          // id returned by OpenGroup or CreateGroup
  int32_t stream = -1;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  uint64_t count = 0;
  std::vector<uint64_t> send_counts, recv_counts;
  int32_t peer = -1;
  std::string what;  // for messages: "all_gather #12 on dp_cp (param_full)"
};

// Local device work: runs once, in stream order, with all memory of the rank accessible through
// Block::host.
using Body = std::function<void()>;

// One rank's machine. Calls come from the rank's host thread (fiber). Nothing here throws; blocking
// calls answer SPF_OK or SPF_ABORTED, and after an abort all enqueues are ignored.
class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual bool aborted() const = 0;

  // Streams run their entries in order. Destroying a stream does not wait: entries already enqueued
  // still run.
  virtual int32_t CreateStream(std::string_view name, int priority) = 0;
  virtual void DestroyStream(int32_t stream) = 0;
  virtual spf_status SyncStream(int32_t stream) = 0;  // blocks

  // CUDA semantics: a wait takes the latest record at the time of its issue; none: no edge. Returns
  // whether there was one. Destroying an event leaves issued waits valid.
  virtual int32_t CreateEvent() = 0;
  virtual void DestroyEvent(int32_t event) = 0;
  virtual void Record(int32_t event, int32_t stream) = 0;
  virtual bool Wait(int32_t event, int32_t stream) = 0;
  virtual spf_status SyncEvent(int32_t event, bool* recorded) = 0;  // blocks

  // Device memory is stream-ordered: contents are poison (all bits one: NaN, -1) from the alloc's
  // place in the stream, and again from the free's. Pinned memory is host-ordered. The bytes of a
  // freed block may be handed out again to an alloc that is ordered after the free; reuse is made
  // likely. Alloc never fails: limits are the caller's.
  virtual Block Alloc(int32_t stream, uint64_t bytes, bool pinned) = 0;
  virtual void Free(int32_t stream, const Block& block) = 0;
  // Device memory as from Alloc, which RegisterBlock accepts.
  virtual Block AllocRegistrable(int32_t stream, uint64_t bytes) {
    return Alloc(stream, bytes, false);
  }
  // So that collectives on the group may use the whole block without copies. Collective over the
  // group, blocks.
  virtual spf_status RegisterBlock(int32_t group, const Block& block) = 0;
  // Before Free and DestroyGroup. Blocks until this rank's work on the group is done.
  virtual spf_status DeregisterBlock(int32_t group, const Block& block) = 0;

  virtual void Enqueue(int32_t stream, std::string_view what, Body body) = 0;

  // Opens a communicator that all its members know by the same key (world-unique). Local; members
  // in rank order.
  virtual int32_t OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) = 0;
  // Collective over parent (blocks): each caller names the members of its subset, as world ranks,
  // or none. The answer is the new id (-1 if none), and the world-unique key that all members of
  // the new group agree on.
  virtual spf_status CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks,
                                 int32_t* group, std::string* key) = 0;
  // Collective over the group, after its work; blocks.
  virtual spf_status DestroyGroup(int32_t group) = 0;

  // Enqueues the operations as one group: one kernel per communicator, in order of first use, each
  // on all streams that its operations name. Kernels of one communicator start in issue order,
  // whatever their streams.
  virtual void Communicate(std::vector<CommOp> ops) = 0;

  // Blocks until every entry of this rank, on live and destroyed streams, has completed. For the
  // runner, at the end.
  virtual spf_status Drain() = 0;
  // This rank cannot go on (refused communicate, entry point that failed): ends the run on all
  // ranks. Others see SPF_ABORTED at their next blocking call at the latest; whoever only waits for
  // this rank is woken. Local.
  virtual void Fail(std::string_view reason) = 0;
};

}  // namespace shardproof
