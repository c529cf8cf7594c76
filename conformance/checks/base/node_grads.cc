#include "conformance/checks/base/node_grads.h"

#include "conformance/checks/base/facts.h"
#include "conformance/common/at.h"

namespace shardproof {

bool NodesAddInBf16(const Case& c, size_t instance, const std::vector<Trace>& traces) {
  const InstanceSpec& spec = c.instances[instance];
  if (spec.param_dtype != KnobDtype::kBf16) return false;
  const InstanceFacts facts(spec, c.world);
  bool any = false;
  for (const Trace& trace : traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCompute || event.instance != static_cast<int>(instance))
        continue;
      if (event.id < 0 || event.id >= facts.node_count(trace.rank)) continue;
      const spf_uses& uses = facts.Node(event.id, trace.rank).uses[event.phase];
      if (static_cast<size_t>(uses.n) != event.ranges.size()) continue;
      for (int32_t i = 0; i < uses.n; ++i) {
        if (uses.use[i].table != SPF_IN_GRAD) continue;
        const int64_t bytes = trace.ranges[event.ranges.begin + size_t(i)].length;
        if (bytes != 2 * facts.Param(trace.rank, uses.use[i].id).numel) return false;
        any |= bytes > 0;
      }
    }
  }
  return any;
}

}  // namespace shardproof
