#include "conformance/checks/program/wait_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/program/connections.h"

namespace shardproof::graph {

namespace {

bool Rooted(uint8_t kind) {
  return kind == SPF_BROADCAST || kind == kReduce || kind == kGather || kind == kScatter;
}

}  // namespace

Needs WhatMustHaveStarted(const Program& program, const std::vector<uint32_t>& parts, size_t of) {
  const Part& mine = program.parts[parts[of]];
  const Event& event = program.event(mine);
  const Trace& trace = program.trace(mine.rank);
  Needs needs;
  if (event.kind != EventKind::kCollective || event.collective == kBarrier) {
    needs.all = true;  // group create and destroy
    return needs;
  }
  const auto one = [&](int32_t member) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (program.parts[parts[i]].member == member) needs.parts.push_back(static_cast<uint32_t>(i));
    }
  };
  if (event.collective == SPF_SEND) return needs;
  if (event.collective == SPF_RECV) {
    one(0);
    return needs;
  }
  if (event.collective == SPF_ALL_GATHER_V || event.collective == SPF_ALL_TO_ALL_V) {
    const int64_t* counts = trace.numbers.data() + event.recv_counts.begin;
    const size_t n = event.recv_counts.size();
    needs.all = std::all_of(counts, counts + n, [](int64_t count) { return count > 0; });
    for (size_t i = 0; i < n && !needs.all; ++i) {
      if (counts[i] > 0) one(static_cast<int32_t>(i));
    }
    return needs;
  }
  if (event.count == 0) return needs;
  if (!Rooted(event.collective)) {
    needs.all = true;
  } else if (event.collective == SPF_BROADCAST || event.collective == kScatter) {
    one(event.peer);
  } else {
    needs.all = mine.member == event.peer;
  }
  return needs;
}

namespace {

class Builder {
 public:
  Builder(const Program& program, const GraphOptions& options)
      : program_(program), options_(options), eager_(options.profile == Profile::kEager) {}

  WaitGraph Build() {
    AddNodes();
    for (uint32_t e = 0; e < program_.entries.size(); ++e) AddPrerequisites(e);
    for (const Sequence& sequence : program_.sequences) AddOperations(sequence);
    if (options_.profile == Profile::kConnects) {
      AddConnections();
    } else {
      for (size_t rank = 0; rank + 1 < program_.first_entry.size(); ++rank) AddProfile(rank);
    }
    result_.graph = Digraph(static_cast<uint32_t>(result_.what.size()), edges_);
    return std::move(result_);
  }

 private:
  uint32_t Node(int64_t what) {
    result_.what.push_back(what);
    return static_cast<uint32_t>(result_.what.size()) - 1;
  }

  bool Separate(const Entry& entry) const {
    return eager_ || options_.separate_completion ||
           (entry.parts.size() > 1 && !options_.group_as_one_operation);
  }

  void AddNodes() {
    const size_t n = program_.entries.size();
    result_.what.reserve(n * 5 / 4);
    result_.start.resize(n);
    result_.complete.assign(n, kUnplaced);
    result_.joint.assign(program_.operations, kUnplaced);
    edges_.reserve(n * 5 / 2);
    for (uint32_t e = 0; e < n; ++e) {
      const Entry& entry = program_.entries[e];
      result_.start[e] = Node(e);
      if (!entry.joint()) result_.complete[e] = result_.start[e];
      if (entry.joint() && Separate(entry)) result_.complete[e] = Node(e);
    }
    if (options_.group_as_one_operation) MergeGroups();
    for (uint32_t o = 0; o < program_.operations; ++o) {
      if (result_.joint[o] == kUnplaced) result_.joint[o] = Node(~static_cast<int64_t>(o));
    }
    for (uint32_t e = 0; e < n; ++e) {
      if (result_.complete[e] != kUnplaced) continue;
      result_.complete[e] =
          result_.joint[program_.operation(program_.parts[program_.entries[e].parts.begin])];
    }
  }

  // All operations of an entry get one node; and so do operations that are connected through
  // several entries.
  void MergeGroups() {
    std::vector<uint32_t> root(program_.operations);
    for (uint32_t o = 0; o < root.size(); ++o) root[o] = o;
    const auto find = [&](uint32_t o) {
      while (root[o] != o) o = root[o] = root[root[o]];
      return o;
    };
    // The kernels of one group call share an event.
    for (uint32_t e = 0; e < program_.entries.size(); ++e) {
      const Entry& entry = program_.entries[e];
      if (!entry.joint()) continue;
      const uint32_t first = program_.operation(program_.parts[entry.parts.begin]);
      for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
        root[find(program_.operation(program_.parts[p]))] = find(first);
      }
      if (e == 0 || program_.entries[e - 1].rank != entry.rank ||
          program_.entries[e - 1].event != entry.event)
        continue;
      root[find(first)] =
          find(program_.operation(program_.parts[program_.entries[e - 1].parts.begin]));
    }
    for (uint32_t o = 0; o < root.size(); ++o) {
      const uint32_t top = find(o);
      if (result_.joint[top] == kUnplaced) result_.joint[top] = Node(~static_cast<int64_t>(top));
      result_.joint[o] = result_.joint[top];
    }
  }

  void Edge(uint32_t from, uint32_t to) { edges_.emplace_back(from, to); }

  void AddPrerequisites(uint32_t e) {
    const Entry& entry = program_.entries[e];
    for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
      const Prerequisite& needed = program_.prerequisites[i];
      if (needed.edge() == EdgeKind::kCommunicator && !options_.communicator_order) continue;
      Edge(result_.complete[needed.entry()], result_.start[e]);
    }
  }

  void Never(uint32_t node) {
    if (result_.never.empty()) result_.never.assign(result_.what.size(), false);
    result_.never[node] = true;
  }

  // A member that is missing: never, or after the last thing that its host waits for.
  void AddMissing(const Sequence& sequence, size_t member, uint32_t node) {
    const auto rank = static_cast<size_t>(sequence.ranks[member]);
    if (options_.expect_missing && rank + 1 < program_.first_entry.size()) {
      for (uint32_t e = program_.first_entry[rank + 1]; e-- > program_.first_entry[rank];) {
        if (program_.entries[e].on_device() || program_.entries[e].kind == EntryKind::kHostRequest)
          continue;
        Edge(result_.complete[e], node);
        return;
      }
    }
    Never(node);
  }

  void AddOperations(const Sequence& sequence) {
    std::vector<uint32_t> parts;
    for (uint32_t position = 0; position < sequence.length; ++position) {
      parts.clear();
      const uint32_t joint = result_.joint[sequence.first_operation + position];
      for (size_t member = 0; member < sequence.parts.size(); ++member) {
        if (position < sequence.parts[member].size()) {
          parts.push_back(sequence.parts[member][position]);
        } else if (!eager_) {
          AddMissing(sequence, member, joint);
        }
      }
      for (const uint32_t p : parts) Edge(result_.start[program_.parts[p].entry], joint);
      if (eager_) {
        AddNeeds(parts, joint);
        continue;
      }
      for (const uint32_t p : parts) {
        const uint32_t complete = result_.complete[program_.parts[p].entry];
        if (complete != joint) Edge(joint, complete);
      }
    }
  }

  void AddNeeds(const std::vector<uint32_t>& parts, uint32_t joint) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint32_t entry = program_.parts[parts[i]].entry;
      const uint32_t complete = result_.complete[entry];
      const Needs needs = WhatMustHaveStarted(program_, parts, i);
      if (needs.all) {
        Edge(joint, complete);
        continue;
      }
      Edge(result_.start[entry], complete);
      for (const uint32_t other : needs.parts) {
        const uint32_t from = program_.parts[parts[other]].entry;
        if (from != entry) Edge(result_.start[from], complete);
      }
    }
  }

  // Where a host thread stands: what it has waited for, and which connections it has made since.
  struct Host {
    uint32_t wait = kUnplaced;  // an entry
    uint32_t made = kUnplaced;  // a node
  };

  // A launch that connects: its meetings by distance, and those whom it meets.
  struct Launch {
    std::vector<std::pair<int32_t, uint32_t>> meetings;  // distance, node
    std::vector<uint32_t> others;                        // entries
    uint32_t exchanged = kUnplaced, made = kUnplaced;    // nodes
  };

  std::map<uint32_t, Launch> Launches() {  // by entry
    std::map<uint32_t, Launch> launches;
    const std::vector<Connection> connections = ConnectionsOf(program_);
    const auto first = static_cast<uint32_t>(result_.what.size());
    std::vector<uint32_t> nodes;
    for (const Connection& one : connections) {
      nodes.push_back(nodes.size() == one.with ? Node(~int64_t{one.operation}) : nodes[one.with]);
      for (const auto& [mine, other] :
           {std::pair(one.sender, one.receiver), std::pair(one.receiver, one.sender)}) {
        launches[mine].meetings.emplace_back(one.distance, nodes.back());
        launches[mine].others.push_back(other);
      }
    }
    result_.connections = {first, static_cast<uint32_t>(result_.what.size())};
    for (auto& [entry, launch] : launches) {
      const auto what =
          ~int64_t{program_.operation(program_.parts[program_.entries[entry].parts.begin])};
      launch.exchanged = Node(what);
      launch.made = Node(what);
      std::sort(launch.meetings.begin(), launch.meetings.end());
    }
    return launches;
  }

  // Behind what the host has waited for and connected before.
  void Connect(const Launch& launch, const std::map<uint32_t, Launch>& launches, const Host& host) {
    for (const auto& [distance, node] : launch.meetings) {
      if (host.wait != kUnplaced) Edge(result_.complete[host.wait], node);
      if (host.made != kUnplaced) Edge(host.made, node);
      Edge(node, launch.exchanged);
      for (const auto& [further, later] : launch.meetings) {
        if (further > distance && later != node) {
          Edge(node, later);
          break;
        }
      }
    }
    Edge(launch.exchanged, launch.made);
    for (const uint32_t other : launch.others) Edge(launches.at(other).exchanged, launch.made);
  }

  // What a thread issues comes after the connections that it has made since it last waited; what it
  // issues after a wait comes after that anyway.
  void AddConnections() {
    const std::map<uint32_t, Launch> launches = Launches();
    std::map<std::pair<int32_t, uint16_t>, Host> hosts;  // by rank and thread
    for (uint32_t e = 0; e < program_.entries.size() && !launches.empty(); ++e) {
      const Entry& entry = program_.entries[e];
      Host& host = hosts[{entry.rank, entry.thread}];
      if (const auto launch = launches.find(e); launch != launches.end()) {
        Connect(launch->second, launches, host);
        host.made = launch->second.made;
      }
      if (host.made != kUnplaced) Edge(host.made, result_.start[e]);
      if (!entry.on_device() && entry.kind != EntryKind::kHostRequest) host = {e, kUnplaced};
    }
    if (!result_.never.empty()) result_.never.resize(result_.what.size(), false);
  }

  void AddProfile(size_t rank) {
    const Profile profile = options_.profile;
    if (profile == Profile::kE0 || eager_) return;
    uint32_t previous = kNone;
    for (uint32_t e = program_.first_entry[rank]; e < program_.first_entry[rank + 1]; ++e) {
      const Entry& entry = program_.entries[e];
      if (profile == Profile::kE2 ? !entry.on_device() : entry.kind != EntryKind::kKernel) continue;
      if (previous != kNone) {
        Edge(profile == Profile::kE2s ? result_.complete[previous] : result_.start[previous],
             result_.start[e]);
      }
      previous = e;
    }
  }

  const Program& program_;
  const GraphOptions& options_;
  bool eager_;
  WaitGraph result_;
  std::vector<Digraph::Edge> edges_;
};

}  // namespace

WaitGraph BuildGraph(const Program& program, const GraphOptions& options) {
  return Builder(program, options).Build();
}

}  // namespace shardproof::graph
