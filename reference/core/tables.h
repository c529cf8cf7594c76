// tables.h: how does a loop walk the tables of a model and of a program?
#pragma once
#include <span>

#include "conformance/abi/shardproof.h"
#include "reference/core/at.h"

namespace reference {

inline std::span<const spf_param> ParamsOf(const spf_model& model) {
  return {model.params, static_cast<size_t>(model.n_params)};
}
inline std::span<const spf_node> NodesOf(const spf_program& program) {
  return {program.nodes, static_cast<size_t>(program.n_nodes)};
}
inline std::span<const spf_use> UsesOf(const spf_node& node, spf_phase phase) {
  return {node.uses[phase].use, static_cast<size_t>(node.uses[phase].n)};
}

inline bool IsExpert(const spf_param& param) { return (param.flags & SPF_PARAM_EXPERT) != 0; }
// Its gradient is that of this rank's part of the sequence, until it is summed over tp.
inline bool IsSequenceParallel(const spf_param& param) {
  return (param.flags & SPF_PARAM_SEQUENCE_PARALLEL) != 0;
}
inline bool IsTrainable(const spf_param& param) { return (param.flags & SPF_PARAM_FROZEN) == 0; }
// Whether the node writes a value there, or adds to it: not to its gradient.
inline bool WritesValue(const spf_use& use) {
  return use.table == SPF_IN_ACT && use.access != SPF_READ;
}

// A loss in chunks (loss_chunks): its value is the sum of what several nodes add.
inline bool AddsToValue(const spf_node& node) {
  if (node.kind != SPF_NODE_COMPUTE) return false;
  for (const spf_use& use : UsesOf(node, SPF_FWD)) {
    if (WritesValue(use) && use.access == SPF_ADD) return true;
  }
  return false;
}

}  // namespace reference
