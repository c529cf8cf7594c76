// plan_operations.h: which operations does one microbatch run, in which order, and when do its
// values die?
//
// The liveness of values follows from the one list of its operations (microbatch_pass.h), as in
// the sequential schedule (program.h). Pure functions.
#pragma once
#include <vector>

#include "reference/core/operation.h"
#include "reference/plan/issue_order.h"

namespace reference {

struct ScheduleSettings {
  bool delay_wgrad = false, early_release = false;
  bool forward_only = false;       // eval: values die in forward
  std::vector<bool> recomputed{};  // by module: outputs are not kept (Recompute::on_demand)
};

// The operations of one schedule node.
struct PlannedNode {
  ScheduleNode node;
  std::vector<Operation> operations;

  // Communication nodes run on the a2a stream, everything else on compute.
  bool on_a2a() const {
    const bool of_layer = node.action == Action::kForward || node.action == Action::kBackward;
    return of_layer &&
           (node.layer_node == LayerNode::kDispatch || node.layer_node == LayerNode::kCombine);
  }
  // Delayed weight gradients stand outside the chain of their microbatch: the exchange that comes
  // next must not wait for them.
  bool chained() const { return node.action != Action::kWeightGrads; }
  bool backward() const { return node.side == Side::kBackward; }
};

// Forward, then (not in eval) backward. Nodes without operations are there too, empty. Throws
// std::logic_error naming an operation on the a2a stream that uses a parameter or its gradient.
std::vector<PlannedNode> PlanOperations(const spf_model& model, const ScheduleNodes& nodes,
                                        const ScheduleSettings& settings);

// By operation, in the order of nodes: what is freed after it, on its stream. All earlier users are
// ordered before: by the chain, and users outside the chain because they ran on the compute stream,
// where such a value is freed then.
std::vector<std::vector<ValueRef>> PlanDeaths(const std::vector<PlannedNode>& nodes,
                                              int32_t n_values);

}  // namespace reference
