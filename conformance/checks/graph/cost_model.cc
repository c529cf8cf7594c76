#include "conformance/checks/graph/cost_model.h"

#include <algorithm>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/wait_graph.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

double Bytes(const Trace& trace, const Event& event) {
  double bytes = 0;
  for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i)
    bytes += static_cast<double>(trace.ranges[i].length);
  return bytes;
}

double DurationOf(const CostModel& model, const Trace& trace, const Event& event) {
  if (model.duration_us) return model.duration_us(trace, event);
  switch (event.kind) {
    case EventKind::kCollective:
      return model.latency_us + Bytes(trace, event) / model.wire_bytes_per_us;
    case EventKind::kCompute:
    case EventKind::kLaunch:
    case EventKind::kCopy:
      return model.launch_us + Bytes(trace, event) / model.memory_bytes_per_us;
    default:
      return 0;
  }
}

using Interval = std::pair<double, double>;

// Sorted and without overlaps.
std::vector<Interval> Union(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const Interval& one : intervals) {
    if (!result.empty() && one.first <= result.back().second) {
      result.back().second = std::max(result.back().second, one.second);
    } else if (one.second > one.first) {
      result.push_back(one);
    }
  }
  return result;
}

double Length(const std::vector<Interval>& intervals) {
  double length = 0;
  for (const Interval& one : intervals) length += one.second - one.first;
  return length;
}

double CommonLength(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double length = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return length;
}

}  // namespace

CostedRun Simulate(const Program& program, const CostModel& model) {
  const WaitGraph graph = BuildGraph(program, {});
  const TopologicalOrder order = Sort(graph.graph, graph.never);
  std::vector<double> begin(graph.graph.nodes(), 0), length(graph.graph.nodes(), 0);
  for (uint32_t e = 0; e < program.entries.size(); ++e) {
    const Entry& entry = program.entries[e];
    if (!entry.joint())
      length[graph.start[e]] = DurationOf(model, program.trace(entry.rank), program.event(entry));
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      double& joint = length[graph.joint[program.operation(program.parts[p])]];
      joint = std::max(
          joint, DurationOf(model, program.trace(entry.rank), program.event(program.parts[p])));
    }
  }
  CostedRun run;
  for (const uint32_t v : order.order) {
    const double end = begin[v] + length[v];
    run.total_us = std::max(run.total_us, end);
    for (const uint32_t* to = graph.graph.begin(v); to != graph.graph.end(v); ++to)
      begin[*to] = std::max(begin[*to], end);
  }
  const size_t ranks = program.first_entry.size() - 1;
  std::vector<std::vector<Interval>> compute(ranks), communication(ranks);
  for (uint32_t e = 0; e < program.entries.size(); ++e) {
    const Entry& entry = program.entries[e];
    const uint32_t last = graph.complete[e];
    const Interval interval{begin[graph.start[e]], begin[last] + length[last]};
    if (entry.kind == EntryKind::kLocal) At(compute, entry.rank).push_back(interval);
    if (entry.kind == EntryKind::kKernel) At(communication, entry.rank).push_back(interval);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    const std::vector<Interval> busy = Union(compute[rank]), wire = Union(communication[rank]);
    run.ranks.push_back({Length(busy), Length(wire), Length(wire) - CommonLength(busy, wire)});
  }
  return run;
}

}  // namespace shardproof::graph
