// reach_labels.h: between which nodes of a graph is there certainly no path?
//
// Two numbers a node and depth-first walk (GRAIL, Yildirim, Chaoji and Zaki, VLDB 2010): the node's
// place in postorder, and the least place of all that it reaches. What a node reaches lies within
// its interval; what lies outside needs no search. Two walks, the second with successors and roots
// in the opposite order, tell streams apart on both sides.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "conformance/checks/program/digraph.h"

namespace shardproof::graph {

class ReachLabels {
 public:
  ReachLabels(const Digraph& graph, const TopologicalOrder& order);
  // REQUIRES: both are placed. False: there is no path.
  bool MayReach(uint32_t from, uint32_t to) const {
    for (const std::vector<Label>& labels : walks_) {
      const Label &outer = labels[from], &inner = labels[to];
      if (inner.least < outer.least || inner.place > outer.place) return false;
    }
    return true;
  }

 private:
  struct Label {
    uint32_t least = kUnplaced, place = kUnplaced;
  };
  enum class Walk : uint8_t { kForwards, kBackwards };
  static std::vector<Label> LabelsOf(const Digraph& graph, const TopologicalOrder& order,
                                     Walk walk);

  std::array<std::vector<Label>, 2> walks_;
};

}  // namespace shardproof::graph
