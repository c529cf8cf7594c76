#include "reference/fsdp/program.h"

#include <algorithm>

namespace reference {

std::vector<Operation> EvalOperations(const spf_program& program) {
  std::vector<Operation> operations;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    if (program.nodes[i].uses[SPF_FWD].n > 0)
      operations.push_back({&program.nodes[i], SPF_FWD, false});
  }
  return operations;
}

std::vector<int32_t> SegmentsOfType(const spf_model& model, const std::string& type) {
  std::vector<int32_t> segment_of;
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const int32_t parent = model.modules[m].parent;
    const int32_t above = parent >= 0 ? segment_of[static_cast<size_t>(parent)] : -1;
    segment_of.push_back(above >= 0 ? above : (type == model.modules[m].type ? m : -1));
  }
  return segment_of;
}

std::vector<Operation> TrainOperations(const spf_program& program,
                                       const std::vector<int32_t>& segment_of) {
  std::vector<Operation> operations = EvalOperations(program);
  auto segment = [&](int32_t i) {
    return segment_of.empty() ? -1 : segment_of[static_cast<size_t>(program.nodes[i].module)];
  };
  for (int32_t end = program.n_nodes; end > 0;) {
    // Nodes [begin, end) are one segment, or one node outside segments.
    int32_t begin = end - 1;
    while (segment(end - 1) >= 0 && begin > 0 && segment(begin - 1) == segment(end - 1)) --begin;
    const bool backward =
        std::any_of(program.nodes + begin, program.nodes + end,
                    [](const spf_node& node) { return node.uses[SPF_BWD].n > 0; });
    if (backward && segment(end - 1) >= 0) {
      for (int32_t i = begin; i < end; ++i) {
        if (program.nodes[i].uses[SPF_FWD].n > 0)
          operations.push_back({&program.nodes[i], SPF_FWD, true});
      }
    }
    for (int32_t i = end; i-- > begin;) {
      if (program.nodes[i].uses[SPF_BWD].n > 0)
        operations.push_back({&program.nodes[i], SPF_BWD, false});
    }
    end = begin;
  }
  return operations;
}

}  // namespace reference
