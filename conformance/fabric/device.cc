#include "conformance/fabric/device.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace shardproof {
namespace {

template <class T>
T& Get(std::vector<T>& all, int32_t index) {
  assert(index >= 0 && static_cast<size_t>(index) < all.size());
  return all[static_cast<size_t>(index)];
}
template <class T>
const T& Get(const std::vector<T>& all, int32_t index) {
  assert(index >= 0 && static_cast<size_t>(index) < all.size());
  return all[static_cast<size_t>(index)];
}

}  // namespace

int32_t Device::CreateStream(std::string_view name) {
  streams_.emplace_back();
  streams_.back().name = std::string(name);
  return static_cast<int32_t>(streams_.size()) - 1;
}

void Device::DestroyStream(int32_t stream) { Get(streams_, stream).live = false; }

int32_t Device::CreateEvent() {
  events_.emplace_back();
  return static_cast<int32_t>(events_.size()) - 1;
}

void Device::DestroyEvent(int32_t event) { Get(events_, event).live = false; }

int32_t Device::AddGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  DeviceGroup group;
  group.key = std::string(key);
  group.members = world_ranks;
  const auto mine = std::find(world_ranks.begin(), world_ranks.end(), rank_);
  assert(mine != world_ranks.end());
  group.me = static_cast<int32_t>(mine - world_ranks.begin());
  group.sent.resize(world_ranks.size());
  group.received.resize(world_ranks.size());
  groups_.push_back(std::move(group));
  return static_cast<int32_t>(groups_.size()) - 1;
}

EntryId Device::AddLocal(int32_t stream, std::string_view what, Body body) {
  Entry entry;
  entry.streams = {stream};
  entry.what = std::string(what);
  entry.body = std::move(body);
  return Push(std::move(entry));
}

EntryId Device::AddRecord(int32_t event, int32_t stream) {
  assert(Get(events_, event).live);
  Entry entry;
  entry.kind = EntryKind::kRecord;
  entry.streams = {stream};
  entry.what = "record of event " + std::to_string(event);
  entry.event = event;
  return Get(events_, event).record = Push(std::move(entry));
}

EntryId Device::AddWait(int32_t event, int32_t stream) {
  assert(Get(events_, event).live);
  const EntryId captured = Get(events_, event).record;
  if (captured < 0) return -1;
  Entry entry;
  entry.kind = EntryKind::kWait;
  entry.streams = {stream};
  entry.what = "wait for event " + std::to_string(event);
  entry.event = event;
  entry.captured = captured;
  return Push(std::move(entry));
}

std::vector<EntryId> Device::AddGroupCall(std::vector<CommOp> ops) {
  std::vector<Entry> kernels;
  for (CommOp& op : ops) {
    auto kernel = std::find_if(kernels.begin(), kernels.end(),
                               [&](const Entry& k) { return k.group == op.group; });
    if (kernel == kernels.end()) {
      kernels.emplace_back();
      kernel = kernels.end() - 1;
      kernel->kind = EntryKind::kKernel;
      kernel->group = op.group;
      kernel->what = op.what;
    }
    auto& streams = kernel->streams;
    if (std::find(streams.begin(), streams.end(), op.stream) == streams.end())
      streams.push_back(op.stream);
    kernel->ops.push_back(std::move(op));
  }
  std::vector<EntryId> ids;
  for (Entry& kernel : kernels) {
    NumberOps(&kernel);
    if (kernel.ops.size() > 1)
      kernel.what += " (+" + std::to_string(kernel.ops.size() - 1) + " more in its group)";
    DeviceGroup& group = Get(groups_, kernel.group);
    kernel.previous = group.last_kernel;
    ids.push_back(group.last_kernel = Push(std::move(kernel)));
  }
  return ids;
}

void Device::NumberOps(Entry* entry) {
  DeviceGroup& group = Get(groups_, entry->group);
  for (const CommOp& op : entry->ops) {
    if (op.kind == SPF_SEND || op.kind == SPF_RECV) {
      auto& count = op.kind == SPF_SEND ? group.sent : group.received;
      entry->positions.push_back(Get(count, op.peer)++);
    } else {
      entry->positions.push_back(group.collectives++);
    }
  }
}

EntryId Device::Push(Entry entry) {
  const EntryId id = issued();
  entry.id = id;
  entries_.push_back(std::move(entry));
  ++pending_;
  Entry& added = entries_.back();
  for (const int32_t index : added.streams) {
    Stream& stream = Get(streams_, index);
    assert(stream.live);
    if (!stream.queue.empty()) ++added.blockers;
    stream.queue.push_back(id);
    stream.last = id;
  }
  Block(added.captured, id);
  Block(added.previous, id);
  if (queues_ > 0) EnterQueues(&added);
  ++added.blockers;  // so that Release decides
  Release(id);
  return id;
}

void Device::EnterQueues(Entry* entry) {
  queue_tail_.resize(static_cast<size_t>(queues_), -1);
  for (const int32_t stream : entry->streams) {
    EntryId& tail = queue_tail_[static_cast<size_t>(stream % queues_)];
    const EntryId before = std::exchange(tail, entry->id);
    if (before == entry->id || Done(before) || At(before).state == EntryState::kRunning) continue;
    followers_[before].push_back(entry->id);
    entry->behind.push_back(before);
    ++entry->blockers;
  }
}

EntryId Device::HeldBy(const Entry& entry) const {
  for (const EntryId before : entry.behind) {
    if (!Done(before) && At(before).state != EntryState::kRunning) return before;
  }
  return -1;
}

void Device::Block(EntryId on, EntryId entry) {
  if (Done(on)) return;
  At(on).dependents.push_back(entry);
  ++At(entry).blockers;
}

void Device::Release(EntryId id) {
  Entry& entry = At(id);
  if (--entry.blockers > 0 || entry.state != EntryState::kQueued) return;
  entry.state = EntryState::kReady;
  ready_.push_back(id);
  newly_ready_.push_back(id);
}

std::vector<EntryId> Device::TakeNewlyReady() { return std::exchange(newly_ready_, {}); }

Entry& Device::Start(EntryId id) {
  Entry& entry = At(id);
  assert(entry.state == EntryState::kReady);
  entry.state = EntryState::kRunning;
  ready_.erase(std::find(ready_.begin(), ready_.end(), id));
  if (const auto next = followers_.find(id); next != followers_.end()) {
    for (const EntryId follower : next->second) Release(follower);
    followers_.erase(next);
  }
  return entry;
}

void Device::Complete(EntryId id) {
  Entry& entry = At(id);
  assert(entry.state == EntryState::kRunning);
  entry.state = EntryState::kDone;
  entry.body = nullptr;
  --pending_;
  for (const int32_t index : entry.streams) {
    auto& queue = Get(streams_, index).queue;
    if (queue.empty() || queue.front() != id) continue;  // abandoned while it ran
    queue.pop_front();
    if (!queue.empty()) Release(queue.front());
  }
  const auto dependents = std::exchange(entry.dependents, {});
  for (const EntryId dependent : dependents) Release(dependent);
  PopDone();
}

void Device::PopDone() {
  while (!entries_.empty() && entries_.front().state == EntryState::kDone) {
    entries_.pop_front();
    ++base_;
  }
}

void Device::Abandon() {
  for (Entry& entry : entries_) {
    entry.dependents.clear();
    if (entry.state == EntryState::kRunning || entry.state == EntryState::kDone) continue;
    entry.state = EntryState::kDone;
    entry.body = nullptr;
    --pending_;
  }
  followers_.clear();
  for (Stream& stream : streams_) stream.queue.clear();
  ready_.clear();
  newly_ready_.clear();
  PopDone();
}

EntryId Device::LastOn(int32_t stream) const { return Get(streams_, stream).last; }
EntryId Device::LatestRecord(int32_t event) const { return Get(events_, event).record; }
EntryId Device::LastKernel(int32_t group) const { return Get(groups_, group).last_kernel; }
bool Device::Done(EntryId id) const { return id < base_ || At(id).state == EntryState::kDone; }

const Entry& Device::entry(EntryId id) const {
  assert(!Done(id));
  return At(id);
}

std::string Device::StreamName(int32_t stream) const {
  const std::string& name = Get(streams_, stream).name;
  const std::string number = "stream " + std::to_string(stream);
  return name.empty() ? number : name + " (" + number + ")";
}

std::string Device::Describe(EntryId id) const {
  if (Done(id)) return "entry " + std::to_string(id) + " (done)";
  const Entry& entry = At(id);
  std::string text = entry.what + " on ";
  for (size_t i = 0; i < entry.streams.size(); ++i)
    text += (i ? " and " : "") + StreamName(entry.streams[i]);
  return text;
}

std::string Device::WhyQueued(EntryId id) const {
  const Entry& entry = At(id);
  std::string text;
  const auto add = [&](const std::string& reason) { text += (text.empty() ? "" : ", ") + reason; };
  for (const int32_t index : entry.streams) {
    const auto& queue = Get(streams_, index).queue;
    if (!queue.empty() && queue.front() != id)
      add("behind " + At(queue.front()).what + " on " + StreamName(index));
  }
  if (!Done(entry.captured))
    add("its record on " + StreamName(At(entry.captured).streams[0]) + " is not complete");
  if (!Done(entry.previous)) {
    add("the communicator " + Get(groups_, entry.group).key + " is busy with " +
        Describe(entry.previous));
  }
  if (const EntryId before = HeldBy(entry); before >= 0)
    add("the hardware queue serves " + Describe(before) + " first");
  return text;
}

std::vector<EntryId> Device::CompletesFirst(const std::vector<EntryId>& ids) const {
  std::vector<bool> starts(entries_.size()), completes(entries_.size());  // by place in entries_
  std::vector<EntryId> next;
  const auto start = [&](EntryId id) {
    const auto place = static_cast<size_t>(id - base_);
    if (!starts[place]) next.push_back(id);
    starts[place] = true;
  };
  const auto complete = [&](EntryId id) {
    if (Done(id)) return;
    completes[static_cast<size_t>(id - base_)] = true;
    start(id);
  };
  for (const EntryId id : ids) complete(id);
  while (!next.empty()) {
    const Entry& entry = At(next.back());
    next.pop_back();
    for (const int32_t index : entry.streams) {
      const auto& queue = Get(streams_, index).queue;  // ids ascend
      const auto mine = std::lower_bound(queue.begin(), queue.end(), entry.id);
      if (mine != queue.begin()) complete(*(mine - 1));
    }
    complete(entry.captured);
    complete(entry.previous);
    for (const EntryId ahead : entry.behind) {
      if (!Done(ahead) && At(ahead).state != EntryState::kRunning) start(ahead);
    }
  }
  std::vector<EntryId> first;
  for (size_t place = 0; place < completes.size(); ++place) {
    if (completes[place]) first.push_back(base_ + static_cast<EntryId>(place));
  }
  return first;
}

std::vector<EntryId> Device::Fronts() const {
  std::vector<EntryId> fronts;
  for (const Stream& stream : streams_) {
    if (stream.queue.empty()) continue;
    if (std::find(fronts.begin(), fronts.end(), stream.queue.front()) == fronts.end()) {
      fronts.push_back(stream.queue.front());
    }
  }
  return fronts;
}

}  // namespace shardproof
