#include "conformance/checks/graph/implied_edge.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/program/describe.h"

namespace shardproof {

namespace {

using namespace graph;

constexpr size_t kPathsMax = 1;      // printed
constexpr size_t kAccessesMax = 16;  // of a block on each side, when pairs are tried

bool IsSync(const Event& event) {
  return event.kind == EventKind::kWait || event.kind == EventKind::kEventSync ||
         event.kind == EventKind::kStreamSync || event.kind == EventKind::kDeviceSync;
}

uint32_t EntryAt(const Program& program, const SyncEdge& edge) {
  const auto rank = static_cast<size_t>(edge.rank);
  if (edge.rank < 0 || rank + 1 >= program.first_entry.size())
    throw std::invalid_argument("no such rank");
  for (uint32_t e = program.first_entry[rank]; e < program.first_entry[rank + 1]; ++e) {
    if (program.entries[e].event == edge.event && !program.entries[e].joint()) return e;
  }
  throw std::invalid_argument("rank " + std::to_string(edge.rank) + ", event " +
                              std::to_string(edge.event) + ": no synchronisation");
}

std::vector<uint32_t> WaitsFor(const Program& program, uint32_t sync) {
  std::vector<uint32_t> waited;
  const Slice slice = program.entries[sync].prerequisites;
  for (uint32_t i = slice.begin; i < slice.end; ++i) {
    const EdgeKind kind = program.prerequisites[i].edge();
    if (kind == EdgeKind::kEvent || kind == EdgeKind::kSync)
      waited.push_back(program.prerequisites[i].entry());
  }
  return waited;
}

// The judgement of one edge: program has it, without has not; entries are the same.
class Judge {
 public:
  Judge(const Program& program, const Program& without, uint32_t sync)
      : program_(program), without_(without), sync_(sync), before_(program), after_(without) {}

  void Run(EdgeVerdict& verdict) {
    const RacesFound found = FindRaces(without_, after_, {});
    if (!found.races.empty() && !FindRaces(program_, before_, {}).races.empty()) {
      verdict.proof = "the run has races with it, too";
      return;
    }
    if (!found.races.empty()) {
      CheckResult result;
      ReportRaces(without_, found, result);
      verdict.findings = std::move(result.findings);
      verdict.kind = EdgeVerdict::Kind::kNeeded;
      verdict.proof = "without it: " + verdict.findings[0].message;
      return;
    }
    if (Implied(verdict)) return;
    Pairs(verdict);
  }

 private:
  // What it waits for precedes it, or everything right behind it, without it.
  bool Implied(EdgeVerdict& verdict) {
    std::vector<uint32_t> followers;
    for (uint32_t e = sync_ + 1; e < program_.entries.size(); ++e) {
      const Slice slice = program_.entries[e].prerequisites;
      for (uint32_t i = slice.begin; i < slice.end; ++i) {
        if (program_.prerequisites[i].entry() == sync_) followers.push_back(e);
      }
    }
    std::string paths;
    size_t printed = 0;
    for (const uint32_t waited : WaitsFor(program_, sync_)) {
      if (after_.Precedes(waited, sync_)) {
        if (printed++ < kPathsMax)
          paths += "; " + ExplainPath(without_, after_.graph(), after_.Path(waited, sync_));
        continue;
      }
      for (const uint32_t follower : followers) {
        if (!after_.Precedes(waited, follower)) return false;
        if (printed++ < kPathsMax)
          paths += "; " + ExplainPath(without_, after_.graph(), after_.Path(waited, follower));
      }
      if (followers.empty()) paths += "; nothing follows it";
    }
    verdict.kind = EdgeVerdict::Kind::kImplied;
    verdict.proof = "what it waits for precedes all that follows it anyhow: " +
                    paths.substr(std::min<size_t>(2, paths.size()));
    return true;
  }

  // By entry: is it over before what the edge waits for is; does it start after the edge?
  void FindSides(std::vector<bool>& upstream, std::vector<bool>& downstream) {
    const WaitGraph& graph = before_.graph();
    const TopologicalOrder order = Sort(graph.graph, graph.never);
    std::vector<bool> from(graph.graph.nodes(), false), to(graph.graph.nodes(), false);
    from[graph.complete[sync_]] = true;
    for (const uint32_t waited : WaitsFor(program_, sync_)) to[graph.complete[waited]] = true;
    for (const uint32_t v : order.order) {
      for (const uint32_t* next = graph.graph.begin(v); from[v] && next != graph.graph.end(v);
           ++next)
        from[*next] = true;
    }
    for (size_t i = order.order.size(); i-- > 0;) {
      const uint32_t v = order.order[i];
      for (const uint32_t* next = graph.graph.begin(v); !to[v] && next != graph.graph.end(v);
           ++next)
        to[v] = to[*next];
    }
    upstream.resize(program_.entries.size());
    downstream.resize(program_.entries.size());
    for (uint32_t e = 0; e < program_.entries.size(); ++e) {
      upstream[e] = to[graph.complete[e]];
      downstream[e] = from[graph.start[e]];
    }
  }

  struct Sides {
    std::vector<std::pair<uint32_t, Range>> upstream, downstream;
  };

  void Pairs(EdgeVerdict& verdict) {
    std::vector<bool> upstream, downstream;
    FindSides(upstream, downstream);
    std::map<std::pair<int32_t, int32_t>, Sides> blocks;  // by rank and allocation
    for (uint32_t e = 0; e < program_.entries.size(); ++e) {
      if (!upstream[e] && !downstream[e]) continue;
      for (const Range& range : RangesOf(program_, program_.entries[e])) {
        Sides& sides = blocks[{program_.entries[e].rank, range.alloc}];
        if (upstream[e]) sides.upstream.emplace_back(e, range);
        if (downstream[e] && sides.downstream.size() < kAccessesMax)
          sides.downstream.emplace_back(e, range);
      }
    }
    int64_t pairs = 0;
    std::string paths;
    for (const auto& [where, sides] : blocks) {
      const size_t first =
          sides.upstream.size() > kAccessesMax ? sides.upstream.size() - kAccessesMax : 0;
      for (size_t i = first; i < sides.upstream.size(); ++i) {
        for (const auto& [b, y] : sides.downstream) {
          const auto& [a, x] = sides.upstream[i];
          const bool overlap = x.offset < y.offset + y.length && y.offset < x.offset + x.length;
          if (!overlap || ((x.access | y.access) & kWrite) == 0) continue;
          if (static_cast<size_t>(pairs++) < kPathsMax)
            paths += "; " + ExplainPath(without_, after_.graph(), after_.Path(a, b));
        }
      }
    }
    verdict.kind = pairs == 0 ? EdgeVerdict::Kind::kUnused : EdgeVerdict::Kind::kCovered;
    verdict.proof =
        pairs == 0
            ? "no two conflicting accesses are ordered through it"
            : "the conflicting accesses that it orders are ordered without it: " + paths.substr(2);
    if (static_cast<size_t>(pairs) > kPathsMax)
      verdict.proof += "; and " + std::to_string(pairs - static_cast<int64_t>(kPathsMax)) + " more";
  }

  const Program& program_;
  const Program& without_;
  uint32_t sync_;
  MustOrder before_, after_;
};

}  // namespace

std::vector<SyncEdge> FindSyncEdges(const std::vector<Trace>& traces) {
  const Program program = Lower(traces);
  std::vector<SyncEdge> edges;
  for (uint32_t e = 0; e < program.entries.size(); ++e) {
    const Entry& entry = program.entries[e];
    if (entry.joint() || !IsSync(program.event(entry)) || WaitsFor(program, e).empty()) continue;
    edges.push_back({entry.rank, static_cast<int64_t>(entry.event)});
  }
  return edges;
}

EdgeVerdict JudgeEdge(const std::vector<Trace>& traces, const SyncEdge& edge, const Names& names) {
  Program program = Lower(traces);
  program.names = names;
  LowerOptions options;
  options.drop_rank = edge.rank;
  options.drop_event = edge.event;
  Program without = Lower(traces, options);
  without.names = names;
  const uint32_t sync = EntryAt(program, edge);
  const Entry& entry = program.entries[sync];
  if (!IsSync(program.event(entry))) throw std::invalid_argument("no synchronisation");
  EdgeVerdict verdict;
  verdict.edge = "rank " + std::to_string(edge.rank) + ": " + Describe(program, entry) +
                 " (event " + std::to_string(edge.event) + ")";
  if (!Sound(program)) {
    verdict.proof = "the run does not match or can hang";
    return verdict;
  }
  Judge(program, without, sync).Run(verdict);
  return verdict;
}

}  // namespace shardproof
