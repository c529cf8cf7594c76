// comm.h: who meets whom in a communicator, and when may each side complete?
//
// Collectives meet by their place in the sequence of the communicator, messages by their place
// between two members. A member's part starts with its kernel and finishes when the members that it
// needs have started. What it sends is read somewhere between: at the start (copied) or as late as
// possible.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/device.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof {

// A kernel of a rank. Parts report to it.
struct KernelId {
  int32_t rank = -1;
  EntryId entry = -1;
};

// A part of a collective or message: what one member brought.
struct Part {
  CommOp op;
  KernelId kernel;
  bool started = false, finished = false, copied = false;
  int32_t missing = 0;          // needed parts that have not started
  std::vector<std::byte> copy;  // of the send bytes
  const std::byte* send() const { return copied ? copy.data() : op.send; }
};

struct OpMeeting {
  std::vector<Part> parts;  // collective: by member. message: 0 sender, 1 receiver
  int32_t finished = 0;
};

// Meetings by place; finished ones are dropped from the front.
struct Sequence {
  std::deque<OpMeeting> meetings;
  int64_t base = 0;
  OpMeeting& At(int64_t place, size_t parts);
  const OpMeeting* Find(int64_t place) const;  // null: nobody has come, or all have gone
  void Trim();
};

// Calls of hosts that return when all members have made theirs.
struct HostMeeting {
  std::vector<std::vector<int32_t>> lists;  // by member, as given
  int32_t arrived = 0;
};

class Comm {
 public:
  // ready is told once for each part, when the members that it needs have started.
  Comm(std::string key, std::vector<int32_t> members, bool minimal_waits,
       std::function<void(KernelId)> ready, std::function<void(std::string)> mismatch);

  const std::string& key() const { return key_; }
  const std::vector<int32_t>& members() const { return members_; }

  // The kernel of member me starts op, which is at place. The op is kept; its pointers must hold
  // until Finish.
  void Start(KernelId kernel, int32_t me, CommOp op, int64_t place, bool reads_early);
  // REQUIRES: reported ready. Keep copies what others may still need of me's send bytes; Finish
  // writes op.recv. For a kernel of several ops: Keep all, then Finish all.
  void Keep(int32_t me, const CommOp& shape, int64_t place);
  void Finish(int32_t me, const CommOp& shape, int64_t place);
  // World ranks whose start the op at place still needs.
  std::vector<int32_t> WaitsFor(int32_t me, const CommOp& shape, int64_t place) const;

  // Host calls meet by their place in sequences of their own.
  struct HostCalls {
    std::map<int64_t, HostMeeting> meetings;
    std::map<int32_t, int64_t> issued;  // by member
    // The place of a member's next call.
    int64_t Next(int32_t member) { return issued[member]++; }
  } creates, destroys, registers;

 private:
  bool IsMessage(const CommOp& op) const { return op.kind == SPF_SEND || op.kind == SPF_RECV; }
  // Where the meeting is, and which part of it is me's.
  Sequence& SequenceOf(int32_t me, const CommOp& op);
  size_t PartIndex(int32_t me, const CommOp& op) const;
  bool Needs(const Part& part, size_t index, size_t other, size_t parts) const;
  void NoteMismatch(const OpMeeting& meeting, size_t index, int64_t place);

  std::string key_;
  std::vector<int32_t> members_;
  bool minimal_waits_;
  std::function<void(KernelId)> ready_;
  std::function<void(std::string)> mismatch_;
  Sequence collectives_;
  std::map<std::pair<int32_t, int32_t>, Sequence> messages_;  // by (sender, receiver)
};

}  // namespace shardproof
