#include "conformance/trace/trace_builder.h"

#include <algorithm>
#include <utility>

#include "conformance/common/at.h"

namespace shardproof {

TraceBuilder::TraceBuilder(int rank, int world, std::string case_id) {
  trace_.rank = rank;
  trace_.world = world;
  trace_.case_id = std::move(case_id);
  trace_.provides = Provides::All();
}

TraceBuilder& TraceBuilder::Thread(int thread) {
  thread_ = static_cast<uint16_t>(thread);
  return *this;
}

TraceBuilder& TraceBuilder::Instance(int instance) {
  instance_ = static_cast<uint16_t>(instance);
  return *this;
}

Event& TraceBuilder::Add(EventKind kind) {
  Event& event = trace_.events.emplace_back();
  event.kind = kind;
  event.thread = thread_;
  event.instance = instance_;
  const auto open = current_.find(instance_);
  if (open != current_.end()) event.call = open->second;
  return event;
}

int32_t TraceBuilder::Intern(std::string_view text) {
  auto& strings = trace_.strings;
  const auto at = std::find(strings.begin(), strings.end(), text);
  if (at != strings.end()) return static_cast<int32_t>(at - strings.begin());
  strings.emplace_back(text);
  return static_cast<int32_t>(strings.size() - 1);
}

void TraceBuilder::SetRanges(const std::vector<Range>& ranges) {
  if (ranges.empty()) return;
  const auto begin = static_cast<uint32_t>(trace_.ranges.size());
  trace_.ranges.insert(trace_.ranges.end(), ranges.begin(), ranges.end());
  Last().ranges = {begin, static_cast<uint32_t>(trace_.ranges.size())};
}

Slice TraceBuilder::Numbers(const std::vector<int64_t>& numbers) {
  if (numbers.empty()) return {};
  const auto begin = static_cast<uint32_t>(trace_.numbers.size());
  trace_.numbers.insert(trace_.numbers.end(), numbers.begin(), numbers.end());
  return {begin, static_cast<uint32_t>(trace_.numbers.size())};
}

int TraceBuilder::Group(std::string_view name, const std::vector<int32_t>& world_ranks,
                        std::string_view comm) {
  GroupInfo info;
  info.name = name;
  info.comm = comm;
  if (comm.empty()) {
    info.comm = info.name;
    for (int32_t rank : world_ranks) info.comm += "." + std::to_string(rank);
  }
  info.instance = instance_;
  info.world_ranks = world_ranks;
  trace_.groups.push_back(std::move(info));
  return static_cast<int>(trace_.groups.size() - 1);
}

void TraceBuilder::GroupAsk(std::string_view name, int group) {
  Add(EventKind::kGroupAsk).group = group;
  Last().text = Intern(name);
}

int TraceBuilder::GroupCreate(int parent, std::string_view name,
                              const std::vector<int32_t>& ranks) {
  std::vector<int32_t> world_ranks;
  for (int32_t rank : ranks) {
    world_ranks.push_back(At(At(trace_.groups, parent).world_ranks, rank));
  }
  const int group = ranks.empty() ? -1 : Group(name, world_ranks);
  Event& event = Add(EventKind::kGroupCreate);
  event.parent = parent;
  event.group = group;
  event.text = Intern(name);
  event.ranks = Numbers({ranks.begin(), ranks.end()});
  return group;
}

void TraceBuilder::GroupDestroy(int group) { Add(EventKind::kGroupDestroy).group = group; }

void TraceBuilder::GroupRegister(int group, int alloc) {
  Event& row = Add(EventKind::kGroupRegister);
  row.group = group;
  row.alloc = alloc;
  if (static_cast<size_t>(alloc) < block_bytes_.size()) row.count = At(block_bytes_, alloc);
}

void TraceBuilder::GroupDeregister(int group, int alloc) {
  Event& row = Add(EventKind::kGroupDeregister);
  row.group = group;
  row.alloc = alloc;
}

void TraceBuilder::CallBegin(std::string_view call, int step) {
  current_[instance_] = calls_[instance_]++;
  Add(EventKind::kCallBegin).id = step;
  Last().text = Intern(call);
}

void TraceBuilder::CallEnd(std::string_view call, int step, int status) {
  Event& event = Add(EventKind::kCallEnd);
  event.id = step;
  event.status = static_cast<uint8_t>(status);
  event.text = Intern(call);
  current_.erase(instance_);
}

void TraceBuilder::Knob(std::string_view name, bool set) {
  Add(EventKind::kKnob).flag = set;
  Last().text = Intern(name);
}

int TraceBuilder::Stream(std::string_view name, int priority) {
  Event& event = Add(EventKind::kStreamCreate);
  event.stream = streams_;
  event.id = priority;
  event.text = Intern(name);
  trace_.streams.emplace_back(name);
  return streams_++;
}

void TraceBuilder::StreamDestroy(int stream) { Add(EventKind::kStreamDestroy).stream = stream; }
void TraceBuilder::StreamSync(int stream) { Add(EventKind::kStreamSync).stream = stream; }
void TraceBuilder::DeviceSync() { Add(EventKind::kDeviceSync); }

int TraceBuilder::EventCreate() {
  Add(EventKind::kEventCreate).event = events_;
  return events_++;
}

void TraceBuilder::EventDestroy(int event) { Add(EventKind::kEventDestroy).event = event; }

void TraceBuilder::Record(int event, int stream) {
  Event& row = Add(EventKind::kRecord);
  row.event = event;
  row.stream = stream;
  recorded_.insert(event);
}

void TraceBuilder::Wait(int event, int stream) {
  Event& row = Add(EventKind::kWait);
  row.event = event;
  row.stream = stream;
  row.flag = recorded_.count(event) > 0;
}

void TraceBuilder::EventSync(int event) {
  Event& row = Add(EventKind::kEventSync);
  row.event = event;
  row.flag = recorded_.count(event) > 0;
}

int TraceBuilder::Alloc(int stream, int64_t bytes, Label label, int place) {
  Event& row = Add(EventKind::kAlloc);
  row.stream = stream;
  row.alloc = static_cast<int32_t>(block_bytes_.size());
  row.count = bytes;
  row.id = place;
  row.purpose = label.purpose;
  row.module = label.module;
  row.microbatch = label.microbatch;
  block_bytes_.push_back(bytes);
  return row.alloc;
}

void TraceBuilder::Free(int stream, int alloc) {
  Event& row = Add(EventKind::kFree);
  row.stream = stream;
  row.alloc = alloc;
}

void TraceBuilder::Place(std::string_view place) { Last().place = Intern(place); }

void TraceBuilder::Release(int alloc) { Add(EventKind::kRelease).alloc = alloc; }

void TraceBuilder::NoMemory(int stream, int64_t bytes) {
  Event& row = Add(EventKind::kNoMemory);
  row.stream = stream;
  row.count = bytes;
}

void TraceBuilder::Copy(int stream, const Range& from, const Range& to) {
  Copy(stream, std::vector<Range>{from, to});
}

void TraceBuilder::Copy(int stream, const std::vector<Range>& ranges) {
  Add(EventKind::kCopy).stream = stream;
  SetRanges(ranges);
}

void TraceBuilder::HostAccess(const std::vector<Range>& ranges, uint64_t digest) {
  Add(EventKind::kHostAccess).digest = digest;
  SetRanges(ranges);
}

void TraceBuilder::GroupBegin() { Add(EventKind::kGroupBegin); }
void TraceBuilder::GroupEnd() { Add(EventKind::kGroupEnd); }

void TraceBuilder::Collective(int kind, int group, int stream, int64_t count,
                              const std::vector<Range>& ranges, const CollectiveOptions& options) {
  Event& row = Add(EventKind::kCollective);
  row.collective = static_cast<uint8_t>(kind);
  row.group = group;
  row.stream = stream;
  row.count = count;
  row.dtype = static_cast<uint8_t>(options.dtype);
  row.reduction = static_cast<uint8_t>(options.reduction);
  row.peer = options.peer;
  row.request = options.request;
  row.purpose = options.label.purpose;
  row.module = options.label.module;
  row.microbatch = options.label.microbatch;
  row.send_counts = Numbers(options.send_counts);
  row.recv_counts = Numbers(options.recv_counts);
  SetRanges(ranges);
}

void TraceBuilder::RequestWait(int request) { Add(EventKind::kRequestWait).id = request; }

void TraceBuilder::Compute(int stream, int node, int phase, int microbatch,
                           const std::vector<Range>& ranges, const std::vector<ParamRead>& reads) {
  Event& row = Add(EventKind::kCompute);
  row.stream = stream;
  row.id = node;
  row.phase = static_cast<uint8_t>(phase);
  row.microbatch = microbatch;
  SetRanges(ranges);
  if (reads.empty()) return;
  const auto begin = static_cast<uint32_t>(trace_.reads.size());
  trace_.reads.insert(trace_.reads.end(), reads.begin(), reads.end());
  row.reads = {begin, static_cast<uint32_t>(trace_.reads.size())};
}

void TraceBuilder::Launch(int stream, int kernel, const std::vector<Range>& ranges) {
  Event& row = Add(EventKind::kLaunch);
  row.stream = stream;
  row.id = kernel;
  SetRanges(ranges);
}

void TraceBuilder::Init(int stream, int param, int64_t offset, int64_t count, const Range& to) {
  Event& row = Add(EventKind::kInit);
  row.stream = stream;
  row.id = param;
  row.offset = offset;
  row.count = count;
  row.dtype = SPF_F32;
  SetRanges({to});
}

void TraceBuilder::Publish(int stream, int result, int id, int64_t offset, int64_t count, int dtype,
                           uint64_t digest, const Range& from, const std::vector<double>& values) {
  Event& row = Add(EventKind::kPublish);
  row.stream = stream;
  row.result = static_cast<uint8_t>(result);
  row.id = id;
  row.offset = offset;
  row.count = count;
  row.dtype = static_cast<uint8_t>(dtype);
  row.digest = digest;
  if (!values.empty()) {
    row.values = static_cast<int64_t>(trace_.values.size());
    trace_.values.insert(trace_.values.end(), values.begin(), values.end());
  }
  SetRanges({from});
}

void TraceBuilder::Mark(int hook, int module, int microbatch) {
  Event& row = Add(EventKind::kMark);
  row.id = hook;
  row.module = module;
  row.microbatch = microbatch;
}

void TraceBuilder::Refused(std::string_view call, std::string_view why, Breaks breaks) {
  Add(EventKind::kRefused).text = Intern(call);
  Last().text2 = Intern(why);
  Last().breaks = static_cast<uint8_t>(breaks);
}

void TraceBuilder::Explain(std::string_view text) { Add(EventKind::kExplain).text = Intern(text); }
void TraceBuilder::ThreadPost(int edge) { Add(EventKind::kThreadPost).id = edge; }
void TraceBuilder::ThreadAwait(int edge) { Add(EventKind::kThreadAwait).id = edge; }

Trace TraceBuilder::Done(TraceEnd end, std::string reason) {
  trace_.end = end;
  trace_.end_reason = std::move(reason);
  return std::move(trace_);
}

}  // namespace shardproof
