// program.h: which operations are one microbatch, in which order, and when do its values die?
//
// The pass over one microbatch is a list of operations; each node's table says what it reads and
// writes. A value is allocated before the operation that first writes it, and freed after the last
// one that touches it before it is written again. That one rule covers eval (values die in
// forward), training (they live until backward) and recompute (they die in forward and are born
// again in backward).
#pragma once
#include <set>
#include <string>
#include <vector>

#include "reference/core/operation.h"

namespace reference {

// Forward only, as in eval.
std::vector<Operation> EvalOperations(const spf_program& program);

// What runs forward again in backward instead of being kept.
struct Recompute {
  // By module: nodes of one segment that follow each other run their forward again before the first
  // backward operation of them; -1: not. Empty: none.
  std::vector<int32_t> segment_of;
  // By module: its nodes run forward again one by one, each right before the first backward
  // operation that reads what it made. Empty: none.
  std::vector<bool> on_demand;
};

// Knobs recompute (whole layers) and recompute_modules: "moe" is a segment that exchanges its
// tokens again; "norm" and "core_attn" are single nodes of a layer. recompute includes the others.
Recompute PlanRecompute(const spf_model& model, bool layers, const std::set<std::string>& modules);

// By module: the outermost ancestor of this type (the segment that recompute runs again), or -1.
std::vector<int32_t> SegmentsOfType(const spf_model& model, const std::string& type);

// A list of operations that grows in the order in which they are issued. Before an operation that
// reads a value which forward has dropped, the node that makes it runs forward again.
class OperationList {
 public:
  OperationList(const spf_program& program, const std::vector<bool>& on_demand);

  // Nothing is added where the node has nothing to do in this phase.
  void Add(const spf_node& node, spf_phase phase, bool recompute = false);
  std::vector<Operation> Take() { return std::move(operations_); }

 private:
  std::vector<Operation> operations_;
  std::vector<const spf_node*> dropped_;  // by value: the node that makes it again, or NULL
};

// Forward, then backward in reverse; nodes that have nothing to do in backward are left out. A loss
// in chunks stands between the two: each chunk forward, then backward, so that logits of one chunk
// alone exist.
std::vector<Operation> TrainOperations(const spf_program& program, const Recompute& recompute);

// What dies after each operation.
using DeathList = std::vector<std::vector<ValueRef>>;
DeathList Deaths(const std::vector<Operation>& operations, int32_t n_values);

}  // namespace reference
