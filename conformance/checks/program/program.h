// program.h: what do the ranks enqueue, and what must each entry wait for?
//
// Lowers traces to what the graph checks share: entries (one per local piece of device work,
// record, wait, communicator kernel and blocking host call), their rank-local prerequisites, and
// the operations that entries of several ranks have in common, paired by position. Group calls
// become kernels here: one per communicator, issued at the outermost end.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/common/at.h"
#include "conformance/trace/event.h"

namespace shardproof::graph {

enum class EntryKind : uint8_t {
  kLocal,  // compute, launch, copy, init, publish, alloc and free of device memory
  kRecord,
  kWait,
  kKernel,          // of a communicator: one call, or all calls of one group on one communicator
  kHostSync,        // blocks the host: stream, event, device, request; also post and await
  kHostAccess,      // host access; alloc and free of pinned memory
  kHostCollective,  // blocks the host in an operation with other ranks; also group create and
                    // destroy
  kHostRequest      // non-blocking on the host: starts at the call, completed by a later kHostSync
};

// Why the completion of one entry precedes the start of another of the same rank.
enum class EdgeKind : uint8_t { kHost, kStream, kEvent, kCommunicator, kSync, kHandOver };

// An entry and an EdgeKind in one word.
class Prerequisite {
 public:
  Prerequisite(uint32_t entry, EdgeKind edge) : bits_(entry << 3 | static_cast<uint32_t>(edge)) {}
  uint32_t entry() const { return bits_ >> 3; }
  EdgeKind edge() const { return static_cast<EdgeKind>(bits_ & 7); }

 private:
  uint32_t bits_;
};

constexpr uint32_t kNone = (1u << 29) - 1;  // no entry

struct Entry {
  uint32_t event = 0;  // index into the rank's events; the outermost kGroupEnd for a group
  int32_t rank = 0;
  EntryKind kind = EntryKind::kLocal;
  uint16_t thread = 0;
  int32_t stream = -1;  // the first one; -1: none
  int32_t sequence =
      -1;  // collectives: kernels: the communicator's first sequence used, for messages
  uint32_t finished_by = kNone;  // kHostRequest: the entry that waits for it
  Slice prerequisites;           // Program::prerequisites
  Slice parts;                   // Program::parts
  Slice streams;                 // Program::streams: all of them, if there are several; else empty
  bool on_device() const { return kind <= EntryKind::kKernel; }
  bool joint() const { return kind == EntryKind::kKernel || kind >= EntryKind::kHostCollective; }
};

// A rank's share in an operation.
struct Part {
  uint32_t entry = 0;
  uint32_t event = 0;
  int32_t rank = 0;
  int32_t sequence = 0;
  uint32_t position = 0;
  int32_t member = 0;  // of the sequence: index into its lists
};

// Operations that meet by position: of a communicator, its collectives, its splits, its
// destruction, its registrations, or its messages from one member to another.
struct Sequence {
  enum class Kind : uint8_t { kCollectives, kCreates, kDestroys, kRegisters, kMessages };
  Kind kind = Kind::kCollectives;
  int32_t communicator = 0;    // index into Program::communicators
  std::vector<int32_t> ranks;  // members as ranks of the world; messages: sender, receiver
  std::vector<std::vector<uint32_t>>
      parts;                     // by member, in issue order: indices into Program::parts
  uint32_t first_operation = 0;  // operation = first_operation + position
  uint32_t length = 0;           // of the longest list
};

struct Communicator {
  std::string comm, name;
  std::vector<int32_t> ranks;
};

// How to call what a trace only numbers; an empty function or answer: by its number.
struct Names {
  std::function<std::string(int32_t rank, const Event& event)> node;    // kCompute
  std::function<std::string(int32_t rank, const Event& event)> module;  // of the label
};

struct Program {
  const std::vector<Trace>* traces = nullptr;
  Names names;
  std::vector<Entry> entries;         // rank by rank, in issue order: prerequisites precede
  std::vector<uint32_t> first_entry;  // by rank, and one more
  std::vector<Prerequisite> prerequisites;
  std::vector<Part> parts;
  std::vector<int32_t> streams;
  std::vector<Communicator> communicators;
  std::vector<Sequence> sequences;
  uint32_t operations = 0;
  bool host_collectives = false;  // other than group create and destroy
  bool registrations = false;     // somebody registers or deregisters a block
  // Not empty: two host threads touch one resource in no recorded order, so the traces are one of
  // several programs.
  std::string unordered_threads;
  // Not empty: the same, for the order in which communicator kernels are issued (profiles other
  // than E0).
  std::string unordered_issue;
  // Not empty: the traces do not tell who is a member.
  std::string inconsistent_groups;

  const Trace& trace(int32_t rank) const { return At((*traces), rank); }
  const Event& event(const Entry& entry) const { return trace(entry.rank).events[entry.event]; }
  const Event& event(const Part& part) const { return trace(part.rank).events[part.event]; }
  uint32_t operation(const Part& part) const {
    return At(sequences, part.sequence).first_operation + part.position;
  }
  // Parts of an operation, one per member that issued it.
  std::vector<uint32_t> PartsOf(uint32_t operation) const;
  const Sequence& SequenceOf(uint32_t operation) const;
};

struct LowerOptions {
  int32_t drop_rank = -1;  // with drop_event: leave out what this wait or host sync waits for
  int64_t drop_event = -1;
};

// traces: one per rank, in rank order; they must outlive the result. Throws std::invalid_argument
// when a row refers to something that its trace does not have.
Program Lower(const std::vector<Trace>& traces, const LowerOptions& options = {});

}  // namespace shardproof::graph
