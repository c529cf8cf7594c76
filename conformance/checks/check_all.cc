#include "conformance/checks/check_all.h"

#include <set>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/groups/groups.h"
#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/lifetime/user_buffers.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/checks/schedule/schedule.h"

namespace shardproof {

namespace {

// Nodes and modules by their names in the model, as far as the case tells them.
graph::Names NamesOf(const Analysis& analysis) {
  graph::Names names;
  if (!analysis.has_case()) return names;
  names.node = [&analysis](int32_t rank, const Event& event) {
    if (event.instance >= analysis.n_instances()) return std::string();
    const InstanceFacts& facts = analysis.Facts(event.instance);
    if (event.id < 0 || event.id >= facts.node_count(rank)) return std::string();
    return std::string(facts.Node(event.id, rank).name);
  };
  names.module = [&analysis](int32_t rank, const Event& event) {
    if (event.instance >= analysis.n_instances()) return std::string();
    return analysis.Facts(event.instance).ModuleName(event.module, rank);
  };
  return names;
}

// One reason per requirement, and none for those that were judged.
void Tidy(CheckResult& result) {
  std::set<std::string> seen = result.judged;
  std::erase_if(result.not_checkable,
                [&](const NotCheckable& one) { return !seen.insert(one.requirement).second; });
}

}  // namespace

CheckResult CheckAll(const Run& run) {
  const Analysis analysis(run);
  CheckResult result = CheckRobustness(analysis);
  result.Merge(CheckGraph(run.traces, NamesOf(analysis)));
  if (analysis.has_case()) result.Merge(CheckOverlap(*run.spec, run.traces));
  result.Merge(CheckGroups(analysis));
  result.Merge(CheckReduction(analysis));
  result.Merge(CheckLifetime(analysis));
  result.Merge(CheckUserBuffers(analysis));
  result.Merge(CheckOrder(analysis));
  result.Merge(CheckNumerics(analysis));
  result.Merge(CheckSchedule(analysis));
  result.Merge(CheckLayerWise(analysis));
  result.Merge(CiteForSchedule(analysis, result));
  result.Merge(CiteForLayerWise(analysis, result));
  Tidy(result);
  return result;
}

}  // namespace shardproof
