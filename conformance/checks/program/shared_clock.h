// shared_clock.h: what of each stream and host thread precedes a moment, where they are many?
//
// A vector clock in a tree whose parts are shared by all clocks that have them in common: a copy
// costs one pointer, setting an entry and joining two clocks cost what they differ in. With 60,000
// threads that hand work to one another in turn, plain vectors hold 3,600,000,000 entries.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardproof::graph {

constexpr int kClockBits = 4;  // of a component's number, by level

// Of the tree: 16 parts, or at the bottom 16 times.
template <int kLevel>
struct ClockNode {
  std::array<std::shared_ptr<ClockNode<kLevel - 1>>, size_t{1} << kClockBits> parts;
};
template <>
struct ClockNode<0> {
  std::array<uint32_t, size_t{1} << kClockBits> times{};
};

// For numbers of components below 16 to the power of kLevels.
template <int kLevels>
class SharedClock {
 public:
  // 0 where nothing is known of the component.
  uint32_t Of(uint32_t component) const { return Get(root_.get(), component); }
  void Set(uint32_t component, uint32_t time) { Put(root_, component, time); }
  // The later time of each component.
  void Join(const SharedClock& other) { Merge(root_, other.root_); }
  bool Empty() const { return root_ == nullptr; }

 private:
  template <int kLevel>
  using Part = std::shared_ptr<ClockNode<kLevel>>;

  static size_t Place(uint32_t component, int level) {
    return (component >> (level * kClockBits)) & ((uint32_t{1} << kClockBits) - 1);
  }

  template <int kLevel>
  static uint32_t Get(const ClockNode<kLevel>* node, uint32_t component) {
    if (node == nullptr) return 0;
    if constexpr (kLevel == 0) {
      return node->times[Place(component, 0)];
    } else {
      return Get(node->parts[Place(component, kLevel)].get(), component);
    }
  }

  // Ours alone, to be changed.
  template <int kLevel>
  static ClockNode<kLevel>& Own(Part<kLevel>& node) {
    if (node == nullptr) {
      node = std::make_shared<ClockNode<kLevel>>();
    } else if (node.use_count() > 1) {
      node = std::make_shared<ClockNode<kLevel>>(*node);
    }
    return *node;
  }

  template <int kLevel>
  static void Put(Part<kLevel>& node, uint32_t component, uint32_t time) {
    ClockNode<kLevel>& own = Own(node);
    if constexpr (kLevel == 0) {
      own.times[Place(component, 0)] = time;
    } else {
      Put(own.parts[Place(component, kLevel)], component, time);
    }
  }

  template <int kLevel>
  static void Merge(Part<kLevel>& node, const Part<kLevel>& other) {
    if (other == nullptr || node == other) return;
    if (node == nullptr) {
      node = other;
      return;
    }
    ClockNode<kLevel>& own = Own(node);
    if constexpr (kLevel == 0) {
      for (size_t i = 0; i < own.times.size(); ++i)
        own.times[i] = std::max(own.times[i], other->times[i]);
    } else {
      for (size_t i = 0; i < own.parts.size(); ++i) Merge(own.parts[i], other->parts[i]);
    }
  }

  Part<kLevels - 1> root_;
};

}  // namespace shardproof::graph
