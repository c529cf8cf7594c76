// Handles: streams, events and groups from creation to destruction, requests from start to wait.
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conformance/checks/objects/objects.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// What happened to a handle, by event; -1: nothing so far. A handle without a creation in the trace
// was there before.
struct Life {
  int64_t creation = -1;  // wherever in the trace
  bool created = false;
  int64_t destroyed = -1;
};

// By number. Numbers are small as a rule: those below the number of events stand in a vector.
class Lives {
 public:
  explicit Lives(size_t events) : events_(events) {}
  // Stands until the next number is asked for.
  Life& operator[](int32_t number) {
    const auto index = static_cast<size_t>(number);
    if (index >= events_) return large_[number];
    if (index >= small_.size()) small_.resize(index + 1);
    return small_[index];
  }

 private:
  size_t events_;
  std::vector<Life> small_;
  std::unordered_map<int32_t, Life> large_;
};

class Handles {
 public:
  Handles(const Analysis& a, int32_t rank, FindingSink& sink)
      : a_(a), trace_(a.trace(rank)), sink_(sink) {}

  void Run() {
    FindCreations();
    for (const Event& event : trace_.events) {
      Streams(event);
      Events(event);
      Groups(event);
      Requests(event);
      ++index_;
    }
    if (trace_.end == TraceEnd::kComplete) OpenRequests();
  }

 private:
  void Add(int64_t event, std::string expected, std::string seen, std::string message) {
    sink_.Add(a_.At("GE-19", trace_.rank, event), std::move(expected), std::move(seen),
              std::move(message));
  }
  static std::string AtEvent(int64_t event) { return " at event " + std::to_string(event); }

  void FindCreations() {
    const auto note = [](Life& life, int64_t index) {
      if (life.creation < 0) life.creation = index;
    };
    int64_t index = 0;
    for (const Event& event : trace_.events) {
      if (event.kind == EventKind::kStreamCreate) note(streams_[event.stream], index);
      if (event.kind == EventKind::kEventCreate) note(events_[event.event], index);
      if (event.kind == EventKind::kGroupCreate && event.group >= 0)
        note(groups_[event.group], index);
      ++index;
    }
  }

  void Create(Life& life, const std::function<std::string()>& name_of) {
    if (life.created) {
      const std::string name = name_of();
      Add(index_, "a number that was not used before",
          name + ", created" + AtEvent(life.creation) + " already",
          name + " is created twice: numbers are never used again");
    }
    life.created = true;
    life.destroyed = -1;
  }

  void Use(const Life& life, const std::function<std::string()>& name_of) {
    const bool early = life.creation >= 0 && !life.created;
    if (!early && life.destroyed < 0) return;
    const std::string name = name_of();
    if (early) {
      Add(index_, name + " used after its creation" + AtEvent(life.creation),
          name + ", before it is created", name + " is used before it is created");
    } else {
      Add(index_, name + " used before its destruction" + AtEvent(life.destroyed),
          name + ", after it was destroyed", name + " is used after it was destroyed");
    }
  }

  void Streams(const Event& event) {
    if (event.stream < 0) return;
    Life& life = streams_[event.stream];
    const auto name = [&] { return graph::StreamName(trace_, event.stream); };
    if (event.kind == EventKind::kStreamCreate) return Create(life, name);
    Use(life, name);
    if (event.kind == EventKind::kStreamDestroy) life.destroyed = index_;
  }

  void Events(const Event& event) {
    if (event.event < 0) return;
    Life& life = events_[event.event];
    const auto name = [&] { return "event object " + std::to_string(event.event); };
    if (event.kind == EventKind::kEventCreate) return Create(life, name);
    Use(life, name);
    if (event.kind == EventKind::kEventDestroy) life.destroyed = index_;
  }

  std::string GroupName(int32_t group) const {
    return "group \"" + At(trace_.groups, group).name + "\" (" + std::to_string(group) + ")";
  }

  // Groups are created by number and destroyed as communicators: several groups may be one.
  void UseGroup(int32_t group) {
    const auto name = [&] { return GroupName(group); };
    Use(groups_[group], name);
    if (destroyed_.empty()) return;
    const auto gone = destroyed_.find(At(trace_.groups, group).comm);
    if (gone == destroyed_.end()) return;
    Life life;
    life.destroyed = gone->second;
    Use(life, name);
  }

  void Groups(const Event& event) {
    if (event.parent >= 0) UseGroup(event.parent);
    if (event.group < 0 || event.kind == EventKind::kGroupAsk) return;
    if (event.kind == EventKind::kGroupCreate)
      return Create(groups_[event.group], [&] { return GroupName(event.group); });
    UseGroup(event.group);
    if (event.kind == EventKind::kGroupDestroy)
      destroyed_.emplace(At(trace_.groups, event.group).comm, index_);
  }

  void Requests(const Event& event) {
    if (event.kind == EventKind::kRequestWait) open_.erase(event.id);
    if (event.kind != EventKind::kCollective || event.request < 0) return;
    const auto [at, fresh] = open_.try_emplace(event.request, index_);
    if (fresh) return;
    const std::string name = "request " + std::to_string(event.request);
    Add(index_, name + " waited for before its number is used again",
        name + ", started" + AtEvent(at->second) + " and not finished",
        name + " is started again while it is under way: nobody can wait for the first one");
    at->second = index_;
  }

  void OpenRequests() {
    for (const auto& [request, started] : open_) {
      const std::string name = "request " + std::to_string(request);
      Add(started, "a request_wait for " + name, "none until the end of the trace",
          name + " is never waited for: nothing tells when its buffers may be used");
    }
  }

  const Analysis& a_;
  const Trace& trace_;
  FindingSink& sink_;
  int64_t index_ = 0;
  Lives streams_{trace_.events.size()}, events_{trace_.events.size()},
      groups_{trace_.events.size()};
  std::map<std::string, int64_t> destroyed_;  // communicators, and the event
  std::map<int32_t, int64_t> open_;           // requests, and the event that started them
};

}  // namespace

void FollowHandles(const Analysis& a, int32_t rank, FindingSink& sink) {
  Handles(a, rank, sink).Run();
}

}  // namespace shardproof
