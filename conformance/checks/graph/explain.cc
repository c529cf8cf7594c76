// Cycles and paths in words.
#include <algorithm>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/program/describe.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

class Explainer {
 public:
  Explainer(const Program& program, const WaitGraph& graph, Profile profile)
      : program_(program), graph_(graph), profile_(profile) {}

  const Entry* EntryOf(uint32_t node) const {
    return graph_.what[node] < 0 ? nullptr : &At(program_.entries, graph_.what[node]);
  }

  std::string Name(uint32_t node) const {
    const Entry* entry = EntryOf(node);
    if (entry == nullptr)
      return DescribeOperation(program_, static_cast<uint32_t>(~graph_.what[node]));
    return "rank " + std::to_string(entry->rank) + "'s " + Describe(program_, *entry);
  }

  // Why later cannot be before earlier was: "which ... (name of earlier)".
  std::string Step(uint32_t later, uint32_t earlier) const {
    const Entry* entry = EntryOf(later);
    const Entry* before = EntryOf(earlier);
    if (entry == nullptr) {
      if (before == nullptr) return "which needs " + Name(earlier);
      const bool issued = Issued(static_cast<uint32_t>(~graph_.what[later]), *before);
      return (issued ? "which needs " : "which is never issued, because its rank is held in ") +
             Name(earlier);
    }
    if (before == nullptr && At(graph_.complete, graph_.what[later]) == later &&
        At(graph_.start, graph_.what[later]) != later) {
      return "which completes with " + Name(earlier);
    }
    return Reason(later, earlier);
  }

 private:
  bool Issued(uint32_t operation, const Entry& entry) const {
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      if (graph_.joint[program_.operation(program_.parts[p])] == graph_.joint[operation])
        return true;
    }
    return false;
  }

  std::string Reason(uint32_t later, uint32_t earlier) const {
    const Entry& entry = *EntryOf(later);
    for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
      const Prerequisite& needed = program_.prerequisites[i];
      if (graph_.complete[needed.entry()] != earlier) continue;
      const std::string name = "rank " + std::to_string(entry.rank) + "'s " +
                               Describe(program_, program_.entries[needed.entry()]);
      switch (needed.edge()) {
        case EdgeKind::kHost:
          return "which the host issues only after " + name;
        case EdgeKind::kStream:
          return "which is behind " + name + " on the stream";
        case EdgeKind::kEvent:
          return "which waits for " + name;
        case EdgeKind::kCommunicator:
          return "which is behind " + name + " on the communicator";
        case EdgeKind::kSync:
          return "which returns only after " + name;
        default:
          return "which comes after " + name;
      }
    }
    const std::string name = Name(earlier);
    if (profile_ == Profile::kE2s)
      return "which starts only when the device has completed " + name + ", issued before it";
    return "which starts only after " + name + ", issued before it on the device";
  }

  const Program& program_;
  const WaitGraph& graph_;
  Profile profile_;
};

}  // namespace

std::string ExplainCycle(const Program& program, const WaitGraph& graph, Profile profile,
                         const std::vector<uint32_t>& cycle) {
  const Explainer explainer(program, graph, profile);
  // From an operation backwards in time, if there is one.
  size_t from = 0;
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (graph.what[cycle[i]] < 0) from = i;
  }
  std::string text = explainer.Name(cycle[from]);
  for (size_t i = 0; i < cycle.size(); ++i) {
    const uint32_t later = cycle[(from + cycle.size() - i) % cycle.size()];
    const uint32_t earlier = cycle[(from + 2 * cycle.size() - i - 1) % cycle.size()];
    text += ", " + explainer.Step(later, earlier);
  }
  return text + ": a circle";
}

std::string ExplainPath(const Program& program, const WaitGraph& graph,
                        const std::vector<uint32_t>& path) {
  const Explainer explainer(program, graph, Profile::kE0);
  std::string text;
  int64_t last = -1;
  int32_t rank = -1;
  for (const uint32_t node : path) {
    if (graph.what[node] < 0 || graph.what[node] == last) continue;
    last = graph.what[node];
    const Entry& entry = At(program.entries, last);
    if (!text.empty()) text += " -> ";
    text += entry.rank == rank ? Describe(program, entry) : explainer.Name(node);
    rank = entry.rank;
  }
  return text;
}

}  // namespace shardproof::graph
