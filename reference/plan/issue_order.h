// issue_order.h: in which order does the host issue the schedule nodes of two
// microbatches?
//
// One combined step takes one microbatch forward (f) and another one backward (b). Nodes of both
// alternate such that each all-to-all on the communication stream has compute of the other
// microbatch beside it. The order depends on numbers of layers and two settings, never on data: so
// the order of collectives is the same on every rank.
//
// One pair of layers, f's layer i and b's layer j:
//
//   compute                              a2a
//    1 b.mtp_post_process backward
//                                         2 b.combine backward
//    3 f.pre_dispatch forward
//    4 b.mlp backward
//                                         5 f.dispatch forward (the host waits for the counts here:
//                                           4 comes first so that compute is not idle meanwhile)
//    6 b.mlp weight gradients [delayed]
//                                         7 b.dispatch backward
//   (7' b.pre_dispatch backward, with early release of attention's memory)
//    8 f.mlp forward
//                                         9 f.combine forward
//   10 b.pre_dispatch backward, without early release
//   11 f.mtp_post_process forward (after 10: it waits for 9, and compute would wait with it)
//   12 b.pre_dispatch weight gradients [delayed]; those of layer 0 come after all pairs
//
// (Megatron-LM, combined 1F1B.) Pure functions: the schedule is data.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/plan/layer_nodes.h"

namespace reference {

enum class Action {
  // Once per side of a step.
  kRootPreBackward,   // b: parameters' backward begins
  kLossBackward,      // b
  kJoinStart,         // the side's chain begins after what compute has enqueued
  kPreProcess,        // f: forward; b: backward
  kTransfer,          // in a pipeline: what leaves this stage, and what the next step needs
  kPostProcess,       // f: forward; b: backward
  kJoinEnd,           // compute goes on after both chains
  kLossForward,       // f
  kRootPostBackward,  // b: what is left of gradients is handed over
  // A node of one layer.
  kForward,
  kBackward,
  kWeightGrads,  // the delayed half of backward
};
enum class Side { kForward, kBackward };

// A schedule node, with what is done of it: Megatron-LM's ScheduleNode. Roots, joins and the
// transfer stand in the same list.
struct ScheduleNode {
  Action action;
  Side side;
  int32_t layer = -1;
  LayerNode layer_node = LayerNode::kPreDispatch;
  bool operator==(const ScheduleNode&) const = default;
};
// As "b.3.combine.backward" or "f.pre_process".
std::string Name(const ScheduleNode& node);
// As "combine" or "pre_process".
const char* NodeName(const ScheduleNode& node);

// Number of layers of each side; none: the step has no such side.
struct StepShape {
  std::optional<int32_t> forward_layers, backward_layers;
  bool delay_wgrad = false;    // weight gradients apart
  bool early_release = false;  // 7' instead of 10
  bool transfer = false;       // in a pipeline: the last step before values are sent on
};

std::vector<ScheduleNode> CombinedStepOrder(const StepShape& shape);

// The microbatches of each combined step without pipelining: F(0), then F(k) with B(k - 1), then
// the last one's backward. With one microbatch nothing overlaps.
struct StepSides {
  std::optional<int32_t> forward, backward;
  bool operator==(const StepSides&) const = default;
};
std::vector<StepSides> StepsWithoutPipelining(int32_t microbatches);

}  // namespace reference
