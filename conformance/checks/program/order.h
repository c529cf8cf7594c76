// order.h: is one piece of work over before another starts, under every timing?
//
// By happens-before, not by luck. There are two orders. What a machine MAY wait for holds on some
// machine, so what this order leaves apart can overlap on every one. What an operation MUST imply
// holds on every machine, so what this order leaves apart can race on some.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "conformance/checks/program/digraph.h"
#include "conformance/checks/program/program.h"
#include "conformance/checks/program/reachability.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::graph {

// Questions about entries of one program, of any ranks; the graph is built when first asked for.
class Order {
 public:
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  // Is a over before b starts? Answers are meant for graphs without a cycle.
  bool Precedes(uint32_t a, uint32_t b);
  bool Unordered(uint32_t a, uint32_t b) { return !Precedes(a, b) && !Precedes(b, a); }
  // The path that shows that a precedes b, as nodes of the graph; empty: none.
  std::vector<uint32_t> Path(uint32_t a, uint32_t b);
  // The place of e's start in one sequence of all starts and ends that agrees with every path: if a
  // precedes b, a's place is lower. Behind a cycle all places are the same.
  uint32_t StartPlace(uint32_t e);
  const WaitGraph& graph();
  bool HasCycle();

 protected:
  Order(const Program& program, const GraphOptions& options)
      : program_(program), options_(options) {}
  // Is there a path between these nodes of the graph?
  bool Reaches(uint32_t from, uint32_t to);

  const Program& program_;
  const GraphOptions options_;

 private:
  void Build();
  WaitGraph graph_;
  TopologicalOrder order_;
  std::unique_ptr<Reachability> reachability_;
};

// Everything that a machine may wait for, as in the deadlock check (E0).
class MayOrder : public Order {
 public:
  explicit MayOrder(const Program& program);
  // Can a complete although b never does?
  bool CompletesWithout(uint32_t a, uint32_t b);
};

// What streams, events and the host give, and what an operation's result implies about its peers.
class MustOrder : public Order {
 public:
  // communicator_order: count on kernels of one communicator to run one after the other, whatever
  // their streams. An implementation may do so; an engine should not rely on it.
  explicit MustOrder(const Program& program, bool communicator_order = false);
  bool communicator_order() const { return options_.communicator_order; }
};

}  // namespace shardproof::graph
