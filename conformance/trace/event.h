// event.h: what can happen on a rank, as data?
//
// A trace is one rank's list of events in the order in which its host threads issued them. Events
// are plain rows; what has variable length (byte ranges, member lists, counts, parameter reads,
// published values) lies in pools of the trace and a row names a slice of a pool. FORMAT.md says
// how a trace looks on disk.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardproof {

// A collective with stream -1 is issued on the host: it blocks, or, with request >= 0, is completed
// by the kRequestWait of that request.
enum class EventKind : uint8_t {
  kCallBegin,        // text: create train_step eval_step save load destroy; id: step, or -1
  kCallEnd,          // the same, and status; flag: the host had answered SPF_ABORTED before
  kKnob,             // text: name of a knob that was asked for; flag: it was set
  kGroupAsk,         // text: name; group: local id, or -1 when not provided
  kGroupCreate,      // parent, text: name, ranks (of the parent, as given); group: new id or -1
  kGroupDestroy,     // group
  kStreamCreate,     // stream, text: name, id: priority
  kStreamDestroy,    // stream
  kStreamSync,       // stream; blocks
  kEventCreate,      // event
  kEventDestroy,     // event
  kRecord,           // event, stream
  kWait,             // event, stream; flag: a record had been issued (false: no edge)
  kEventSync,        // event; blocks; flag as for kWait
  kDeviceSync,       // blocks on all streams of the rank (foreign traces)
  kAlloc,            // stream, alloc, count: bytes, id: place (spf_place), label
  kFree,             // stream, alloc; writes the whole block in stream order (pinned: host order)
  kCopy,             // stream, ranges
  kHostAccess,       // ranges of pinned blocks that the host thread touches now; digest if read
  kGroupBegin,       // the collectives until kGroupEnd are one group operation
  kGroupEnd,         // no fields
  kCollective,       // what spf_collective names, ranges, request
  kRequestWait,      // id: request; blocks
  kCompute,          // stream, id: node, phase, microbatch, sample, flag: recompute; ranges, reads;
                     // text: scale of a loss or router in backward, if not 1
  kLaunch,           // stream, id: kernel, ranges, label
  kInit,             // stream, id: parameter, offset, count, ranges
  kPublish,          // stream, id, result, offset, count, dtype, digest, values, ranges
  kMark,             // id: hook, module, microbatch
  kRefused,          // text: call; second text: why; breaks. The call had no effect
  kExplain,          // text
  kThreadPost,       // id: edge. Between host threads: happens before the await of the same id
  kThreadAwait,      // id: edge
  kNoMemory,         // a mem_alloc that answered SPF_NO_MEMORY; count: bytes
  kGroupRegister,    // group, alloc, count: its bytes; blocks, collective over the group
  kGroupDeregister,  // group, alloc; blocks after the group's work on this rank
  kRelease,  // alloc: the engine gave the block back to a pool, which frees it when it is reused
  kCount_    // number of kinds
};

// The engine has no use of the block from here on. A block that has both has a release first.
constexpr bool GivesBack(EventKind kind) {
  return kind == EventKind::kFree || kind == EventKind::kRelease;
}

constexpr uint8_t kRead = 1, kWrite = 2;

// Which requirement a refused call would have broken, had it been carried out: kBreakable[breaks].
enum class Breaks : uint8_t { kNothing, kPG14, kGE17, kGE18, kGE19 };
inline constexpr std::array<std::string_view, 5> kBreakable = {"", "PG-14", "GE-17", "GE-18",
                                                               "GE-19"};

// Reductions that only foreign traces have. A pre-multiplied sum takes each operand times a factor
// first (text).
constexpr uint8_t kReduceMax = 2, kReduceMin = 3, kReduceProduct = 4, kReducePremulSum = 5;

// Numbers of allocations, events, streams, groups, requests and calls are at most this, so that
// tables which are indexed by them stay small. The reader refuses more, and the host makes no more.
constexpr int64_t kMaxId = (1 << 24) - 1;

// Bytes [offset, offset + length) of allocation number alloc (per rank, never reused).
struct Range {
  int32_t alloc = -1;
  uint8_t access = 0;  // kRead | kWrite
  int64_t offset = 0;
  int64_t length = 0;
};

// A parameter read by a compute event, with the digest of what was read (see digest.h).
struct ParamRead {
  int32_t param = -1;  // local id, index into the rank's model table
  uint64_t digest = 0;
  int64_t values = -1;  // index of the first value in Trace::values if bytes were recorded, else -1
  int64_t count = 0;
};

// A half-open slice of a pool.
struct Slice {
  uint32_t begin = 0, end = 0;
  uint32_t size() const { return end - begin; }
  bool empty() const { return begin == end; }
};

// Fields that a kind does not name are at their defaults.
struct Event {
  EventKind kind = EventKind::kCallBegin;
  // spf_collective_kind; 101 reduce, 102 barrier, 103 gather, 104 scatter (foreign traces).
  uint8_t collective = 0;
  uint8_t dtype = 0;      // spf_dtype
  uint8_t reduction = 0;  // spf_reduction; from kReduceMax on: foreign traces, see below
  uint8_t phase = 0;      // spf_phase
  uint8_t result = 0;     // spf_result
  uint8_t status = 0;     // spf_status
  uint8_t breaks = 0;     // Breaks
  bool flag = false;
  uint16_t thread = 0;    // host thread
  uint16_t instance = 0;  // engine instance
  int32_t call = -1;      // index of the entry call (per instance: create is 0); -1 outside
  int32_t stream = -1;    // per rank, never reused
  int32_t event = -1;     // per rank, never reused
  int32_t group = -1;     // index into Trace::groups
  int32_t parent = -1;    // index into Trace::groups
  int32_t alloc = -1;
  int32_t peer = -1;  // root or peer, as a rank of the group
  int32_t id = -1;
  int32_t request = -1;
  int32_t purpose = 0;  // spf_purpose
  int32_t module = -1;
  int32_t microbatch = -1;
  int32_t text = -1;  // index into Trace::strings
  int32_t text2 = -1;
  int32_t place = -1;   // index into Trace::strings: file:line of the program that did it
  int64_t sample = -1;  // INPUT nodes: sample index
  int64_t offset = 0;
  int64_t count = 0;
  uint64_t digest = 0;
  int64_t values = -1;             // kPublish: first of count values in Trace::values, or -1
  Slice ranges;                    // Trace::ranges
  Slice reads;                     // Trace::reads
  Slice ranks;                     // Trace::numbers
  Slice send_counts, recv_counts;  // Trace::numbers
};

// A communicator as one rank knows it. comm is unique in the world and equal on all members.
struct GroupInfo {
  std::string comm;
  std::string name;
  int32_t instance = 0;
  std::vector<int32_t> world_ranks;
};

enum class RecordLevel : uint8_t { kOff, kOrder, kDigests, kBytes };

// What a trace contains; a check whose evidence is missing answers not-checkable.
struct Provides {
  bool groups = false, collectives = false, sync = false, memory = false, work = false,
       digests = false, results = false, marks = false, calls = false;
  static Provides All() { return {true, true, true, true, true, true, true, true, true}; }
};

enum class TraceEnd : uint8_t {
  kComplete,  // the engine was destroyed in order
  kAborted,   // the run was ended: deadlock, another rank's failure
  kDied       // this rank died
};

struct Trace {
  int32_t rank = 0;
  int32_t world = 1;
  std::string case_id;
  Provides provides;
  TraceEnd end = TraceEnd::kComplete;
  // The optimizer rounds as it likes: what a train step publishes is within a bound, and what
  // follows is computed from exact parameters (FORMAT.md, "updates").
  bool bounded_updates = false;
  std::string end_reason;            // when not complete: what ended it, in words
  std::vector<GroupInfo> groups;     // by local id
  std::vector<std::string> streams;  // names, by stream id
  std::vector<std::string> strings;
  std::vector<Event> events;
  std::vector<Range> ranges;
  std::vector<ParamRead> reads;
  std::vector<int64_t> numbers;
  std::vector<double> values;  // published or read values, widened (exact for every dtype but i64)
  std::string_view Text(int32_t index) const {
    return index < 0 ? std::string_view() : strings[size_t(index)];
  }
};

}  // namespace shardproof
