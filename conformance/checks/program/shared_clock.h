// shared_clock.h: how many uses of each host thread precede a moment, where threads are many?
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

class SharedClock {
 public:
  // 0 where nothing is known of the thread.
  uint32_t Of(uint16_t thread) const { return Get(root_.get(), thread); }
  void Set(uint16_t thread, uint32_t time) { Put(root_, thread, time); }
  // The later time of each thread.
  void Join(const SharedClock& other) { Merge(root_, other.root_); }

 private:
  static constexpr int kBits = 4;  // of a thread's number, by level
  static constexpr size_t kWidth = size_t{1} << kBits;

  template <int kLevel>
  struct Node {
    std::array<std::shared_ptr<Node<kLevel - 1>>, kWidth> parts;
  };

  static size_t Place(uint16_t thread, int level) {
    return (thread >> (level * kBits)) & (kWidth - 1);
  }

  template <int kLevel>
  static uint32_t Get(const Node<kLevel>* node, uint16_t thread) {
    if (node == nullptr) return 0;
    if constexpr (kLevel == 0) {
      return node->times[Place(thread, 0)];
    } else {
      return Get(node->parts[Place(thread, kLevel)].get(), thread);
    }
  }

  // Ours alone, to be changed.
  template <int kLevel>
  static Node<kLevel>& Own(std::shared_ptr<Node<kLevel>>& node) {
    if (node == nullptr) {
      node = std::make_shared<Node<kLevel>>();
    } else if (node.use_count() > 1) {
      node = std::make_shared<Node<kLevel>>(*node);
    }
    return *node;
  }

  template <int kLevel>
  static void Put(std::shared_ptr<Node<kLevel>>& node, uint16_t thread, uint32_t time) {
    Node<kLevel>& own = Own(node);
    if constexpr (kLevel == 0) {
      own.times[Place(thread, 0)] = time;
    } else {
      Put(own.parts[Place(thread, kLevel)], thread, time);
    }
  }

  template <int kLevel>
  static void Merge(std::shared_ptr<Node<kLevel>>& node,
                    const std::shared_ptr<Node<kLevel>>& other) {
    if (other == nullptr || node == other) return;
    if (node == nullptr) {
      node = other;
      return;
    }
    Node<kLevel>& own = Own(node);
    for (size_t i = 0; i < kWidth; ++i) {
      if constexpr (kLevel == 0) {
        own.times[i] = std::max(own.times[i], other->times[i]);
      } else {
        Merge(own.parts[i], other->parts[i]);
      }
    }
  }

  static constexpr int kTop = 16 / kBits - 1;
  std::shared_ptr<Node<kTop>> root_;
};

template <>
struct SharedClock::Node<0> {
  std::array<uint32_t, kWidth> times{};
};

}  // namespace shardproof::graph
