#include "conformance/checks/graph/overlap.h"

#include <algorithm>

namespace shardproof::graph {

Concurrency::Concurrency(const Program& program) : program_(program) {
  GraphOptions options;
  options.separate_completion = true;
  graph_ = BuildGraph(program, options);
  order_ = Sort(graph_.graph, graph_.never);
  reachability_ = std::make_unique<Reachability>(graph_.graph, order_);
}

bool Concurrency::Precedes(uint32_t a, uint32_t b) {
  return reachability_->Reaches(graph_.complete[a], graph_.start[b]);
}

bool Concurrency::CompletesWithout(uint32_t a, uint32_t b) {
  const Entry& entry = program_.entries[b];
  if (!entry.joint()) return !reachability_->Reaches(graph_.complete[b], graph_.complete[a]);
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    if (reachability_->Reaches(graph_.joint[program_.operation(program_.parts[p])],
                               graph_.complete[a]))
      return false;
  }
  return true;
}

uint32_t Concurrency::EntryAt(int32_t rank, int64_t event) const {
  const auto first = program_.first_entry[static_cast<size_t>(rank)];
  const auto last = program_.first_entry[static_cast<size_t>(rank) + 1];
  for (uint32_t e = first; e < last; ++e) {
    const Entry& entry = program_.entries[e];
    if (!entry.joint() && entry.event == event) return e;
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      if (program_.parts[p].event == event) return e;
    }
  }
  return kNone;
}

}  // namespace shardproof::graph
