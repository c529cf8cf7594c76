#include "conformance/checks/program/order.h"

namespace shardproof::graph {

namespace {

// Each kernel completes apart, so that a path from its completion says what waited for this rank's.
GraphOptions MayWait() {
  GraphOptions options;
  options.separate_completion = true;
  return options;
}

GraphOptions MustImply(bool communicator_order) {
  GraphOptions options;
  options.profile = Profile::kEager;
  options.communicator_order = communicator_order;
  return options;
}

}  // namespace

void Order::Build() {
  if (reachability_ != nullptr) return;
  graph_ = BuildGraph(program_, options_);
  // Close to the order of issue: what a search passes on its way to a later entry is little.
  std::vector<uint32_t> issued_before(graph_.graph.nodes(), kUnplaced);
  for (uint32_t e = 1; e < program_.entries.size(); ++e) {
    if (program_.entries[e].rank == program_.entries[e - 1].rank)
      issued_before[graph_.start[e]] = graph_.start[e - 1];
  }
  order_ = SortAsWished(graph_.graph, graph_.never, issued_before);
  reachability_ = std::make_unique<Reachability>(graph_.graph, order_);
}

const WaitGraph& Order::graph() {
  Build();
  return graph_;
}

bool Order::HasCycle() {
  Build();
  return !order_.complete();
}

bool Order::Reaches(uint32_t from, uint32_t to) {
  Build();
  return reachability_->Reaches(from, to);
}

bool Order::Precedes(uint32_t a, uint32_t b) {
  Build();
  // Local work is one node: from it to itself there is no path.
  return reachability_->Reaches(graph_.complete[a], graph_.start[b]);
}

std::vector<uint32_t> Order::Path(uint32_t a, uint32_t b) {
  Build();
  return FindPath(graph_.graph, order_, graph_.complete[a], graph_.start[b]);
}

uint32_t Order::StartPlace(uint32_t e) {
  Build();
  return order_.position[graph_.start[e]];
}

MayOrder::MayOrder(const Program& program) : Order(program, MayWait()) {}

bool MayOrder::CompletesWithout(uint32_t a, uint32_t b) {
  const uint32_t done = graph().complete[a];
  const Entry& entry = program_.entries[b];
  if (!entry.joint()) return !Reaches(graph().complete[b], done);
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    if (Reaches(graph().joint[program_.operation(program_.parts[p])], done)) return false;
  }
  return true;
}

MustOrder::MustOrder(const Program& program, bool communicator_order)
    : Order(program, MustImply(communicator_order)) {}

}  // namespace shardproof::graph
