// Communicators: is one "comm" of all traces one communicator, of the host or of streams?
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/objects/objects.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

struct Place {
  int32_t rank = -1;
  int64_t event = -1;
  std::string Text() const {
    return "rank " + std::to_string(rank) + ", event " + std::to_string(event);
  }
};

// A creation as its members see it: the how-manieth under which parent, of which list.
struct Creation {
  std::string parent;
  int64_t number = 0;
  std::vector<int64_t> ranks;
  auto operator<=>(const Creation&) const = default;
  std::string Text() const { return "creation #" + std::to_string(number) + " under " + parent; }
};

// What the groups of a trace are, seen at once.
struct Groups {
  explicit Groups(const Trace& trace) : used(trace.groups.size()) {
    for (const GroupInfo& group : trace.groups) ++lines[group.comm];
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kGroupCreate && event.group >= 0) At(used, event.group) = true;
      if (event.parent >= 0) At(used, event.parent) = true;
    }
    complete = trace.end == TraceEnd::kComplete;
  }
  // A creation in which a run was ended has made nothing, whatever the trace calls it.
  bool Finished(int32_t group) const { return complete || At(used, group); }
  std::map<std::string, int32_t> lines;  // by comm: of the trace
  std::vector<bool> used;                // by group
  bool complete = false;
};

class Communicators {
 public:
  Communicators(const Analysis& a, FindingSink& sink) : a_(a), sink_(sink) {}

  void Run() {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) Walk(rank);
    for (const auto& [comm, host] : on_host_) {
      const auto stream = on_stream_.find(comm);
      if (stream == on_stream_.end()) continue;
      Add(host, "all collectives of communicator \"" + comm + "\" from streams, or all by the host",
          "by the host here, from a stream at " + stream->second.Text(),
          "one communicator is used by the host and from streams: no library orders the two. Give "
          "each its own \"comm\"");
    }
  }

 private:
  void Add(const Place& at, std::string expected, std::string seen, std::string message) {
    sink_.Add(a_.At("GE-19", at.rank, at.event), std::move(expected), std::move(seen),
              std::move(message));
  }

  void Walk(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    std::map<std::string, int64_t> creations;  // by parent
    const Groups groups(trace);
    int64_t index = 0;
    for (const Event& event : trace.events) {
      const Place here{rank, index++};
      if (event.kind == EventKind::kCollective && event.group >= 0) {
        auto& uses = event.stream < 0 ? on_host_ : on_stream_;
        uses.try_emplace(At(trace.groups, event.group).comm, here);
      }
      if (event.kind != EventKind::kGroupCreate) continue;
      Creation creation{At(trace.groups, event.parent).comm, 0, {}};
      creation.number = creations[creation.parent]++;
      creation.ranks.assign(trace.numbers.begin() + event.ranks.begin,
                            trace.numbers.begin() + event.ranks.end);
      if (event.group >= 0 && groups.Finished(event.group))
        Made(here, groups, At(trace.groups, event.group).comm, creation);
    }
  }

  // Each creation makes a communicator that was not there before, the same one for its members.
  void Made(const Place& here, const Groups& groups, const std::string& comm,
            const Creation& creation) {
    const auto [mine, first] = made_.try_emplace(creation, comm, here);
    const auto [other, fresh] = maker_.try_emplace(comm, creation, here);
    if (!first && mine->second.first != comm) {
      Add(here,
          "\"" + mine->second.first + "\", as " + creation.Text() + " is called at " +
              mine->second.second.Text(),
          "\"" + comm + "\"",
          "members of one group give its communicator different names, so its operations cannot "
          "be paired");
    } else if (!fresh && other->second.first != creation) {
      Shared(here, comm, creation,
             other->second.first.Text() + " at " + other->second.second.Text());
    } else if (fresh && groups.lines.at(comm) > 1) {
      Shared(here, comm, creation, "another group of this rank");
    }
  }

  void Shared(const Place& here, const std::string& comm, const Creation& creation,
              const std::string& with) {
    Add(here, "a \"comm\" of its own for " + creation.Text(),
        "\"" + comm + "\", which is that of " + with + " too",
        "two communicators have one \"comm\", so their operations are taken for one sequence");
  }

  const Analysis& a_;
  FindingSink& sink_;
  std::map<std::string, Place> on_host_, on_stream_;  // first uses, by comm
  std::map<Creation, std::pair<std::string, Place>> made_;
  std::map<std::string, std::pair<Creation, Place>> maker_;  // by comm
};

}  // namespace

void FollowCommunicators(const Analysis& a, FindingSink& sink) { Communicators(a, sink).Run(); }

}  // namespace shardproof
