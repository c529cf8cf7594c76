#include "conformance/checks/graph/program.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>
#include <unordered_map>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/graph/thread_order.h"

namespace shardproof::graph {

namespace {

constexpr int32_t kDeviceResource = -1;

// Finds or makes the sequences of all communicators of the world.
class Sequences {
 public:
  explicit Sequences(Program& program) : program_(program) {}

  int32_t Communicator(const GroupInfo& group, int32_t rank) {
    const auto [at, fresh] = communicators_.try_emplace(group.comm, static_cast<int32_t>(program_.communicators.size()));
    if (fresh) program_.communicators.push_back({group.comm, group.name, group.world_ranks});
    const auto& known = program_.communicators[static_cast<size_t>(at->second)];
    if (known.ranks != group.world_ranks && program_.inconsistent_groups.empty()) {
      program_.inconsistent_groups = "rank " + std::to_string(rank) + " has other members, or another order of them, for \"" +
                                     group.name + "\" than rank " + std::to_string(known.ranks.empty() ? -1 : known.ranks[0]);
    }
    return at->second;
  }

  // Of everybody in the communicator.
  int32_t Joint(int32_t communicator, Sequence::Kind kind) {
    const auto index = static_cast<size_t>(communicator) * 3 + static_cast<size_t>(kind);
    if (joint_.size() <= index) joint_.resize(index + 1, -1);
    if (joint_[index] < 0) {
      joint_[index] = Add(kind, communicator, program_.communicators[static_cast<size_t>(communicator)].ranks);
    }
    return joint_[index];
  }

  int32_t Messages(int32_t communicator, int32_t from, int32_t to) {
    const auto [at, fresh] = messages_.try_emplace({communicator, from, to}, 0);
    if (fresh) at->second = Add(Sequence::Kind::kMessages, communicator, {from, to});
    return at->second;
  }

 private:
  int32_t Add(Sequence::Kind kind, int32_t communicator, std::vector<int32_t> ranks) {
    Sequence& sequence = program_.sequences.emplace_back();
    sequence.kind = kind;
    sequence.communicator = communicator;
    sequence.parts.resize(ranks.size());
    sequence.ranks = std::move(ranks);
    return static_cast<int32_t>(program_.sequences.size()) - 1;
  }

  Program& program_;
  std::unordered_map<std::string, int32_t> communicators_;
  std::vector<int32_t> joint_;
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> messages_;
};

// Walks one rank's events.
class RankLowering {
 public:
  RankLowering(Program& program, Sequences& sequences, const Trace& trace, int64_t drop_event)
      : program_(program), sequences_(sequences), trace_(trace), drop_event_(drop_event) {
    for (const GroupInfo& group : trace.groups) {
      groups_.push_back(sequences.Communicator(group, trace.rank));
      const auto me = std::find(group.world_ranks.begin(), group.world_ranks.end(), trace.rank);
      members_.push_back(me == group.world_ranks.end() ? -1 : static_cast<int32_t>(me - group.world_ranks.begin()));
    }
    threaded_ = std::any_of(trace.events.begin(), trace.events.end(),
                            [&](const Event& event) { return event.thread != trace.events[0].thread; });
  }

  void Run() {
    for (event_ = 0; event_ < trace_.events.size(); ++event_) Visit(trace_.events[event_]);
  }

 private:
  struct Thread {
    uint32_t last = kNone;  // last entry that held this host thread
    int32_t group_depth = 0;
    std::vector<uint32_t> held;  // events of the open group
  };

  [[noreturn]] void Bad(const std::string& what) const {
    throw std::invalid_argument("rank " + std::to_string(trace_.rank) + ", event " + std::to_string(event_) + ": " + what);
  }

  static uint32_t& At(std::vector<uint32_t>& table, int32_t index) {
    if (static_cast<size_t>(index) >= table.size()) table.resize(static_cast<size_t>(index) + 1, kNone);
    return table[static_cast<size_t>(index)];
  }

  Thread& ThreadOf(uint16_t id) {
    if (threads_.size() <= id) threads_.resize(size_t{id} + 1);
    return threads_[id];
  }

  size_t Group(int32_t group) const {
    if (group < 0 || static_cast<size_t>(group) >= groups_.size()) Bad("no such group: " + std::to_string(group));
    if (members_[static_cast<size_t>(group)] < 0) Bad("the rank is no member of its group");
    return static_cast<size_t>(group);
  }

  void Visit(const Event& event);
  void VisitCollective(const Event& event, uint32_t index);
  void CloseGroup(Thread& thread);

  uint32_t Begin(EntryKind kind, const Event& event) {
    Entry entry;
    entry.event = static_cast<uint32_t>(event_);
    entry.rank = trace_.rank;
    entry.kind = kind;
    entry.thread = event.thread;
    entry.prerequisites.begin = static_cast<uint32_t>(program_.prerequisites.size());
    entry.prerequisites.end = entry.prerequisites.begin;
    entry.parts = {static_cast<uint32_t>(program_.parts.size()), static_cast<uint32_t>(program_.parts.size())};
    program_.entries.push_back(entry);
    return static_cast<uint32_t>(program_.entries.size()) - 1;
  }

  void Need(uint32_t entry, EdgeKind kind) {
    if (entry == kNone) return;
    const bool waits = kind == EdgeKind::kEvent || kind == EdgeKind::kSync;
    if (waits && drop_event_ >= 0 && static_cast<size_t>(drop_event_) == event_) return;
    program_.prerequisites.emplace_back(entry, kind);
    ++program_.entries.back().prerequisites.end;
  }

  // What the host thread did before: unless an entry that it issued since then is a prerequisite anyhow.
  void NeedHost(const Thread& thread, uint32_t stream_last, uint16_t id) {
    if (thread.last == kNone) return;
    if (stream_last != kNone && stream_last > thread.last && program_.entries[stream_last].thread == id) return;
    Need(thread.last, EdgeKind::kHost);
  }

  void Touch(ThreadOrder::Resource resource, int32_t id, uint16_t thread) {
    if (!threaded_ || !order_.Touch(resource, id, thread)) return;
    std::string& why = resource == ThreadOrder::Resource::kDevice ? program_.unordered_issue : program_.unordered_threads;
    if (!why.empty()) return;
    why = "rank " + std::to_string(trace_.rank) + ", event " + std::to_string(event_) +
                                 ": two host threads touch " + ThreadOrder::Name(resource, id) +
                                 " and no recorded hand-over orders them";
  }

  // An entry of one stream.
  uint32_t OnStream(EntryKind kind, const Event& event) {
    if (event.stream < 0) Bad("work without a stream");
    const uint32_t entry = Begin(kind, event);
    uint32_t& last = At(stream_last_, event.stream);
    Need(last, EdgeKind::kStream);
    NeedHost(ThreadOf(event.thread), last, event.thread);
    last = entry;
    program_.entries.back().stream = event.stream;
    Touch(ThreadOrder::Resource::kStream, event.stream, event.thread);
    return entry;
  }

  // An entry of the host thread, which it holds until it is complete.
  uint32_t OnHost(EntryKind kind, const Event& event) {
    const uint32_t entry = Begin(kind, event);
    Thread& thread = ThreadOf(event.thread);
    Need(thread.last, EdgeKind::kHost);
    thread.last = entry;
    return entry;
  }

  void AddPart(const Event& event, uint32_t index, int32_t sequence, int32_t member);
  void AddCollective(const Event& event, uint32_t index);
  void Kernel(const std::vector<uint32_t>& events, const Event& at);
  void AllocOrFree(const Event& event);
  void Sync(const Event& event);
  void HandOver(const Event& event);
  void Groups(const Event& event);

  Program& program_;
  Sequences& sequences_;
  const Trace& trace_;
  int64_t drop_event_;
  size_t event_ = 0;
  std::vector<int32_t> groups_, members_;  // by local group: communicator; own rank in it
  std::vector<uint32_t> stream_last_, captured_, requests_, posts_;
  std::vector<uint32_t> communicator_last_;  // by communicator: the last kernel
  std::vector<Thread> threads_;
  std::vector<bool> pinned_;  // by allocation
  bool threaded_ = false;     // more than one host thread
  ThreadOrder order_;
};

void RankLowering::AddPart(const Event& event, uint32_t index, int32_t sequence, int32_t member) {
  (void)event;
  auto& list = program_.sequences[static_cast<size_t>(sequence)].parts[static_cast<size_t>(member)];
  Part part;
  part.entry = static_cast<uint32_t>(program_.entries.size()) - 1;
  part.event = index;
  part.rank = trace_.rank;
  part.sequence = sequence;
  part.position = static_cast<uint32_t>(list.size());
  part.member = member;
  list.push_back(static_cast<uint32_t>(program_.parts.size()));
  program_.parts.push_back(part);
  ++program_.entries.back().parts.end;
  if (program_.entries.back().sequence < 0) program_.entries.back().sequence = sequence;
}

// To the entry that was begun last.
void RankLowering::AddCollective(const Event& event, uint32_t index) {
  const size_t group = Group(event.group);
  const int32_t communicator = groups_[group];
  if (event.collective != SPF_SEND && event.collective != SPF_RECV) {
    AddPart(event, index, sequences_.Joint(communicator, Sequence::Kind::kCollectives), members_[group]);
    return;
  }
  const auto& ranks = program_.communicators[static_cast<size_t>(communicator)].ranks;
  if (event.peer < 0 || static_cast<size_t>(event.peer) >= ranks.size()) Bad("the peer is no rank of the group");
  const int32_t peer = ranks[static_cast<size_t>(event.peer)];
  const bool send = event.collective == SPF_SEND;
  const int32_t messages = sequences_.Messages(communicator, send ? trace_.rank : peer, send ? peer : trace_.rank);
  AddPart(event, index, messages, send ? 0 : 1);
}

// One communicator's kernel: all of events are on one group.
void RankLowering::Kernel(const std::vector<uint32_t>& events, const Event& at) {
  std::vector<int32_t> streams;
  for (const uint32_t index : events) {
    const int32_t stream = trace_.events[index].stream;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  }
  const uint32_t entry = Begin(EntryKind::kKernel, at);
  program_.entries.back().stream = streams[0];
  uint32_t newest = kNone;  // of the prerequisites issued by this thread
  for (const int32_t stream : streams) {
    uint32_t& last = At(stream_last_, stream);
    Need(last, EdgeKind::kStream);
    if (last != kNone && program_.entries[last].thread == at.thread && (newest == kNone || last > newest)) newest = last;
    last = entry;
    Touch(ThreadOrder::Resource::kStream, stream, at.thread);
  }
  NeedHost(ThreadOf(at.thread), newest, at.thread);
  const int32_t communicator = groups_[Group(trace_.events[events[0]].group)];
  uint32_t& previous = At(communicator_last_, communicator);
  if (previous != kNone) {
    const Entry& before = program_.entries[previous];
    if (!before.streams.empty() || std::find(streams.begin(), streams.end(), before.stream) == streams.end()) {
      Need(previous, EdgeKind::kCommunicator);
    }
  }
  previous = entry;
  Touch(ThreadOrder::Resource::kCommunicator, communicator, at.thread);
  Touch(ThreadOrder::Resource::kDevice, kDeviceResource, at.thread);
  for (const uint32_t index : events) AddCollective(trace_.events[index], index);
  if (streams.size() > 1) {
    Slice& slice = program_.entries.back().streams;
    slice.begin = static_cast<uint32_t>(program_.streams.size());
    program_.streams.insert(program_.streams.end(), streams.begin(), streams.end());
    slice.end = static_cast<uint32_t>(program_.streams.size());
  }
}

void RankLowering::VisitCollective(const Event& event, uint32_t index) {
  Thread& thread = ThreadOf(event.thread);
  if (event.stream >= 0) {
    Group(event.group);
    if (thread.group_depth > 0) {
      thread.held.push_back(index);
    } else {
      Kernel({index}, event);
    }
    return;
  }
  program_.host_collectives = true;
  if (event.request < 0) {
    OnHost(EntryKind::kHostCollective, event);
  } else {
    const uint32_t entry = Begin(EntryKind::kHostRequest, event);
    Need(thread.last, EdgeKind::kHost);
    At(requests_, event.request) = entry;
  }
  AddCollective(event, index);
}

void RankLowering::CloseGroup(Thread& thread) {
  std::vector<uint32_t> held;
  held.swap(thread.held);
  std::vector<int32_t> communicators;
  for (const uint32_t index : held) {
    const int32_t communicator = groups_[Group(trace_.events[index].group)];
    if (std::find(communicators.begin(), communicators.end(), communicator) == communicators.end()) {
      communicators.push_back(communicator);
    }
  }
  for (const int32_t communicator : communicators) {
    std::vector<uint32_t> events;
    for (const uint32_t index : held) {
      if (groups_[Group(trace_.events[index].group)] == communicator) events.push_back(index);
    }
    Kernel(events, trace_.events[event_]);
  }
}

void RankLowering::AllocOrFree(const Event& event) {
  if (event.alloc < 0) Bad("an allocation without a number");
  const auto alloc = static_cast<size_t>(event.alloc);
  if (pinned_.size() <= alloc) pinned_.resize(alloc + 1, false);
  if (event.kind == EventKind::kAlloc) pinned_[alloc] = event.id == SPF_PINNED;
  if (pinned_[alloc]) {
    OnHost(EntryKind::kHostAccess, event);
  } else {
    OnStream(EntryKind::kLocal, event);
  }
}

void RankLowering::Sync(const Event& event) {
  OnHost(EntryKind::kHostSync, event);
  switch (event.kind) {
    case EventKind::kStreamSync:
      Need(At(stream_last_, event.stream), EdgeKind::kSync);
      Touch(ThreadOrder::Resource::kStream, event.stream, event.thread);
      break;
    case EventKind::kEventSync:
      Need(At(captured_, event.event), EdgeKind::kSync);
      Touch(ThreadOrder::Resource::kEvent, event.event, event.thread);
      break;
    case EventKind::kDeviceSync:
      for (const uint32_t last : stream_last_) Need(last, EdgeKind::kSync);
      break;
    default: {  // kRequestWait
      const uint32_t request = At(requests_, event.id);
      if (request == kNone) Bad("a wait for request " + std::to_string(event.id) + ", which was not started");
      program_.entries[request].finished_by = static_cast<uint32_t>(program_.entries.size()) - 1;
      Need(request, EdgeKind::kSync);
    }
  }
}

void RankLowering::HandOver(const Event& event) {
  const uint32_t entry = OnHost(EntryKind::kHostSync, event);
  if (event.id < 0) Bad("a hand-over without a number");
  if (event.kind == EventKind::kThreadPost) {
    At(posts_, event.id) = entry;
    order_.Post(event.id, event.thread);
    return;
  }
  const uint32_t post = At(posts_, event.id);
  if (post == kNone) Bad("an await before its post: rows must stand in the order in which they happened");
  Need(post, EdgeKind::kHandOver);
  order_.Await(event.id, event.thread);
}

void RankLowering::Groups(const Event& event) {
  const bool create = event.kind == EventKind::kGroupCreate;
  const size_t group = Group(create ? event.parent : event.group);
  const int32_t communicator = groups_[group];
  OnHost(EntryKind::kHostCollective, event);
  if (!create) Need(At(communicator_last_, communicator), EdgeKind::kSync);
  const auto kind = create ? Sequence::Kind::kCreates : Sequence::Kind::kDestroys;
  AddPart(event, static_cast<uint32_t>(event_), sequences_.Joint(communicator, kind), members_[group]);
}

void RankLowering::Visit(const Event& event) {
  switch (event.kind) {
    case EventKind::kCompute:
    case EventKind::kLaunch:
    case EventKind::kCopy:
    case EventKind::kInit:
    case EventKind::kPublish: OnStream(EntryKind::kLocal, event); break;
    case EventKind::kRecord:
      if (event.event < 0) Bad("a record without an event");
      At(captured_, event.event) = OnStream(EntryKind::kRecord, event);
      Touch(ThreadOrder::Resource::kEvent, event.event, event.thread);
      break;
    case EventKind::kWait:
      if (event.event < 0) Bad("a wait without an event");
      OnStream(EntryKind::kWait, event);
      Need(At(captured_, event.event), EdgeKind::kEvent);
      Touch(ThreadOrder::Resource::kEvent, event.event, event.thread);
      break;
    case EventKind::kAlloc:
    case EventKind::kFree: AllocOrFree(event); break;
    case EventKind::kHostAccess: OnHost(EntryKind::kHostAccess, event); break;
    case EventKind::kStreamSync:
      if (event.stream < 0) Bad("a stream sync without a stream");
      Sync(event);
      break;
    case EventKind::kEventSync:
      if (event.event < 0) Bad("an event sync without an event");
      Sync(event);
      break;
    case EventKind::kRequestWait:
      if (event.id < 0) Bad("a request wait without a request");
      Sync(event);
      break;
    case EventKind::kDeviceSync: Sync(event); break;
    case EventKind::kThreadPost:
    case EventKind::kThreadAwait: HandOver(event); break;
    case EventKind::kGroupCreate:
    case EventKind::kGroupDestroy: Groups(event); break;
    case EventKind::kGroupBegin: ++ThreadOf(event.thread).group_depth; break;
    case EventKind::kGroupEnd: {
      Thread& thread = ThreadOf(event.thread);
      if (thread.group_depth == 0) Bad("a group end without a begin");
      if (--thread.group_depth == 0) CloseGroup(thread);
      break;
    }
    case EventKind::kCollective: VisitCollective(event, static_cast<uint32_t>(event_)); break;
    default: break;
  }
}

}  // namespace

std::vector<uint32_t> Program::PartsOf(uint32_t operation) const {
  const Sequence& sequence = SequenceOf(operation);
  const uint32_t position = operation - sequence.first_operation;
  std::vector<uint32_t> found;
  for (const auto& list : sequence.parts) {
    if (position < list.size()) found.push_back(list[position]);
  }
  return found;
}

const Sequence& Program::SequenceOf(uint32_t operation) const {
  const auto after = std::upper_bound(sequences.begin(), sequences.end(), operation,
                                      [](uint32_t o, const Sequence& s) { return o < s.first_operation; });
  auto at = after - 1;
  while (at->length == 0) --at;
  return *at;
}

namespace {

// A call that blocks the host inside an open group is lowered before the group's kernels; its place is by call.
void PlaceInCallOrder(Program& program, std::vector<uint32_t>& list) {
  const auto by_event = [&](uint32_t a, uint32_t b) { return program.parts[a].event < program.parts[b].event; };
  if (std::is_sorted(list.begin(), list.end(), by_event)) return;
  std::stable_sort(list.begin(), list.end(), by_event);
  for (size_t i = 0; i < list.size(); ++i) program.parts[list[i]].position = static_cast<uint32_t>(i);
}

}  // namespace

Program Lower(const std::vector<Trace>& traces, const LowerOptions& options) {
  Program program;
  program.traces = &traces;
  size_t events = 0;
  for (const Trace& trace : traces) events += trace.events.size();
  program.entries.reserve(events);
  program.prerequisites.reserve(events * 2);
  Sequences sequences(program);
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    if (traces[rank].rank != static_cast<int32_t>(rank)) {
      throw std::invalid_argument("traces must be in rank order: found rank " + std::to_string(traces[rank].rank) +
                                  " at place " + std::to_string(rank));
    }
    program.first_entry.push_back(static_cast<uint32_t>(program.entries.size()));
    const bool drop = options.drop_rank == static_cast<int32_t>(rank);
    RankLowering(program, sequences, traces[rank], drop ? options.drop_event : -1).Run();
  }
  program.first_entry.push_back(static_cast<uint32_t>(program.entries.size()));
  for (Sequence& sequence : program.sequences) {
    for (auto& list : sequence.parts) {
      PlaceInCallOrder(program, list);
      sequence.length = std::max(sequence.length, static_cast<uint32_t>(list.size()));
    }
    sequence.first_operation = program.operations;
    program.operations += sequence.length;
  }
  return program;
}

}  // namespace shardproof::graph
