// device.h: what has one rank issued, and which of it may start now?
//
// A passive, deterministic state machine: no threads, no clock, no policy. Whoever owns it (sim,
// mpi) decides which of the ready entries starts next, runs what is to be run, and says when it is
// complete. The rules are the base edges (E0) of the deadlock model:
//   stream        an entry starts when everything before it on all its streams has completed
//   event         a wait starts when the record that it captured at issue has completed
//   communicator  a kernel starts when the previous kernel of its communicator has completed,
//                 whatever the streams
// With fewer hardware queues than streams (profile E2 for one queue) there is one more: an entry
// starts only after everything issued before it into its queue has started, whatever that waits
// for. Once an entry is ready it stays ready.
//
// Not thread-safe: callers that share it between threads lock around it. After an exception, say
// std::bad_alloc, nothing but Abandon and the destructor may follow.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/fabric.h"

namespace shardproof {

// Counts the entries of one rank in issue order, from 0. -1: none.
using EntryId = int64_t;

enum class EntryKind : uint8_t {
  kLocal,   // run body, then Complete
  kRecord,  // nothing to do: Start, Complete
  kWait,    // nothing to do: Start, Complete
  kKernel   // Start, carry out ops, Complete
};
enum class EntryState : uint8_t { kQueued, kReady, kRunning, kDone };

struct Entry {
  EntryId id = -1;
  EntryKind kind = EntryKind::kLocal;
  EntryState state = EntryState::kQueued;
  std::vector<int32_t> streams;  // one; a kernel may be on several
  std::string what;
  Body body;                // kLocal
  int32_t event = -1;       // kRecord, kWait
  EntryId captured = -1;    // kWait: the record that it waits for
  int32_t group = -1;       // kKernel
  EntryId previous = -1;    // kKernel: the kernel before it on the communicator
  std::vector<CommOp> ops;  // kKernel, in the order given; all on group
  // Of each op, its place among the collectives of the communicator on this rank, or, for send and
  // recv, among the messages of this rank to (from) that peer. Ops with equal places match across
  // ranks.
  std::vector<int64_t> positions;
  std::vector<EntryId> behind;  // before it in its hardware queues, not started when it was issued
  int32_t blockers = 0;         // how many of the rules above do not hold yet
  std::vector<EntryId> dependents;  // wait for its completion
};

// A communicator as this rank knows it. Members are world ranks in rank order.
struct DeviceGroup {
  std::string key;
  std::vector<int32_t> members;
  int32_t me = -1;                      // this rank's index in members
  int64_t collectives = 0;              // issued so far
  std::vector<int64_t> sent, received;  // issued so far, by peer (index in members)
  EntryId last_kernel = -1;
};

class Device {
 public:
  // queues: hardware queues, stream s uses number s modulo queues. 0: each stream has its own.
  explicit Device(int32_t rank, int32_t queues = 0) : rank_(rank), queues_(queues) {}

  // Issue. All ids are live ones, except that a destroyed event's or stream's pending entries still
  // run.
  int32_t CreateStream(std::string_view name);
  void DestroyStream(int32_t stream);
  int32_t CreateEvent();
  void DestroyEvent(int32_t event);
  int32_t AddGroup(std::string_view key, const std::vector<int32_t>& world_ranks);
  EntryId AddLocal(int32_t stream, std::string_view what, Body body);
  EntryId AddRecord(int32_t event, int32_t stream);
  // -1, and nothing is enqueued: no record has been issued.
  EntryId AddWait(int32_t event, int32_t stream);
  // One kernel per communicator in order of first use, each on all streams of its ops. Returns
  // their entries.
  std::vector<EntryId> AddGroupCall(std::vector<CommOp> ops);

  // What may start. Ready entries in the order in which they became ready; Take gives each entry
  // once.
  const std::vector<EntryId>& ready() const { return ready_; }
  std::vector<EntryId> TakeNewlyReady();
  Entry& Start(EntryId id);   // REQUIRES: ready. The reference holds until Complete.
  void Complete(EntryId id);  // REQUIRES: running
  // Queued and ready entries will never run: they count as done, their bodies are dropped.
  void Abandon();

  // What a blocking host call waits for: an entry, captured when the call is made.
  EntryId LastOn(int32_t stream) const;         // -1: stream is empty
  EntryId LatestRecord(int32_t event) const;    // -1: never recorded
  EntryId LastKernel(int32_t group) const;      // -1: none
  bool Done(EntryId id) const;                  // true for -1
  int64_t pending() const { return pending_; }  // entries not done, on live and destroyed streams

  // Look.
  const Entry& entry(EntryId id) const;  // REQUIRES: !Done(id)
  const DeviceGroup& group(int32_t group) const { return groups_[static_cast<size_t>(group)]; }
  int32_t rank() const { return rank_; }
  int64_t issued() const { return base_ + static_cast<int64_t>(entries_.size()); }
  std::string StreamName(int32_t stream) const;  // "comm (stream 2)"
  // "all_gather #12 on dp_cp (param_full) on comm (stream 2)"
  std::string Describe(EntryId id) const;
  // Why a queued entry cannot start: "behind X on stream Y", "its event's record Z is not done",
  // ...
  std::string WhyQueued(EntryId id) const;
  // What must have completed before ids have, with them, in issue order: before them on their
  // streams, their records, their communicators' kernels before. With hardware queues also what
  // must have completed so that everything issued before them into their queues has started.
  std::vector<EntryId> CompletesFirst(const std::vector<EntryId>& ids) const;
  // The first entry not done of each stream that has one, in stream order, without repetition.
  std::vector<EntryId> Fronts() const;

 private:
  struct Stream {
    std::string name;
    std::deque<EntryId> queue;  // not done, in order
    EntryId last = -1;
    bool live = true;
  };
  struct Event {
    EntryId record = -1;
    bool live = true;
  };

  Entry& At(EntryId id) { return entries_[static_cast<size_t>(id - base_)]; }
  const Entry& At(EntryId id) const { return entries_[static_cast<size_t>(id - base_)]; }
  EntryId Push(Entry entry);
  void Block(EntryId on, EntryId entry);  // entry also waits for on
  void Release(EntryId entry);
  void EnterQueues(Entry* entry);
  // The entry before it in a hardware queue that has not started; -1: none.
  EntryId HeldBy(const Entry& entry) const;
  void NumberOps(Entry* entry);
  void PopDone();

  int32_t rank_;
  std::deque<Entry> entries_;  // [base_, issued())
  EntryId base_ = 0;
  int64_t pending_ = 0;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<DeviceGroup> groups_;
  std::vector<EntryId> ready_, newly_ready_;
  int32_t queues_;
  std::vector<EntryId> queue_tail_;  // by hardware queue: issued last
  // Of entries not started: next in its hardware queues.
  std::map<EntryId, std::vector<EntryId>> followers_;
};

}  // namespace shardproof
