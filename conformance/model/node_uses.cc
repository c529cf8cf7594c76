// network.h: what does each phase of a node touch, and which gradients are wanted at all?
#include <algorithm>
#include <map>
#include <set>

#include "conformance/model/network.h"

namespace shardproof {
namespace {

using Uses = std::vector<spf_use>;

void Use(Uses& uses, spf_table table, spf_access access, int32_t id) {
  if (id >= 0) uses.push_back({static_cast<uint8_t>(table), static_cast<uint8_t>(access), 0, id});
}

template <typename Ids>
void UseAll(Uses& uses, spf_table table, spf_access access, const Ids& ids) {
  for (int32_t id : ids) Use(uses, table, access, id);
}

bool IsLoss(const NodeSpec& s) {
  return s.op == Op::kLoss || s.op == Op::kNextLoss || s.op == Op::kSplitLoss;
}

// What it writes is a constant of the backward pass.
bool WritesConstants(const NodeSpec& s) {
  return IsLoss(s) || s.op == Op::kLossMax || s.op == Op::kLossSums;
}

bool HasGradient(const spf_value* values, int32_t value) {
  return value >= 0 && values[value].dtype == SPF_F32;
}

Uses ForwardUses(const NodeSpec& s) {
  Uses uses;
  if (s.op == Op::kAllReduce) {
    if (!s.backward) Use(uses, SPF_IN_ACT, SPF_ADD, s.in[0]);
    return uses;
  }
  if (s.backward) return uses;
  UseAll(uses, SPF_IN_PARAM, SPF_READ, s.weights);
  UseAll(uses, SPF_IN_PARAM, SPF_READ, s.biases);
  if (s.op == Op::kSplitLoss) {
    Use(uses, SPF_IN_ACT, SPF_READ, s.in[2]);
    Use(uses, SPF_IN_ACT, SPF_READ, s.in[3]);
  } else {
    UseAll(uses, SPF_IN_ACT, SPF_READ, s.in);
  }
  UseAll(uses, SPF_IN_ACT, s.AddsToLoss() ? SPF_ADD : SPF_WRITE, s.out);
  return uses;
}

// Which activations the input gradient depends on.
void InputsOfDgrad(const NodeSpec& s, Uses& uses) {
  auto read = [&](int32_t value) { Use(uses, SPF_IN_ACT, SPF_READ, value); };
  switch (s.op) {
    case Op::kNorm:
    case Op::kSwiglu:
      return read(s.in[0]);
    case Op::kAttention:
    case Op::kLoss:
    case Op::kNextLoss:
    case Op::kGatedSwiglu:
      read(s.in[0]);
      return read(s.in[1]);
    case Op::kSplitLoss:
      return UseAll(uses, SPF_IN_ACT, SPF_READ, s.in);
    case Op::kRouter:
      read(s.in[0]);
      return read(s.out[1]);
    case Op::kPermute:
      return read(s.in[2]);
    case Op::kGroupedLinear:
    case Op::kUnpermute:
      return read(s.in[1]);
    default:
      return;
  }
}

void OutputGradients(const NodeSpec& s, const spf_value* values, Uses& uses) {
  if (IsLoss(s)) return;
  if (s.grad_from >= 0) return Use(uses, SPF_IN_DACT, SPF_READ, s.grad_from);
  for (int32_t value : s.out) {
    if (HasGradient(values, value)) Use(uses, SPF_IN_DACT, SPF_READ, value);
  }
}

Uses DgradUses(const NodeSpec& s, const spf_value* values) {
  Uses uses;
  if (!s.any_grad_in()) return uses;
  if (s.op == Op::kAllReduce) {
    Use(uses, SPF_IN_DACT, SPF_ADD, s.in[0]);
    return uses;
  }
  if (s.grad_in[0] && !IsLoss(s)) UseAll(uses, SPF_IN_PARAM, SPF_READ, s.weights);
  if (s.op == Op::kRouter) UseAll(uses, SPF_IN_PARAM, SPF_READ, s.biases);
  InputsOfDgrad(s, uses);
  OutputGradients(s, values, uses);
  for (size_t i = 0; i < s.in.size(); ++i) {
    if (s.grad_in[i]) Use(uses, SPF_IN_DACT, s.add_in[i] ? SPF_ADD : SPF_WRITE, s.in[i]);
  }
  return uses;
}

Uses WgradUses(const NodeSpec& s, const spf_value* values) {
  Uses uses;
  if (!s.grad_weight && !s.grad_bias) return uses;
  if (s.op == Op::kRouter) {
    UseAll(uses, SPF_IN_PARAM, SPF_READ, s.weights);
    UseAll(uses, SPF_IN_PARAM, SPF_READ, s.biases);
  }
  if (s.grad_weight) Use(uses, SPF_IN_ACT, SPF_READ, s.in[0]);
  if (s.op == Op::kConcatLinear || s.op == Op::kGroupedLinear)
    Use(uses, SPF_IN_ACT, SPF_READ, s.in[1]);
  if (s.op == Op::kRouter) Use(uses, SPF_IN_ACT, SPF_READ, s.out[1]);
  OutputGradients(s, values, uses);
  if (s.grad_weight) UseAll(uses, SPF_IN_GRAD, SPF_ADD, s.weights);
  if (s.grad_bias) UseAll(uses, SPF_IN_GRAD, SPF_ADD, s.biases);
  return uses;
}

Uses Union(const Uses& a, const Uses& b) {
  Uses uses = a;
  for (const spf_use& use : b) {
    auto same = std::find_if(uses.begin(), uses.end(), [&](const spf_use& u) {
      return u.table == use.table && u.id == use.id;
    });
    if (same == uses.end()) {
      uses.push_back(use);
    } else {
      same->access = static_cast<uint8_t>(same->access | use.access);
    }
  }
  return uses;
}

}  // namespace

std::vector<spf_use> UsesOf(const NodeSpec& spec, spf_phase phase, const spf_value* values) {
  switch (phase) {
    case SPF_FWD:
      return ForwardUses(spec);
    case SPF_DGRAD:
      return DgradUses(spec, values);
    case SPF_WGRAD:
      return WgradUses(spec, values);
    default:
      return Union(DgradUses(spec, values), WgradUses(spec, values));
  }
}

namespace {

// Neither reads nor writes a value of its own.
bool SumsInPlace(NodeSpec& spec, const std::vector<bool>& wanted) {
  if (spec.op != Op::kAllReduce) return false;
  spec.grad_in[0] = spec.backward && wanted[static_cast<size_t>(spec.in[0])];
  return true;
}

// What norms and gains give to layers that are split by output gets a gradient that is summed over
// tp.
void MarkSumsOverTp(std::vector<NodeSpec>& program) {
  std::set<int32_t> summed;
  for (const NodeSpec& spec : program) {
    const bool sums =
        spec.op == Op::kAllReduce ? spec.backward : spec.op == Op::kAllGather && !spec.over_cp;
    if (sums) summed.insert(spec.in[0]);
  }
  for (NodeSpec& spec : program) {
    const bool row_wise = spec.op == Op::kNorm || spec.op == Op::kGain;
    if (row_wise && spec.grad_from < 0 && summed.contains(spec.out[0])) spec.many_readers = true;
  }
}

// Whether something trainable is upstream; forward alone, no gradient leads there.
bool DecideInputs(NodeSpec& spec, const std::vector<bool>& wanted, std::vector<int32_t>& writers) {
  bool any = false;
  for (size_t i = 0; i < spec.in.size(); ++i) {
    const bool flows = spec.in[i] >= 0 && wanted[static_cast<size_t>(spec.in[i])];
    any |= flows;
    spec.grad_in[i] = flows && !spec.forward;
    if (spec.grad_in[i]) ++writers[static_cast<size_t>(spec.in[i])];
  }
  return any;
}

}  // namespace

// A value needs a gradient if a trainable parameter lies upstream; it is added to if several nodes
// write it.
int32_t DecideGradients(std::vector<NodeSpec>& program, const spf_model& tables) {
  const auto n_values = static_cast<size_t>(tables.n_values);
  std::vector<bool> wanted(n_values);
  std::vector<int32_t> writers(n_values);
  std::map<int32_t, int32_t> uses;
  int32_t most_uses = 1;
  auto trainable = [&](int32_t param) {
    return param >= 0 && (tables.params[param].flags & SPF_PARAM_FROZEN) == 0;
  };
  for (size_t id = 0; id < n_values; ++id)
    wanted[id] = (tables.values[id].flags & SPF_VALUE_FROM_PREV) != 0;
  for (NodeSpec& spec : program) {
    if (spec.op == Op::kInput || SumsInPlace(spec, wanted)) continue;
    spec.grad_weight = std::any_of(spec.weights.begin(), spec.weights.end(), trainable);
    spec.grad_bias = std::any_of(spec.biases.begin(), spec.biases.end(), trainable);
    const bool below = DecideInputs(spec, wanted, writers);
    const bool any = spec.grad_weight || spec.grad_bias || below;
    for (int32_t value : spec.out) {
      if (HasGradient(tables.values, value) && !WritesConstants(spec))
        wanted[static_cast<size_t>(value)] = any;
    }
    if (spec.grad_from >= 0) wanted[static_cast<size_t>(spec.grad_from)] = any;
    for (int32_t param : spec.weights) {
      // The chunks of a loss share the tokens.
      if (param >= 0 && spec.loss_chunk == 0) most_uses = std::max(most_uses, ++uses[param]);
    }
  }
  for (NodeSpec& spec : program) {
    for (size_t i = 0; i < spec.in.size(); ++i)
      spec.add_in[i] = spec.grad_in[i] && writers[static_cast<size_t>(spec.in[i])] > 1;
    if (spec.op == Op::kNorm) spec.many_readers = writers[static_cast<size_t>(spec.out[0])] > 1;
  }
  MarkSumsOverTp(program);
  return most_uses;
}

}  // namespace shardproof
