#include "reference/plan/layer_nodes.h"

#include <algorithm>
#include <stdexcept>

namespace reference {
namespace {

constexpr int32_t kNoLayer = -1;  // spf_node.layer outside layers

// Exchanges of counts are integers and belong to what prepares the dispatch.
bool ExchangesTokens(const spf_model& model, const spf_node& node) {
  if (node.kind != SPF_NODE_EXCHANGE) return false;
  return std::ranges::any_of(UsesOf(node, SPF_FWD), [&](const spf_use& use) {
    return WritesValue(use) && model.values[use.id].dtype != SPF_I64;
  });
}

bool StartsBackward(const spf_node& node) {
  if (node.kind != SPF_NODE_COMPUTE) return false;  // a sum over tp has a gradient to add up
  const auto uses = UsesOf(node, SPF_BWD);
  return !uses.empty() && std::ranges::none_of(uses, [](const spf_use& use) {
    return use.table == SPF_IN_DACT && use.access == SPF_READ;
  });
}

// Walks once over the layer: each exchange of tokens, and the first node after one, begins
// a node of the schedule.
LayerNodes CutMoeLayer(const spf_model& model, const NodeList& nodes) {
  LayerNodes layer;
  layer.moe = true;
  LayerNode here = LayerNode::kPreDispatch;
  for (const spf_node* node : nodes) {
    const bool inside = AncestorOfType(model, node->module, "TransformerLayer") >= 0;
    if (ExchangesTokens(model, *node)) {
      if (here == LayerNode::kPreDispatch) here = LayerNode::kDispatch;
      if (here == LayerNode::kMlp) here = LayerNode::kCombine;
    } else if (here == LayerNode::kDispatch) {
      here = LayerNode::kMlp;
    } else if (here == LayerNode::kCombine && !inside) {
      here = LayerNode::kMtpPostProcess;
    }
    layer[here].push_back(node);
  }
  if (layer[LayerNode::kCombine].empty())
    throw std::logic_error(std::string(nodes.front()->name) +
                           ": its layer dispatches tokens and does not combine them");
  return layer;
}

// Attention, then the rest.
LayerNodes CutDenseLayer(const spf_model& model, const NodeList& nodes) {
  LayerNodes layer;
  const auto attends = [&](const spf_node* node) {
    return AncestorOfType(model, node->module, "Attention") >= 0;
  };
  const auto rest = std::find_if(nodes.rbegin(), nodes.rend(), attends).base();
  layer[LayerNode::kPreDispatch].assign(nodes.begin(), rest);
  layer[LayerNode::kMlp].assign(rest, nodes.end());
  return layer;
}

LayerNodes CutLayer(const spf_model& model, const NodeList& nodes) {
  const bool moe = std::any_of(nodes.begin(), nodes.end(),
                               [&](const spf_node* node) { return ExchangesTokens(model, *node); });
  LayerNodes layer = moe ? CutMoeLayer(model, nodes) : CutDenseLayer(model, nodes);
  for (const spf_node* node : nodes) {
    if (layer.module < 0) layer.module = AncestorOfType(model, node->module, "TransformerLayer");
  }
  return layer;
}

}  // namespace

int32_t AncestorOfType(const spf_model& model, int32_t module, const std::string& type) {
  while (module >= 0 && type != model.modules[module].type) module = model.modules[module].parent;
  return module;
}

bool DefersWeightGrads(const spf_model& model, const spf_node& node) {
  const std::string type = model.modules[node.module].type;
  return node.uses[SPF_WGRAD].n > 0 && (type == "Linear" || type == "Expert" || type == "Experts");
}

ScheduleNodes DeriveScheduleNodes(const spf_model& model, const spf_program& program,
                                  int32_t chunk) {
  ScheduleNodes schedule;
  NodeList layer;  // the one that is being collected
  const auto close_layer = [&] {
    if (!layer.empty()) schedule.layers.push_back(CutLayer(model, layer));
    layer.clear();
  };
  for (const spf_node& node : NodesOf(program)) {
    if (node.chunk != chunk) continue;
    // A layer that runs twice is two layers: its first module comes again.
    const bool again = layer.size() > 1 && node.module == layer.front()->module;
    if (!layer.empty() && (node.layer != layer.front()->layer || again)) close_layer();
    if (node.layer != kNoLayer) {
      if (!schedule.post_process.empty() || !schedule.loss.empty())
        throw std::logic_error(std::string(node.name) + ": a layer after the head");
      layer.push_back(&node);
    } else if (StartsBackward(node)) {
      schedule.loss.push_back(&node);
    } else {
      (schedule.layers.empty() ? schedule.pre_process : schedule.post_process).push_back(&node);
    }
  }
  close_layer();
  return schedule;
}

}  // namespace reference
