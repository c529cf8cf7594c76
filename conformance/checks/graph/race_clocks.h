// race_clocks.h: what precedes each entry of a rank, by stream and host thread?
//
// Two ways to hold it: a row of times an entry, for few components, and trees that share what they
// have in common, for many: with 100,000 streams rows hold 10,000,000,000 times.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "conformance/checks/program/shared_clock.h"

namespace shardproof::graph {

// Of an entry: the time at which each component was last over before it.
class RowClock {
 public:
  explicit RowClock(uint32_t* times) : times_(times) {}
  uint32_t operator[](uint32_t component) const { return times_[component]; }
  void Raise(uint32_t component, uint32_t time) {
    times_[component] = std::max(times_[component], time);
  }

 private:
  uint32_t* times_;
};

class RowClocks {
 public:
  // uses: by entry, how often it will be joined.
  RowClocks(const std::vector<uint32_t>& uses, size_t components)
      : width_(components), times_(uses.size() * components) {}
  RowClock Of(uint32_t entry) { return RowClock(Row(entry)); }
  void Join(uint32_t entry, uint32_t needed) {
    uint32_t* mine = Row(entry);
    const uint32_t* other = Row(needed);
    for (size_t c = 0; c < width_; ++c) mine[c] = std::max(mine[c], other[c]);
  }
  void Done(uint32_t) {}

 private:
  uint32_t* Row(uint32_t entry) { return times_.data() + size_t{entry} * width_; }
  size_t width_;
  std::vector<uint32_t> times_;
};

class TreeClock {
 public:
  using Tree = SharedClock<6>;
  explicit TreeClock(Tree& tree) : tree_(tree) {}
  uint32_t operator[](uint32_t component) const { return tree_.Of(component); }
  void Raise(uint32_t component, uint32_t time) {
    if (tree_.Of(component) < time) tree_.Set(component, time);
  }

 private:
  Tree& tree_;
};

class TreeClocks {
 public:
  TreeClocks(std::vector<uint32_t> uses, size_t) : uses_(std::move(uses)), trees_(uses_.size()) {}
  TreeClock Of(uint32_t entry) { return TreeClock(trees_[entry]); }
  // What nobody will join any more goes: the last one to join takes it.
  void Join(uint32_t entry, uint32_t needed) {
    const bool last = --uses_[needed] == 0;
    if (last && trees_[entry].Empty()) {
      trees_[entry] = std::move(trees_[needed]);
    } else {
      trees_[entry].Join(trees_[needed]);
    }
    if (last) trees_[needed] = {};
  }
  // The entry's clock is as it will be.
  void Done(uint32_t entry) {
    if (uses_[entry] == 0) trees_[entry] = {};
  }

 private:
  std::vector<uint32_t> uses_;
  std::vector<TreeClock::Tree> trees_;
};

}  // namespace shardproof::graph
