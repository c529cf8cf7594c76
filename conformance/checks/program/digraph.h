// digraph.h: is a directed graph free of cycles, and if not, what is a short cycle that causes the
// others?
//
// Compact rows of successors, no recursion: millions of nodes are usual.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardproof::graph {

class Digraph {
 public:
  using Edge = std::pair<uint32_t, uint32_t>;  // from, to
  Digraph() = default;
  Digraph(uint32_t nodes, const std::vector<Edge>& edges);

  uint32_t nodes() const { return static_cast<uint32_t>(first_.size()) - 1; }
  size_t edges() const { return to_.size(); }
  const uint32_t* begin(uint32_t node) const { return to_.data() + first_[node]; }
  const uint32_t* end(uint32_t node) const { return to_.data() + first_[node + 1]; }

 private:
  std::vector<uint32_t> first_{0}, to_;
};

constexpr uint32_t kUnplaced = UINT32_MAX;

// Topological order. position[n] is kUnplaced for nodes on or behind a cycle, or on or behind a
// node of never.
struct TopologicalOrder {
  std::vector<uint32_t> order, position;
  bool complete() const { return order.size() == position.size(); }
};
TopologicalOrder Sort(const Digraph& graph, const std::vector<bool>& never);

// The same, close to an order that is wished for: a node comes after wished[node] (kUnplaced: none;
// no two have the same), unless nothing could go on otherwise. wished: by node, or empty.
TopologicalOrder SortAsWished(const Digraph& graph, const std::vector<bool>& never,
                              const std::vector<uint32_t>& wished);

// The shortest cycle through the first (lowest numbered) nodes of a strongly connected component
// that no other one leads into. Empty if the unplaced nodes have no cycle (all of them are behind
// never nodes).
std::vector<uint32_t> ShortCycle(const Digraph& graph, const TopologicalOrder& order);

// A shortest path from -> to, both included, among nodes at positions up to to's; empty: none.
std::vector<uint32_t> FindPath(const Digraph& graph, const TopologicalOrder& order, uint32_t from,
                               uint32_t to);

}  // namespace shardproof::graph
