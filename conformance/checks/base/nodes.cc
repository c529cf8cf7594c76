#include "conformance/checks/base/nodes.h"

#include <algorithm>
#include <string_view>

#include "conformance/common/dtype.h"

namespace shardproof::schedule {

std::string Text(const Key& key) {
  constexpr const char* kNames[] = {"pre", "pd", "disp", "mlp", "comb", "mtp", "post", "loss"};
  constexpr const char* kSides[] = {".f", ".b", ".dw"};
  std::string text = std::string(kNames[size_t(key.node)]) + kSides[size_t(key.side)] +
                     std::to_string(key.microbatch);
  if (key.layer >= 0) text += "[L" + std::to_string(key.layer) + "]";
  return text;
}

Nodes::Nodes(const spf_model& model, const spf_program& program)
    : model_(model), program_(program) {
  std::map<int32_t, std::vector<const spf_node*>> by_layer;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const spf_node& node = program.nodes[i];
    const std::string_view type = model.modules[node.module].type;
    const bool plain =
        type == "RMSNorm" || type == "Router" || type == "Embedding" || type == "Gain";
    if (!plain && node.uses[SPF_WGRAD].n > 0) deferrable_.insert(node.id);
    if (node.layer >= 0) {
      if (by_layer[node.layer].empty()) layers_.push_back(node.layer);
      by_layer[node.layer].push_back(&node);
    } else if (layers_.empty()) {
      places_[node.id] = {ScheduleNode::kPre, -1};
    } else {
      places_[node.id] = {Originates(node) ? ScheduleNode::kLoss : ScheduleNode::kPost, -1};
    }
  }
  for (const auto& [layer, nodes] : by_layer) PlaceLayer(nodes);
  FindLossChunks();
}

bool Nodes::MovesActivations(const spf_model& model, const spf_node& node) {
  if (node.kind != SPF_NODE_EXCHANGE) return false;
  for (int32_t i = 0; i < node.uses[SPF_FWD].n; ++i) {
    const spf_use& use = node.uses[SPF_FWD].use[i];
    if (use.table == SPF_IN_ACT && use.access == SPF_READ)
      return IsFloating(model.values[use.id].dtype);
  }
  return false;
}

bool Nodes::Under(int32_t module, const char* type) const {
  for (; module >= 0; module = model_.modules[module].parent) {
    if (std::string_view(model_.modules[module].type) == type) return true;
  }
  return false;
}

// A loss: its backward makes a gradient out of none.
bool Nodes::Originates(const spf_node& node) const {
  if (node.kind != SPF_NODE_COMPUTE) return false;  // a gradient is summed where it is
  const spf_uses& uses = node.uses[SPF_BWD];
  bool reads = false, writes = false;
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != SPF_IN_DACT) continue;
    (uses.use[i].access == SPF_READ ? reads : writes) = true;
  }
  return writes && !reads;
}

// Each is a head, then a loss that adds to the value of all.
void Nodes::FindLossChunks() {
  for (int32_t i = 1; i < program_.n_nodes; ++i) {
    const spf_uses& uses = program_.nodes[i].uses[SPF_FWD];
    for (int32_t u = 0; u < uses.n; ++u) {
      const spf_use& use = uses.use[u];
      const bool adds = use.table == SPF_IN_ACT && use.access == SPF_ADD;
      if (adds && (model_.values[use.id].flags & SPF_VALUE_LOSS) != 0)
        in_loss_chunks_.insert({program_.nodes[i - 1].id, program_.nodes[i].id});
    }
  }
}

// Schedule nodes follow each other: a float exchange opens the dispatch, compute after it the
// experts, the next float exchange the combine. A layer without exchanges is split behind its
// attention.
void Nodes::PlaceLayer(const std::vector<const spf_node*>& nodes) {
  const int32_t layer = nodes.front()->layer;
  const bool moe = std::any_of(nodes.begin(), nodes.end(), [&](const spf_node* node) {
    return MovesActivations(model_, *node);
  });
  if (moe) moe_.insert(layer);
  size_t behind_attention = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (Under(nodes[i]->module, "Attention")) behind_attention = i + 1;
  }
  ScheduleNode schedule_node = ScheduleNode::kPreDispatch;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool moves = MovesActivations(model_, *nodes[i]);
    if (!moe) {
      schedule_node = i < behind_attention ? ScheduleNode::kPreDispatch : ScheduleNode::kMlp;
    } else if (moves) {
      schedule_node = schedule_node == ScheduleNode::kMlp           ? ScheduleNode::kCombine
                      : schedule_node == ScheduleNode::kPreDispatch ? ScheduleNode::kDispatch
                                                                    : schedule_node;
    } else if (schedule_node == ScheduleNode::kDispatch) {
      schedule_node = ScheduleNode::kMlp;
    } else if (schedule_node == ScheduleNode::kCombine &&
               !Under(nodes[i]->module, "TransformerLayer")) {
      schedule_node = ScheduleNode::kMtpPost;
    }
    places_[nodes[i]->id] = {schedule_node, layer};
  }
}

const Place* Nodes::Find(int32_t node) const {
  const auto at = places_.find(node);
  return at == places_.end() ? nullptr : &at->second;
}

std::vector<const spf_node*> Nodes::Of(ScheduleNode schedule_node, int32_t layer) const {
  std::vector<const spf_node*> nodes;
  for (int32_t i = 0; i < program_.n_nodes; ++i) {
    const Place* place = Find(program_.nodes[i].id);
    if (place->node == schedule_node && place->layer == layer) nodes.push_back(&program_.nodes[i]);
  }
  return nodes;
}

bool Nodes::Has(ScheduleNode schedule_node, Side side, int32_t layer, bool delay) const {
  const bool may_delay =
      delay && (schedule_node == ScheduleNode::kPreDispatch || schedule_node == ScheduleNode::kMlp);
  for (const spf_node* node : Of(schedule_node, layer)) {
    const bool put_off = may_delay && Deferrable(node->id);
    if (side == Side::kForward && node->uses[SPF_FWD].n > 0) return true;
    if (side == Side::kBackward && node->uses[put_off ? SPF_DGRAD : SPF_BWD].n > 0) return true;
    if (side == Side::kWeights && put_off) return true;
  }
  return false;
}

}  // namespace shardproof::schedule
