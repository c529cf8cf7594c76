#include "conformance/checks/program/reach_labels.h"

#include <algorithm>
#include <utility>

namespace shardproof::graph {

ReachLabels::ReachLabels(const Digraph& graph, const TopologicalOrder& order)
    : walks_{LabelsOf(graph, order, Walk::kForwards), LabelsOf(graph, order, Walk::kBackwards)} {}

std::vector<ReachLabels::Label> ReachLabels::LabelsOf(const Digraph& graph,
                                                      const TopologicalOrder& order, Walk walk) {
  struct Frame {
    uint32_t node, taken;  // how many of its successors
  };
  std::vector<Label> labels(graph.nodes());
  std::vector<bool> opened(graph.nodes(), false);
  std::vector<Frame> frames;
  uint32_t place = 0;
  const auto open = [&](uint32_t v) {
    if (opened[v] || order.position[v] == kUnplaced) return;
    opened[v] = true;
    frames.push_back({v, 0});
  };
  const auto close = [&](uint32_t v) {
    Label& label = labels[v];
    label.least = label.place = place++;
    for (const uint32_t* next = graph.begin(v); next != graph.end(v); ++next)
      label.least = std::min(label.least, labels[*next].least);
  };
  const auto visit = [&](uint32_t root) {
    open(root);
    while (!frames.empty()) {
      Frame& top = frames.back();
      const auto all = static_cast<uint32_t>(graph.end(top.node) - graph.begin(top.node));
      if (top.taken == all) {
        close(top.node);
        frames.pop_back();
        continue;
      }
      const uint32_t n = top.taken++;
      open(graph.begin(top.node)[walk == Walk::kForwards ? n : all - 1 - n]);
    }
  };
  // In topological order roots come before what they reach; from the other end nothing is a root,
  // so the second walk goes over the roots alone, the last first.
  if (walk == Walk::kForwards) {
    for (const uint32_t v : order.order) visit(v);
    return labels;
  }
  std::vector<bool> root(graph.nodes(), true);
  for (const uint32_t v : order.order) {
    for (const uint32_t* next = graph.begin(v); next != graph.end(v); ++next) root[*next] = false;
  }
  for (auto v = order.order.rbegin(); v != order.order.rend(); ++v) {
    if (root[*v]) visit(*v);
  }
  return labels;
}

}  // namespace shardproof::graph
