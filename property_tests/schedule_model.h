// schedule_model.h: in which order may the schedule nodes of a 1F1B step that hides all-to-alls be
// issued?
//
// Two models that share no code with the checks or the reference: a closed form (each node has a
// place: step, phase, pair of layers, number within the pair), and a state machine that each
// microbatch walks through.
#pragma once
#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/checks/base/nodes.h"

namespace shardproof {

struct OrderLayer {
  bool moe = true, mtp = false;
};
struct OrderShape {
  std::vector<std::vector<OrderLayer>> microbatches;  // each with its layers
  bool delay = false, early = false;
};
std::ostream& operator<<(std::ostream& out, const OrderShape& shape);

// Schedule nodes of a layer, in forward order.
inline constexpr schedule::ScheduleNode kLayerNodes[] = {
    schedule::ScheduleNode::kPreDispatch, schedule::ScheduleNode::kDispatch,
    schedule::ScheduleNode::kMlp, schedule::ScheduleNode::kCombine,
    schedule::ScheduleNode::kMtpPost};

// Whether a node does anything: dense layers exchange nothing; weight gradients stand apart where
// they are delayed; only an MTP layer has something after its combine.
bool Has(const OrderShape& shape, const schedule::Key& key);
std::vector<schedule::Key> AllKeys(const OrderShape& shape);

// Combined step, phase within it, pair, twice the number within the pair.
using OrderPosition = std::array<int, 4>;
OrderPosition PositionOf(const OrderShape& shape, const schedule::Key& key);

// Empty, or what is wrong: a node that is missing, comes twice or out of its microbatch's chain, a
// third microbatch in flight, a pair whose exchanges have no compute of the other side beside them.
std::string OrderComplaint(const OrderShape& shape, const std::vector<schedule::Key>& order);

}  // namespace shardproof
