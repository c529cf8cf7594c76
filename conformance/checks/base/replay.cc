#include "conformance/checks/base/replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "conformance/abi/shardproof.h"

namespace shardproof {

namespace {

// Part of one of a rank's lists: [begin, end).
struct Part {
  size_t begin = 0, end = 0;
};

// A stream entry: one event, or all collectives of one group operation.
struct Entry {
  Part ops;         // event indices, and each one's place on its communicator, by issue order
  Part streams;     // which it occupies
  Part before;      // entries of this rank: a record, earlier kernels of the communicator
  size_t left = 0;  // collectives not matched yet
  bool arrived = false, done = false;
};

bool IsPointToPoint(uint8_t kind) { return kind == SPF_SEND || kind == SPF_RECV; }

// A matched operation: number of its communicator, sender and receiver (-1, -1 for a collective),
// position.
using Key = std::tuple<size_t, int32_t, int32_t, int64_t>;

struct Joint {
  std::vector<ReplayVisitor::Member> members;
  std::vector<std::pair<int32_t, int64_t>> entries;  // (rank, entry)
  size_t needed = 0;
};

// The stream number under which host-blocking operations are queued.
constexpr int32_t kHostStream = -1;

class Machine {
 public:
  Machine(const std::vector<Trace>& traces, ReplayVisitor& visitor)
      : traces_(traces), visitor_(visitor) {
    ranks_.resize(traces.size());
    std::map<std::string_view, size_t> numbers;
    for (size_t r = 0; r < traces.size(); ++r) {
      for (const GroupInfo& group : traces[r].groups)
        ranks_[r].comms.push_back(numbers.try_emplace(group.comm, numbers.size()).first->second);
    }
  }

  ReplayResult Run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int32_t r = 0; r < static_cast<int32_t>(ranks_.size()); ++r) moved |= Advance(r);
    }
    return Verdict();
  }

 private:
  struct Rank {
    size_t next = 0;            // event to be issued
    std::vector<size_t> comms;  // by group: number of its communicator
    std::vector<Entry> entries;
    std::vector<int64_t> ops, places, before;          // of entries
    std::vector<std::deque<int64_t>*> queues;          // of entries: in streams
    std::map<int32_t, std::deque<int64_t>> streams;    // heads are the oldest unfinished entries
    std::vector<int64_t> heads;                        // scratch of RunHeads
    std::unordered_map<int32_t, int64_t> last_record;  // by event
    std::set<int32_t> pinned;                          // blocks
    std::unordered_map<int32_t, int64_t> requests, last_kernel;  // by request; by group
    std::map<std::tuple<int32_t, int32_t, int32_t>, int64_t>
        positions;  // (group, sender, receiver)
  };

  const Event& At(int32_t r, int64_t event) const {
    return traces_[size_t(r)].events[size_t(event)];
  }

  bool Advance(int32_t r) {
    bool moved = false;
    while (true) {
      bool again = false;
      while (Issue(r)) again = true;
      again |= RunHeads(r);
      if (!again) return moved;
      moved = true;
    }
  }

  // Issues the next event of the host; false when it blocks or the trace is at its end.
  bool Issue(int32_t r) {
    Rank& rank = ranks_[size_t(r)];
    const Trace& trace = traces_[size_t(r)];
    if (rank.next >= trace.events.size()) return false;
    const auto index = static_cast<int64_t>(rank.next);
    const Event& event = trace.events[rank.next];
    if (Blocks(rank, event)) return false;
    switch (event.kind) {
      case EventKind::kStreamSync:
      case EventKind::kDeviceSync:
      case EventKind::kEventSync:
      case EventKind::kRequestWait:
        break;
      case EventKind::kGroupBegin:
        EnqueueGroup(r);
        return true;
      case EventKind::kCollective:
        Enqueue(r, {&index, 1});
        break;
      case EventKind::kRecord:
        rank.last_record[event.event] = Enqueue(r, {&index, 1});
        break;
      case EventKind::kWait: {
        const auto record = rank.last_record.find(event.event);
        const int64_t captured = record == rank.last_record.end() ? -1 : record->second;
        const int64_t entry = Enqueue(r, {&index, 1});
        if (captured >= 0) WaitFor(rank, entry, captured);
        break;
      }
      default:
        if (OnStream(rank, event)) {
          Enqueue(r, {&index, 1});
        } else {
          visitor_.OnLocal(r, index);
        }
    }
    ++rank.next;
    return true;
  }

  // Does the host wait before this event: in an operation that it issued, or for what the event
  // waits for?
  static bool Blocks(Rank& rank, const Event& event) {
    if (!rank.streams[kHostStream].empty()) return true;
    const auto open = [&](const std::unordered_map<int32_t, int64_t>& entries, int32_t id) {
      const auto at = entries.find(id);
      return at != entries.end() && !rank.entries[size_t(at->second)].done;
    };
    switch (event.kind) {
      case EventKind::kStreamSync:
        return !rank.streams[event.stream].empty();
      case EventKind::kDeviceSync:
        return std::any_of(rank.streams.begin(), rank.streams.end(),
                           [](const auto& stream) { return !stream.second.empty(); });
      case EventKind::kEventSync:
        return open(rank.last_record, event.event);
      case EventKind::kRequestWait:
        return open(rank.requests, event.id);
      default:
        return false;
    }
  }

  // Pinned memory comes and goes in the host's order, not in its stream's.
  static bool OnStream(Rank& rank, const Event& event) {
    const bool memory = event.kind == EventKind::kAlloc || event.kind == EventKind::kFree;
    if (event.kind == EventKind::kAlloc && event.id == SPF_PINNED) rank.pinned.insert(event.alloc);
    if (memory && rank.pinned.count(event.alloc) != 0) return false;
    return event.stream >= 0 && event.kind != EventKind::kStreamCreate &&
           event.kind != EventKind::kStreamDestroy;
  }

  void EnqueueGroup(int32_t r) {
    Rank& rank = ranks_[size_t(r)];
    const Trace& trace = traces_[size_t(r)];
    group_.clear();
    size_t at = rank.next + 1;
    for (; at < trace.events.size() && trace.events[at].kind != EventKind::kGroupEnd; ++at) {
      if (trace.events[at].kind == EventKind::kCollective)
        group_.push_back(static_cast<int64_t>(at));
    }
    rank.next = at < trace.events.size() ? at + 1 : at;
    if (!group_.empty()) Enqueue(r, group_);
  }

  // REQUIRES: entry is the rank's last.
  static void WaitFor(Rank& rank, int64_t entry, int64_t earlier) {
    rank.before.push_back(earlier);
    rank.entries[size_t(entry)].before.end = rank.before.size();
  }

  int64_t Enqueue(int32_t r, std::span<const int64_t> ops) {
    Rank& rank = ranks_[size_t(r)];
    const auto id = static_cast<int64_t>(rank.entries.size());
    Entry& entry = rank.entries.emplace_back();
    entry.ops.begin = rank.ops.size();
    entry.streams = {rank.queues.size(), rank.queues.size()};
    entry.before = {rank.before.size(), rank.before.size()};
    for (const int64_t op : ops) {
      const Event& event = At(r, op);
      int64_t place = 0;
      if (event.kind == EventKind::kCollective) {
        ++entry.left;
        const Pair pair = PairOf(r, event);
        // Kernels of one communicator run in issue order, whatever their streams.
        const auto [last, first] = rank.last_kernel.try_emplace(event.group, id);
        if (!first && last->second != id && event.request < 0) WaitFor(rank, id, last->second);
        last->second = id;
        place = rank.positions[{event.group, pair.sender, pair.receiver}]++;
      }
      rank.ops.push_back(op);
      rank.places.push_back(place);
      int32_t stream = event.stream;
      if (stream < 0 && event.request >= 0) {
        rank.requests[event.request] = id;
        stream = -2 - event.request;  // a queue of its own
      }
      auto& queue = rank.streams[stream];
      if (!queue.empty() && queue.back() == id) continue;
      queue.push_back(id);
      rank.queues.push_back(&queue);
    }
    entry.ops.end = rank.ops.size();
    entry.streams.end = rank.queues.size();
    return id;
  }

  bool RunHeads(int32_t r) {
    Rank& rank = ranks_[size_t(r)];
    rank.heads.clear();
    for (const auto& [stream, queue] : rank.streams) {
      if (!queue.empty()) rank.heads.push_back(queue.front());
    }
    bool moved = false;
    for (const int64_t head : rank.heads) moved |= TryRun(r, head);
    return moved;
  }

  bool TryRun(int32_t r, int64_t id) {
    Rank& rank = ranks_[size_t(r)];
    Entry& entry = rank.entries[size_t(id)];
    if (entry.done || entry.arrived) return false;
    for (size_t i = entry.streams.begin; i < entry.streams.end; ++i) {
      if (rank.queues[i]->front() != id) return false;
    }
    for (size_t i = entry.before.begin; i < entry.before.end; ++i) {
      if (!rank.entries[size_t(rank.before[i])].done) return false;
    }
    if (entry.left == 0) {
      for (size_t i = entry.ops.begin; i < entry.ops.end; ++i) visitor_.OnLocal(r, rank.ops[i]);
      Finish(r, id);
      return true;
    }
    entry.arrived = true;
    for (size_t i = entry.ops.begin; i < entry.ops.end; ++i)
      Arrive(r, id, rank.ops[i], rank.places[i]);
    return true;
  }

  // Who sends to whom, as ranks of the group; (-1, -1) for a collective. me: this rank in the
  // group.
  struct Pair {
    int32_t me = -1, sender = -1, receiver = -1;
  };
  Pair PairOf(int32_t r, const Event& event) const {
    const Trace& trace = traces_[size_t(r)];
    const std::vector<int32_t>& members = trace.groups[size_t(event.group)].world_ranks;
    Pair pair;
    pair.me = static_cast<int32_t>(std::find(members.begin(), members.end(), trace.rank) -
                                   members.begin());
    if (IsPointToPoint(event.collective)) {
      pair.sender = event.collective == SPF_SEND ? pair.me : event.peer;
      pair.receiver = event.collective == SPF_SEND ? event.peer : pair.me;
    }
    return pair;
  }

  void Arrive(int32_t r, int64_t entry, int64_t op, int64_t position) {
    const Event& event = At(r, op);
    const GroupInfo& group = traces_[size_t(r)].groups[size_t(event.group)];
    const size_t comm = ranks_[size_t(r)].comms[size_t(event.group)];
    const auto [me, sender, receiver] = PairOf(r, event);
    Joint& joint = joints_[Key{comm, sender, receiver, position}];
    if (joint.members.empty()) {
      joint.needed = sender >= 0 ? 2 : group.world_ranks.size();
      joint.members.resize(joint.needed, {-1, -1});
    }
    const auto slot = sender >= 0 ? size_t(event.collective == SPF_RECV) : size_t(me);
    if (slot >= joint.members.size()) return;  // not a member: the matching check says so
    joint.members[slot] = {r, op};
    joint.entries.emplace_back(r, entry);
    if (joint.entries.size() < joint.needed) return;
    visitor_.OnCollective(joint.members);
    const auto entries = joint.entries;
    joints_.erase(Key{comm, sender, receiver, position});
    for (const auto& [rank, id] : entries) {
      if (--ranks_[size_t(rank)].entries[size_t(id)].left == 0) Finish(rank, id);
    }
  }

  void Finish(int32_t r, int64_t id) {
    Rank& rank = ranks_[size_t(r)];
    Entry& entry = rank.entries[size_t(id)];
    entry.done = true;
    for (size_t i = entry.streams.begin; i < entry.streams.end; ++i) rank.queues[i]->pop_front();
  }

  ReplayResult Verdict() const {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      for (const auto& [stream, queue] : rank.streams) {
        if (queue.empty()) continue;
        const int64_t event = rank.ops[rank.entries[size_t(queue.front())].ops.begin];
        return {false, "rank " + std::to_string(traces_[r].rank) + ", event " +
                           std::to_string(event) +
                           " never gets to run when the traces are executed"};
      }
      if (rank.next < traces_[r].events.size()) {
        return {false, "rank " + std::to_string(traces_[r].rank) + " blocks at event " +
                           std::to_string(rank.next)};
      }
    }
    return {};
  }

  const std::vector<Trace>& traces_;
  ReplayVisitor& visitor_;
  std::vector<Rank> ranks_;
  std::vector<int64_t> group_;  // scratch of EnqueueGroup
  std::map<Key, Joint> joints_;
};

}  // namespace

ReplayResult Replay(const std::vector<Trace>& traces, ReplayVisitor& visitor) {
  return Machine(traces, visitor).Run();
}

}  // namespace shardproof
