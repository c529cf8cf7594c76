// trace_builder.h: how does a test write a trace by hand?
//
//   TraceBuilder t(/*rank=*/0, /*world=*/2);
//   const int dp = t.Group("dp_cp", {0, 1});
//   const int compute = t.Stream("compute"), comm = t.Stream("comm");
//   const int shard = t.Alloc(compute, 32), full = t.Alloc(compute, 64);
//   const int ready = t.EventCreate();
//   t.Collective(SPF_ALL_GATHER, dp, comm, 8, {Reads(shard, 0, 32), Writes(full, 0, 64)});
//   t.Record(ready, comm);
//   t.Wait(ready, compute);
//   Trace trace = t.Done();
//
// Every call appends one event (Group appends none). Last() reaches what the call has no argument
// for. Nothing is validated: a bad trace is often what the test wants.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/trace/event.h"

namespace shardproof {

inline Range Reads(int alloc, int64_t offset, int64_t length) {
  return {alloc, kRead, offset, length};
}
inline Range Writes(int alloc, int64_t offset, int64_t length) {
  return {alloc, kWrite, offset, length};
}
inline Range Updates(int alloc, int64_t offset, int64_t length) {
  return {alloc, kRead | kWrite, offset, length};
}

struct BuilderLabel {
  int purpose = SPF_FOR_OTHER;
  int module = -1, microbatch = -1;
};
struct CollectiveOptions {
  int dtype = SPF_F32, reduction = SPF_SUM, peer = -1;
  std::vector<int64_t> send_counts = {}, recv_counts = {};
  BuilderLabel label = {};
  int request = -1;
};

class TraceBuilder {
 public:
  using Label = BuilderLabel;

  TraceBuilder(int rank, int world, std::string case_id = "hand-written");

  // Events that follow come from this host thread, or engine instance.
  TraceBuilder& Thread(int thread);
  TraceBuilder& Instance(int instance);

  // Enters a communicator into the table; comm defaults to a key of name and members. No event.
  int Group(std::string_view name, const std::vector<int32_t>& world_ranks,
            std::string_view comm = {});
  void GroupAsk(std::string_view name, int group);
  // ranks are ranks of the parent; empty: this rank joins none and -1 is returned.
  int GroupCreate(int parent, std::string_view name, const std::vector<int32_t>& ranks);
  void GroupDestroy(int group);
  // The whole block, as Alloc made it; 0 bytes if it did not.
  void GroupRegister(int group, int alloc);
  void GroupDeregister(int group, int alloc);

  void CallBegin(std::string_view call, int step = -1);
  void CallEnd(std::string_view call, int step = -1, int status = SPF_OK);
  void Knob(std::string_view name, bool set);

  int Stream(std::string_view name, int priority = 0);
  void StreamDestroy(int stream);
  void StreamSync(int stream);
  void DeviceSync();
  int EventCreate();
  void EventDestroy(int event);
  void Record(int event, int stream);
  // flag is set as the recorder does: whether the event had been recorded before.
  void Wait(int event, int stream);
  void EventSync(int event);

  int Alloc(int stream, int64_t bytes, Label label = {}, int place = SPF_DEVICE);
  void Place(std::string_view place);  // file:line of the last event
  void Free(int stream, int alloc);
  void Release(int alloc);
  void NoMemory(int stream, int64_t bytes);
  void Copy(int stream, const Range& from, const Range& to);
  void Copy(int stream, const std::vector<Range>& ranges);  // reads, then writes
  void HostAccess(const std::vector<Range>& ranges, uint64_t digest = 0);

  void GroupBegin();
  void GroupEnd();
  void Collective(int kind, int group, int stream, int64_t count,
                  const std::vector<Range>& ranges = {}, const CollectiveOptions& options = {});
  void RequestWait(int request);

  void Compute(int stream, int node, int phase, int microbatch, const std::vector<Range>& ranges,
               const std::vector<ParamRead>& reads = {});
  void Launch(int stream, int kernel, const std::vector<Range>& ranges);
  // Of F32 elements.
  void Init(int stream, int param, int64_t offset, int64_t count, const Range& to);
  void Publish(int stream, int result, int id, int64_t offset, int64_t count, int dtype,
               uint64_t digest, const Range& from, const std::vector<double>& values = {});
  void Mark(int hook, int module = 0, int microbatch = -1);
  void Refused(std::string_view call, std::string_view why, Breaks breaks = Breaks::kNothing);
  void Explain(std::string_view text);
  void ThreadPost(int edge);
  void ThreadAwait(int edge);

  Event& Last() { return trace_.events.back(); }
  int64_t size() const { return static_cast<int64_t>(trace_.events.size()); }
  // Everything is provided unless said otherwise: change provides() before Done().
  Provides& provides() { return trace_.provides; }
  Trace Done(TraceEnd end = TraceEnd::kComplete, std::string reason = {});

 private:
  Event& Add(EventKind kind);
  int32_t Intern(std::string_view text);
  void SetRanges(const std::vector<Range>& ranges);
  Slice Numbers(const std::vector<int64_t>& numbers);

  Trace trace_;
  uint16_t thread_ = 0, instance_ = 0;
  std::map<int, int> calls_;          // by instance: entry calls so far
  std::map<int, int> current_;        // by instance: the open entry call
  std::set<int> recorded_;            // events that were recorded
  std::vector<int64_t> block_bytes_;  // by allocation
  int streams_ = 0, events_ = 0;
};

}  // namespace shardproof
