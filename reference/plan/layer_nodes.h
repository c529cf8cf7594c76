// layer_nodes.h: which nodes of the program form one node of the schedule?
//
// The schedule that hides all-to-alls cuts a layer into schedule nodes (Megatron-LM's ScheduleNode)
// that alternate between compute and communication, so that one microbatch's exchange can run
// beside another's compute:
//
//   schedule node     stream    MoE layer                                   dense layer
//   pre_dispatch      compute   attention, norm, shared expert, router,     attention
//                               permutation, exchange of the counts
//   dispatch          a2a       exchanges of tokens and of probabilities    nothing
//   mlp               compute   the local experts                           norm and MLP
//   combine           a2a       exchange back, sum with shared expert and   nothing
//                               residual
//   mtp_post_process  compute   final norm of the MTP layer                 nothing
//
// (Megatron-LM's schedule plan of a layer.) Around the layers stand pre_process (input, embedding),
// post_process (final norm, heads) and loss. All of this follows from the tables: modules, kinds of
// nodes, dtypes of the values that are exchanged. Pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "reference/core/tables.h"

namespace reference {

// The schedule nodes of a layer.
enum class LayerNode { kPreDispatch, kDispatch, kMlp, kCombine, kMtpPostProcess };
constexpr int32_t kLayerNodes = 5;

using NodeList = std::vector<const spf_node*>;  // in program order

// The program's nodes of one layer, by schedule node.
struct LayerNodes {
  int32_t module = -1;  // the TransformerLayer: not a wrapper around it (the MTP layer has one)
  bool moe = false;     // it dispatches tokens
  std::array<NodeList, kLayerNodes> lists;

  const NodeList& operator[](LayerNode node) const { return At(lists, node); }
  NodeList& operator[](LayerNode node) { return At(lists, node); }
};

// One microbatch's program on one rank (and one model chunk of it), by schedule node.
struct ScheduleNodes {
  NodeList pre_process;
  std::vector<LayerNodes> layers;  // the MTP layer last
  NodeList post_process;
  NodeList loss;  // nodes whose backward starts from no gradient of a value
};

// Nodes of this chunk only. Throws std::logic_error naming the node that fits nowhere.
ScheduleNodes DeriveScheduleNodes(const spf_model& model, const spf_program& program,
                                  int32_t chunk = 0);

// The module itself or the nearest module above it that has this type; -1: none.
int32_t AncestorOfType(const spf_model& model, int32_t module, const std::string& type);

// Whether delayed weight gradients apply to this node: matrix products of linear modules and
// experts have a half of their backward that nothing else waits for. Norms, routers and embeddings
// compute both halves at once.
bool DefersWeightGrads(const spf_model& model, const spf_node& node);

}  // namespace reference
