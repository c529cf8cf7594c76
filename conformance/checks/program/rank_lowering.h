// rank_lowering.h: how do the events of one rank become entries?
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/program/program.h"
#include "conformance/checks/program/sequences.h"
#include "conformance/checks/program/thread_order.h"

namespace shardproof::graph {

// Walks one rank's events and appends its entries to the program.
class RankLowering {
 public:
  RankLowering(Program& program, Sequences& sequences, const Trace& trace, int64_t drop_event)
      : program_(program), sequences_(sequences), trace_(trace), drop_event_(drop_event) {
    for (const GroupInfo& group : trace.groups) {
      groups_.push_back(sequences.Communicator(group, trace.rank));
      const auto me = std::find(group.world_ranks.begin(), group.world_ranks.end(), trace.rank);
      members_.push_back(me == group.world_ranks.end()
                             ? -1
                             : static_cast<int32_t>(me - group.world_ranks.begin()));
    }
    threaded_ = std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
      return event.thread != trace.events[0].thread;
    });
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
    throw std::invalid_argument("rank " + std::to_string(trace_.rank) + ", event " +
                                std::to_string(event_) + ": " + what);
  }

  static uint32_t& At(std::vector<uint32_t>& table, int32_t index) {
    if (static_cast<size_t>(index) >= table.size())
      table.resize(static_cast<size_t>(index) + 1, kNone);
    return table[static_cast<size_t>(index)];
  }

  Thread& ThreadOf(uint16_t id) {
    if (threads_.size() <= id) threads_.resize(size_t{id} + 1);
    return threads_[id];
  }

  size_t Group(int32_t group) const {
    if (group < 0 || static_cast<size_t>(group) >= groups_.size())
      Bad("no such group: " + std::to_string(group));
    if (members_[static_cast<size_t>(group)] < 0) Bad("the rank is no member of its group");
    return static_cast<size_t>(group);
  }

  void Visit(const Event& event);
  void VisitHost(const Event& event);
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
    entry.parts = {static_cast<uint32_t>(program_.parts.size()),
                   static_cast<uint32_t>(program_.parts.size())};
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

  // What the host thread did before: unless an entry that it issued since then is a prerequisite
  // anyhow.
  void NeedHost(const Thread& thread, uint32_t stream_last, uint16_t id) {
    if (thread.last == kNone) return;
    if (stream_last != kNone && stream_last > thread.last &&
        program_.entries[stream_last].thread == id)
      return;
    Need(thread.last, EdgeKind::kHost);
  }

  void Touch(ThreadOrder::Resource resource, int32_t id, uint16_t thread) {
    if (!threaded_ || !order_.Touch(resource, id, thread)) return;
    std::string& why = resource == ThreadOrder::Resource::kDevice ? program_.unordered_issue
                                                                  : program_.unordered_threads;
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

  void AddPart(uint32_t index, int32_t sequence, int32_t member);
  void AddCollective(const Event& event, uint32_t index);
  uint32_t& LastOn(int32_t communicator, int32_t stream);
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
  // By communicator: each stream that it used, and its last kernel there.
  std::vector<std::vector<std::pair<int32_t, uint32_t>>> kernels_on_;
  std::vector<Thread> threads_;
  std::vector<bool> pinned_;  // by allocation
  bool threaded_ = false;     // more than one host thread
  ThreadOrder order_;
};

}  // namespace shardproof::graph
