// nodes.h: to which node of the schedule does each node of the model belong?
//
// The 1F1B schedule moves larger nodes than the model's (Megatron-LM's ScheduleNode): per layer
// what comes before the dispatch, the dispatch, the experts, the combine, and what an MTP layer
// does afterwards; per microbatch what precedes and follows the layers, and the loss. All of it
// follows from the tables, so an engine's own names mean nothing.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace shardproof::schedule {

enum class ScheduleNode : uint8_t {
  kPre,
  kPreDispatch,  // of a layer, as the four that follow
  kDispatch,
  kMlp,
  kCombine,
  kMtpPost,
  kPost,
  kLoss
};
// Weights: weight gradients that are computed apart from the backward of their node.
enum class Side : uint8_t { kForward, kBackward, kWeights };

// A schedule node in a step, in one direction: issued once.
struct Key {
  ScheduleNode node = ScheduleNode::kPre;
  Side side = Side::kForward;
  int32_t layer = -1;  // of the nodes of a layer
  int32_t microbatch = 0;
  auto operator<=>(const Key&) const = default;
};
// "mlp.dw0[L1]": the schedule node, the side and microbatch, the layer.
std::string Text(const Key& key);

struct Place {
  ScheduleNode node = ScheduleNode::kPre;
  int32_t layer = -1;
};

// One program, by schedule nodes.
class Nodes {
 public:
  Nodes(const spf_model& model, const spf_program& program);

  const Place* Find(int32_t node) const;  // null: not in the program
  const std::vector<int32_t>& layers() const { return layers_; }
  bool IsMoe(int32_t layer) const { return moe_.count(layer) != 0; }
  // Whether the schedule node does anything. delay: weight gradients of linear modules stand apart.
  bool Has(ScheduleNode schedule_node, Side side, int32_t layer, bool delay) const;
  // Its weight gradient may be put off: matrix products, but not norms, routers and embeddings.
  bool Deferrable(int32_t node) const { return deferrable_.count(node) != 0; }
  // Of a chunk of the loss (loss_chunks), whose heads and losses run forward and backward in turns.
  bool InLossChunk(int32_t node) const { return in_loss_chunks_.count(node) != 0; }
  // The model's nodes of a schedule node, in forward order.
  std::vector<const spf_node*> Of(ScheduleNode schedule_node, int32_t layer) const;
  // Exchange nodes that move activations, not counts.
  static bool MovesActivations(const spf_model& model, const spf_node& node);

 private:
  void PlaceLayer(const std::vector<const spf_node*>& nodes);
  bool Under(int32_t module, const char* type) const;
  bool Originates(const spf_node& node) const;
  void FindLossChunks();

  const spf_model& model_;
  const spf_program& program_;
  std::map<int32_t, Place> places_;
  std::vector<int32_t> layers_;
  std::set<int32_t> moe_, deferrable_, in_loss_chunks_;
};

}  // namespace shardproof::schedule
