#include "conformance/checks/schedule/ordering.h"

#include <stdexcept>
#include <vector>

#include "conformance/checks/program/describe.h"

namespace shardproof::schedule {

using graph::Entry;

Ordering::Ordering(const Analysis& a) : a_(a) {
  for (const Trace& trace : a.traces()) {
    const Provides& has = trace.provides;
    if (trace.end != TraceEnd::kComplete) why_ = "the run was ended early";
    if (!has.collectives || !has.sync || !has.work)
      why_ = "the traces do not provide all work and synchronisation";
  }
  if (!why_.empty()) return;
  try {
    program_ = std::make_unique<graph::Program>(graph::Lower(a.traces()));
  } catch (const std::invalid_argument& error) {
    why_ = error.what();
    return;
  }
  if (!program_->unordered_threads.empty()) why_ = program_->unordered_threads;
  if (!program_->inconsistent_groups.empty()) why_ = program_->inconsistent_groups;
  if (!why_.empty()) return;
  graph::GraphOptions options;
  options.separate_completion = true;
  graph_ = graph::BuildGraph(*program_, options);
  order_ = graph::Sort(graph_.graph, graph_.never);
  if (!order_.complete()) why_ = "the run can hang, so nothing is ordered for sure";
  reachability_ = std::make_unique<graph::Reachability>(graph_.graph, order_);
  for (uint32_t e = 0; e < program_->entries.size(); ++e) {
    const Entry& entry = program_->entries[e];
    entries_[{entry.rank, entry.event}] = e;
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      entries_[{entry.rank, program_->parts[p].event}] = e;
    }
  }
}

uint32_t Ordering::EntryAt(int32_t rank, int64_t event) const {
  const auto at = entries_.find({rank, event});
  return at == entries_.end() ? graph::kNone : at->second;
}

bool Ordering::Precedes(int32_t rank, int64_t first, int64_t second) {
  const uint32_t a = EntryAt(rank, first), b = EntryAt(rank, second);
  if (a == graph::kNone || b == graph::kNone || a == b) return false;
  // Local work is one node: from it to itself there is no path.
  return reachability_->Reaches(graph_.complete[a], graph_.start[b]);
}

std::string Ordering::Name(uint32_t node) const {
  if (graph_.what[node] < 0)
    return graph::DescribeOperation(*program_, static_cast<uint32_t>(~graph_.what[node]));
  const Entry& entry = program_->entries[static_cast<size_t>(graph_.what[node])];
  return "rank " + std::to_string(entry.rank) + "'s " + a_.Describe(entry.rank, entry.event);
}

std::string Ordering::Path(int32_t rank, int64_t first, int64_t second) {
  constexpr size_t kSteps = 6;
  const uint32_t a = EntryAt(rank, first), b = EntryAt(rank, second);
  if (a == graph::kNone || b == graph::kNone) return "";
  const std::vector<uint32_t> path =
      graph::FindPath(graph_.graph, order_, graph_.complete[a], graph_.start[b]);
  std::string text, last;
  size_t steps = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    const std::string name = Name(path[i]);
    if (name == last) continue;
    last = name;
    if (++steps > kSteps && i + 1 < path.size()) continue;
    text += (text.empty() ? "" : steps > kSteps + 1 ? ", ..., then " : ", then ") + name;
  }
  return text;
}

}  // namespace shardproof::schedule
