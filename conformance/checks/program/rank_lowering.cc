#include "conformance/checks/program/rank_lowering.h"

#include "conformance/abi/shardproof.h"

namespace shardproof::graph {

namespace {
constexpr int32_t kDeviceResource = -1;
}

void RankLowering::AddPart(uint32_t index, int32_t sequence, int32_t member) {
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
    AddPart(index, sequences_.Joint(communicator, Sequence::Kind::kCollectives), members_[group]);
    return;
  }
  const auto& ranks = program_.communicators[static_cast<size_t>(communicator)].ranks;
  if (event.peer < 0 || static_cast<size_t>(event.peer) >= ranks.size())
    Bad("the peer is no rank of the group");
  const int32_t peer = ranks[static_cast<size_t>(event.peer)];
  const bool send = event.collective == SPF_SEND;
  const int32_t messages =
      sequences_.Messages(communicator, send ? trace_.rank : peer, send ? peer : trace_.rank);
  AddPart(index, messages, send ? 0 : 1);
}

uint32_t& RankLowering::LastOn(int32_t communicator, int32_t stream) {
  const auto index = static_cast<size_t>(communicator);
  if (kernels_on_.size() <= index) kernels_on_.resize(index + 1);
  for (auto& [other, last] : kernels_on_[index]) {
    if (other == stream) return last;
  }
  return kernels_on_[index].emplace_back(stream, kNone).second;
}

// One communicator's kernel: all of events are on one group.
void RankLowering::Kernel(const std::vector<uint32_t>& events, const Event& at) {
  std::vector<int32_t> streams;
  for (const uint32_t index : events) {
    const int32_t stream = trace_.events[index].stream;
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  }
  const uint32_t entry = Begin(EntryKind::kKernel, at);
  program_.entries.back().stream = streams[0];
  uint32_t newest = kNone;  // of the prerequisites issued by this thread
  for (const int32_t stream : streams) {
    uint32_t& last = At(stream_last_, stream);
    Need(last, EdgeKind::kStream);
    if (last != kNone && program_.entries[last].thread == at.thread &&
        (newest == kNone || last > newest))
      newest = last;
    last = entry;
    Touch(ThreadOrder::Resource::kStream, stream, at.thread);
  }
  NeedHost(ThreadOf(at.thread), newest, at.thread);
  const int32_t communicator = groups_[Group(trace_.events[events[0]].group)];
  for (const int32_t stream : streams) LastOn(communicator, stream) = entry;
  uint32_t& previous = At(communicator_last_, communicator);
  if (previous != kNone) {
    const Entry& before = program_.entries[previous];
    if (!before.streams.empty() ||
        std::find(streams.begin(), streams.end(), before.stream) == streams.end()) {
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
  Touch(ThreadOrder::Resource::kCommunicator, groups_[Group(event.group)], event.thread);
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
    if (std::find(communicators.begin(), communicators.end(), communicator) ==
        communicators.end()) {
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
      if (event.stream < 0) Bad("a stream sync without a stream");
      Need(At(stream_last_, event.stream), EdgeKind::kSync);
      Touch(ThreadOrder::Resource::kStream, event.stream, event.thread);
      break;
    case EventKind::kEventSync:
      if (event.event < 0) Bad("an event sync without an event");
      Need(At(captured_, event.event), EdgeKind::kSync);
      Touch(ThreadOrder::Resource::kEvent, event.event, event.thread);
      break;
    case EventKind::kDeviceSync:
      for (const uint32_t last : stream_last_) Need(last, EdgeKind::kSync);
      Touch(ThreadOrder::Resource::kStream, ThreadOrder::kAllStreams, event.thread);
      break;
    default: {  // kRequestWait
      if (event.id < 0) Bad("a request wait without a request");
      const uint32_t request = At(requests_, event.id);
      if (request == kNone)
        Bad("a wait for request " + std::to_string(event.id) + ", which was not started");
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
  if (post == kNone)
    Bad("an await before its post: rows must stand in the order in which they happened");
  Need(post, EdgeKind::kHandOver);
  order_.Await(event.id, event.thread);
}

// The four host calls on groups: all but a deregistration meet the other members, and those that
// end something wait for this rank's work on the group.
void RankLowering::Groups(const Event& event) {
  using Kind = Sequence::Kind;
  const bool create = event.kind == EventKind::kGroupCreate;
  const bool registers = event.kind == EventKind::kGroupRegister;
  const size_t group = Group(create ? event.parent : event.group);
  const int32_t communicator = groups_[group];
  const bool meets = event.kind != EventKind::kGroupDeregister;
  OnHost(meets ? EntryKind::kHostCollective : EntryKind::kHostSync, event);
  Touch(ThreadOrder::Resource::kCommunicator, communicator, event.thread);
  const bool used = static_cast<size_t>(communicator) < kernels_on_.size();
  if (!create && !registers && used) {
    for (const auto& [stream, last] : kernels_on_[static_cast<size_t>(communicator)])
      Need(last, EdgeKind::kSync);
  }
  program_.registrations = program_.registrations || registers || !meets;
  if (!meets) return;
  const Kind kind = create ? Kind::kCreates : registers ? Kind::kRegisters : Kind::kDestroys;
  AddPart(static_cast<uint32_t>(event_), sequences_.Joint(communicator, kind), members_[group]);
}

void RankLowering::Visit(const Event& event) {
  switch (event.kind) {
    case EventKind::kCompute:
    case EventKind::kLaunch:
    case EventKind::kCopy:
    case EventKind::kInit:
    case EventKind::kPublish:
      OnStream(EntryKind::kLocal, event);
      break;
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
    case EventKind::kFree:
      AllocOrFree(event);
      break;
    case EventKind::kCollective:
      VisitCollective(event, static_cast<uint32_t>(event_));
      break;
    default:
      VisitHost(event);
  }
}

void RankLowering::VisitHost(const Event& event) {
  switch (event.kind) {
    case EventKind::kHostAccess:
      OnHost(EntryKind::kHostAccess, event);
      break;
    case EventKind::kStreamSync:
    case EventKind::kEventSync:
    case EventKind::kRequestWait:
    case EventKind::kDeviceSync:
      Sync(event);
      break;
    case EventKind::kThreadPost:
    case EventKind::kThreadAwait:
      HandOver(event);
      break;
    case EventKind::kGroupCreate:
    case EventKind::kGroupDestroy:
    case EventKind::kGroupRegister:
    case EventKind::kGroupDeregister:
      Groups(event);
      break;
    case EventKind::kGroupBegin:
      ++ThreadOf(event.thread).group_depth;
      break;
    case EventKind::kGroupEnd: {
      Thread& thread = ThreadOf(event.thread);
      if (thread.group_depth == 0) Bad("a group end without a begin");
      if (--thread.group_depth == 0) CloseGroup(thread);
      break;
    }
    default:
      break;
  }
}

}  // namespace shardproof::graph
