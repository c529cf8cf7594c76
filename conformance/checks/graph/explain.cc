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

  std::string DescribeEntry(const Entry& entry) const { return Describe(program_, entry); }
  // An entry whose rank the line has named.
  std::string NameHere(const Entry& entry) const {
    return Describe(program_, entry) + " (event " + std::to_string(entry.event) + ")";
  }

  // How a rank gets from one entry back to one that must come first. kOther: by the profile.
  struct Step {
    enum class Kind : uint8_t { kHost, kStream, kEvent, kCommunicator, kSync, kAfter, kOther };
    Kind kind = Kind::kOther;
    const Entry* earlier = nullptr;
  };

  Step StepTo(uint32_t later, uint32_t earlier) const {
    using Kind = Step::Kind;
    const Entry& entry = *EntryOf(later);
    for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
      const Prerequisite& needed = program_.prerequisites[i];
      if (graph_.complete[needed.entry()] != earlier) continue;
      static constexpr Kind kKinds[] = {Kind::kHost,         Kind::kStream, Kind::kEvent,
                                        Kind::kCommunicator, Kind::kSync,   Kind::kAfter};
      return {kKinds[static_cast<size_t>(needed.edge())], &program_.entries[needed.entry()]};
    }
    return {Kind::kOther, EntryOf(earlier)};
  }

  std::string Text(const Step& step) const {
    using Kind = Step::Kind;
    const std::string name = NameHere(*step.earlier);
    switch (step.kind) {
      case Kind::kHost:
        return "which the host issues only after " + name;
      case Kind::kStream:
        return "which is behind " + name + " on the stream";
      case Kind::kEvent:
        return "which waits for " + name;
      case Kind::kCommunicator:
        return "which is behind " + name + " on the communicator";
      case Kind::kSync:
        return "which returns only after " + name;
      case Kind::kAfter:
        return "which comes after " + name;
      default:
        break;
    }
    if (profile_ == Profile::kE2s)
      return "which starts only when the device has completed " + name + ", issued before it";
    return "which starts only after " + name + ", issued before it on the device";
  }

  // Whom an operation waits for. next: null if that is another operation.
  std::string Waits(uint32_t node, const Entry* next) const {
    if (next == nullptr) return "which waits for another operation";
    const std::string rank = "rank " + std::to_string(next->rank);
    return Issued(static_cast<uint32_t>(~graph_.what[node]), *next)
               ? "which waits for " + rank
               : "which waits for what " + rank + " has never issued";
  }

  // Has the entry a part in the operation? If not, its rank never issued one.
  bool Issued(uint32_t operation, const Entry& entry) const {
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      if (graph_.joint[program_.operation(program_.parts[p])] == graph_.joint[operation])
        return true;
    }
    return false;
  }

 private:
  const Program& program_;
  const WaitGraph& graph_;
  Profile profile_;
};

}  // namespace

namespace {

// One line for each rank that the circle visits: where it begins there, what that is behind, and
// whom the last of these waits for. Steps of one kind are one.
class Ring {
 public:
  explicit Ring(const Explainer& explainer) : explainer_(explainer) {}

  void Visit(uint32_t later, uint32_t node) {
    const Entry& entry = *explainer_.EntryOf(node);
    if (lines_.empty() || lines_.back().closed) {
      lines_.push_back({&entry, {}, "", false});
      return;
    }
    if (&entry == explainer_.EntryOf(later)) return;  // its start, after its completion
    Add(explainer_.StepTo(later, node));
  }

  void Add(const Explainer::Step& step) {
    Line& line = lines_.back();
    const bool same =
        !line.steps.empty() && line.steps.back().kind == step.kind &&
        (step.kind == Explainer::Step::Kind::kStream || step.kind == Explainer::Step::Kind::kHost);
    if (same) line.steps.pop_back();
    line.steps.push_back(step);
  }

  void Close(const std::string& waits) {
    if (lines_.empty() || lines_.back().closed) return;
    lines_.back().waits = waits;
    lines_.back().closed = true;
  }

  Circle Done() const {
    Circle circle;
    for (const Line& line : lines_) {
      const std::string rank = "rank " + std::to_string(line.first->rank);
      circle.lines += (circle.lines.empty() ? "" : "\n") + rank + ", event " +
                      std::to_string(line.first->event) + ": " +
                      explainer_.DescribeEntry(*line.first);
      for (const Explainer::Step& step : line.steps) circle.lines += ", " + explainer_.Text(step);
      if (!line.waits.empty()) circle.lines += ", " + line.waits;
      const bool first = &line == &lines_.front(),
                 second = lines_.size() > 1 && &line == &lines_[1];
      circle.ranks += (first ? "" : second ? " waits for " : ", which waits for ") + rank;
    }
    if (lines_.empty()) return circle;
    circle.ranks += lines_.size() == 1
                        ? " waits for itself"
                        : ", which waits for rank " + std::to_string(lines_.front().first->rank);
    return circle;
  }

 private:
  struct Line {
    const Entry* first;
    std::vector<Explainer::Step> steps;
    std::string waits;
    bool closed;
  };
  const Explainer& explainer_;
  std::vector<Line> lines_;
};

}  // namespace

Circle ExplainCycle(const Program& program, const WaitGraph& graph, Profile profile,
                    const std::vector<uint32_t>& cycle) {
  const Explainer explainer(program, graph, profile);
  // From an operation backwards in time, if there is one.
  const size_t n = cycle.size();
  size_t from = 0;
  for (size_t i = 0; i < n; ++i) {
    if (graph.what[cycle[i]] < 0) from = i;
  }
  const auto at = [&](size_t i) { return cycle[(from + 2 * n - i) % n]; };
  Ring ring(explainer);
  for (size_t i = 0; i <= n; ++i) {
    const uint32_t node = at(i), earlier = at(i + 1);
    const Entry* entry = explainer.EntryOf(node);
    const Entry* next = explainer.EntryOf(earlier);
    if (entry == nullptr) {
      ring.Close(explainer.Waits(node, next));
    } else if (i < n) {
      ring.Visit(at(i + n - 1), node);
      // A kernel's completion is its operation's.
      const Explainer::Step kernel = explainer.StepTo(node, earlier);
      if (next == nullptr && kernel.earlier != nullptr) ring.Add(kernel);
      if (next != nullptr && next->rank != entry->rank)
        ring.Close("which waits for rank " + std::to_string(next->rank));
    }
  }
  return ring.Done();
}

namespace {

// "a -> b -> c"; of a long way both ends.
std::string WithoutMiddle(const std::vector<std::string>& steps) {
  constexpr size_t kEnd = 5;
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool left_out = steps.size() > 2 * kEnd + 1 && i >= kEnd && i + kEnd < steps.size();
    if (left_out && i > kEnd) continue;
    text += i == 0 ? "" : " -> ";
    text += left_out ? std::to_string(steps.size() - 2 * kEnd) + " more steps" : steps[i];
  }
  return text;
}

}  // namespace

std::string ExplainPath(const Program& program, const WaitGraph& graph,
                        const std::vector<uint32_t>& path) {
  const Explainer explainer(program, graph, Profile::kE0);
  std::vector<uint32_t> nodes;  // one for each entry
  for (const uint32_t node : path) {
    const bool again = !nodes.empty() && graph.what[node] == graph.what[nodes.back()];
    if (graph.what[node] >= 0 && !again) nodes.push_back(node);
  }
  const auto entry = [&](size_t i) -> const Entry& { return *explainer.EntryOf(nodes[i]); };
  const auto same_stream = [&](size_t i, size_t j) {
    return entry(i).rank == entry(j).rank && entry(i).stream == entry(j).stream;
  };
  const auto between = [&](size_t i) {
    return i > 0 && i + 1 < nodes.size() && entry(i).stream >= 0 && same_stream(i - 1, i) &&
           same_stream(i, i + 1);
  };
  std::vector<std::string> steps;
  for (size_t i = 0; i < nodes.size(); ++i) {
    size_t last = i;  // of those that follow each other on one stream, without its end
    while (between(i) && between(last + 1)) ++last;
    if (last > i) {
      steps.push_back(std::to_string(last - i + 1) + " more on this stream");
      i = last;
      continue;
    }
    const bool known = i > 0 && entry(i - 1).rank == entry(i).rank;
    steps.push_back(known ? Describe(program, entry(i)) : explainer.Name(nodes[i]));
  }
  return WithoutMiddle(steps);
}

}  // namespace shardproof::graph
