// reachability.h: is there a path between two nodes, asked many times?
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/reach_labels.h"

namespace shardproof::graph {

// Searches, without allocating for each question. Once searches have passed as many nodes as the
// graph has, labels cut them short: else each pair that races costs what lies between the two.
class Reachability {
 public:
  Reachability(const Digraph& graph, const TopologicalOrder& order)
      : graph_(graph), order_(order), seen_(graph.nodes(), 0) {}
  // A path of at least one edge.
  bool Reaches(uint32_t from, uint32_t to);
  int64_t passed() const { return passed_; }  // nodes, by all searches

 private:
  const Digraph& graph_;
  const TopologicalOrder& order_;
  std::optional<ReachLabels> labels_;
  std::vector<uint32_t> seen_;
  std::vector<uint32_t> stack_;
  uint32_t round_ = 0;
  int64_t passed_ = 0;
};

}  // namespace shardproof::graph
