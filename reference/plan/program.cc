#include "reference/plan/program.h"

#include <algorithm>
#include <string_view>

namespace reference {
namespace {

// Where the chunks of the loss begin, each a head and a loss; the end of the program if the loss is
// in one piece.
int32_t LossChunksBegin(const spf_program& program) {
  const auto losses = std::ranges::count_if(NodesOf(program), AddsToValue);
  return program.n_nodes - 2 * static_cast<int32_t>(losses);
}

bool HasBackward(const spf_node& node) { return node.uses[SPF_BWD].n > 0; }

// The values that an operation touches, each once; true if the operation only writes it.
std::vector<std::pair<ValueRef, bool>> Touched(const Operation& operation) {
  std::vector<std::pair<ValueRef, bool>> touched;
  for (const spf_use& use : UsesOf(operation)) {
    if (use.table != SPF_IN_ACT && use.table != SPF_IN_DACT) continue;
    const ValueRef value{use.table == SPF_IN_DACT, use.id};
    const bool writes_only = use.access == SPF_WRITE;
    const auto known = std::ranges::find(touched, value, &std::pair<ValueRef, bool>::first);
    if (known == touched.end()) {
      touched.emplace_back(value, writes_only);
    } else {
      known->second &= writes_only;
    }
  }
  return touched;
}

}  // namespace

std::vector<Operation> EvalOperations(const spf_program& program) {
  std::vector<Operation> operations;
  for (const spf_node& node : NodesOf(program)) {
    if (node.uses[SPF_FWD].n > 0) operations.push_back({&node, SPF_FWD, false});
  }
  return operations;
}

std::vector<int32_t> SegmentsOfType(const spf_model& model, const std::string& type) {
  std::vector<int32_t> segment_of;
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const int32_t parent = model.modules[m].parent;
    const int32_t above = parent >= 0 ? At(segment_of, parent) : -1;
    segment_of.push_back(above >= 0 ? above : (type == model.modules[m].type ? m : -1));
  }
  return segment_of;
}

Recompute PlanRecompute(const spf_model& model, bool layers, const std::set<std::string>& modules) {
  const std::vector<int32_t> layer_of = SegmentsOfType(model, "TransformerLayer");
  Recompute recompute;
  if (layers) {
    recompute.segment_of = layer_of;
    return recompute;
  }
  if (modules.contains("moe")) recompute.segment_of = SegmentsOfType(model, "MoE");
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const std::string_view type = model.modules[m].type;
    const bool asked = (type == "RMSNorm" && modules.contains("norm")) ||
                       (type == "Attention" && modules.contains("core_attn"));
    recompute.on_demand.push_back(asked && At(layer_of, m) >= 0);
  }
  return recompute;
}

OperationList::OperationList(const spf_program& program, const std::vector<bool>& on_demand) {
  for (const spf_node& node : NodesOf(program)) {
    for (const spf_use& use : UsesOf(node, SPF_FWD)) {
      if (use.table != SPF_IN_ACT) continue;
      if (use.id >= Length(dropped_)) dropped_.resize(static_cast<size_t>(use.id) + 1);
      if (on_demand.empty() || !At(on_demand, node.module)) continue;
      if (use.access != SPF_READ) At(dropped_, use.id) = &node;
    }
  }
}

void OperationList::Add(const spf_node& node, spf_phase phase, bool recompute) {
  if (node.uses[phase].n == 0) return;
  const bool reads_dropped_values = phase != SPF_FWD || recompute;
  for (const spf_use& use : UsesOf(node, phase)) {
    if (!reads_dropped_values || use.table != SPF_IN_ACT || use.access == SPF_WRITE) continue;
    const spf_node* maker = At(dropped_, use.id);
    if (maker == nullptr) continue;
    std::replace(dropped_.begin(), dropped_.end(), maker, static_cast<const spf_node*>(nullptr));
    Add(*maker, SPF_FWD, true);
  }
  operations_.push_back({&node, phase, recompute});
}

std::vector<Operation> TrainOperations(const spf_program& program, const Recompute& recompute) {
  OperationList list(program, recompute.on_demand);
  const int32_t chunks = LossChunksBegin(program);
  for (int32_t i = 0; i < chunks; ++i) list.Add(program.nodes[i], SPF_FWD);
  for (int32_t i = chunks; i < program.n_nodes; i += 2) {
    const spf_node &head = program.nodes[i], &loss = program.nodes[i + 1];
    list.Add(head, SPF_FWD);
    list.Add(loss, SPF_FWD);
    list.Add(loss, SPF_BWD);
    list.Add(head, SPF_BWD);
  }
  auto segment = [&](int32_t i) {
    return recompute.segment_of.empty() ? -1 : At(recompute.segment_of, program.nodes[i].module);
  };
  for (int32_t end = chunks; end > 0;) {
    // Nodes [begin, end) are one segment, or one node outside segments.
    int32_t begin = end - 1;
    while (segment(end - 1) >= 0 && begin > 0 && segment(begin - 1) == segment(end - 1)) --begin;
    const bool again = segment(end - 1) >= 0 &&
                       std::any_of(program.nodes + begin, program.nodes + end, HasBackward);
    for (int32_t i = begin; i < end && again; ++i) list.Add(program.nodes[i], SPF_FWD, true);
    for (int32_t i = end; i-- > begin;) list.Add(program.nodes[i], SPF_BWD);
    end = begin;
  }
  return list.Take();
}

DeathList Deaths(const std::vector<Operation>& operations, int32_t n_values) {
  DeathList deaths(operations.size());
  // Walking backwards: whether somebody still wants what is in the value. [gradient][value]
  std::vector<std::vector<bool>> wanted(2, std::vector<bool>(static_cast<size_t>(n_values)));
  for (size_t i = operations.size(); i-- > 0;) {
    for (const auto& [value, writes_only] : Touched(operations[i])) {
      auto wants = wanted[value.gradient ? 1 : 0].begin() + value.value;
      if (!*wants) deaths[i].push_back(value);
      *wants = !writes_only;
    }
  }
  return deaths;
}

}  // namespace reference
