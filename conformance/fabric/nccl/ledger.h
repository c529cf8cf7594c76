// ledger.h: what has this rank put into its streams that is not known to be complete, and what does
// it wait for?
//
// A GPU does not say what it is doing. The ledger writes down what is issued (Device knows the
// rules) and puts marks, events, behind the kernels of communicators and now and then between other
// work. A mark that is done completes its entry and all that it depends on. Between two marks of a
// stream nothing is known, so that a report says "not known to be complete".
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/device.h"
#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

// How far one communicator is on this rank.
struct CommPosition {
  std::string key;
  std::vector<int32_t> members;
  int64_t issued = 0;   // collectives
  int64_t oldest = -1;  // of those, the first that is not known to be complete; -1: all are
  std::string what;     // its words
};

class Ledger {
 public:
  Ledger(int32_t rank, Gpu& gpu) : gpu_(gpu), device_(rank) {}

  // Streams, events and groups of a fabric; ids are Device's. gpu_stream: where marks of the stream
  // go.
  int32_t AddStream(std::string_view name, int32_t gpu_stream);
  void DropStream(int32_t stream);  // before the Gpu's stream is destroyed
  int32_t AddEvent() { return device_.CreateEvent(); }
  void DropEvent(int32_t event) { device_.DestroyEvent(event); }
  int32_t AddGroup(std::string_view key, const std::vector<int32_t>& world_ranks);

  // Of what is issued to the Gpu, in the same order.
  void Local(int32_t stream, std::string_view what);
  void Record(int32_t event, int32_t stream) { device_.AddRecord(event, stream); }
  void Wait(int32_t event, int32_t stream) { device_.AddWait(event, stream); }
  std::vector<EntryId> Kernels(std::vector<CommOp> ops) {
    return device_.AddGroupCall(std::move(ops));
  }
  // The kernel has been issued; what is put into stream from now on comes after it.
  void KernelIssued(EntryId kernel, int32_t stream) { Mark(kernel, stream); }

  // An event of the Gpu behind all that is in the stream, or behind the kernel; -1: known to be
  // complete. Valid until entries are added.
  int32_t EventBehind(int32_t stream);
  int32_t EventBehindKernel(EntryId kernel) const;
  // The streams, live or not, that hold entries not known to be complete.
  std::vector<int32_t> Busy() const;

  // Takes note of what has completed since; true: something has.
  bool Look();
  // Nothing of what is pending will be asked for again.
  void Abandon();
  void DropEvents();  // of the Gpu. Nothing is asked or added from then on

  const Device& device() const { return device_; }
  bool Done(EntryId entry) const { return device_.Done(entry); }
  // One line for the first entry of each stream that is not known to be complete, then for kernels
  // behind them.
  std::string Pending() const;
  std::vector<CommPosition> Positions() const;

 private:
  struct MarkedEntry {
    EntryId entry = -1;
    int32_t event = -1;  // the Gpu's
  };
  struct Stream {
    int32_t gpu_stream = -1;  // -1: destroyed
    int32_t unmarked = 0;     // local entries behind the last mark
    std::deque<MarkedEntry> marks;
  };
  void Mark(EntryId entry, int32_t stream);
  void Complete(EntryId entry);
  std::string Line(EntryId entry) const;

  Gpu& gpu_;
  Device device_;
  std::vector<Stream> streams_;
  std::map<EntryId, int32_t> event_of_;  // of marked entries
  std::vector<int32_t> events_, spare_events_;
  int32_t groups_ = 0;
};

}  // namespace shardproof
