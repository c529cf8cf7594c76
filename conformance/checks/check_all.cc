#include "conformance/checks/check_all.h"

#include "conformance/checks/analysis.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/groups.h"
#include "conformance/checks/lifetime.h"
#include "conformance/checks/numerics.h"
#include "conformance/checks/order.h"
#include "conformance/checks/reduction.h"
#include "conformance/checks/robustness.h"

namespace shardproof {

CheckResult CheckAll(const Run& run) {
  const Analysis analysis(run);
  CheckResult result = CheckRobustness(analysis);
  result.Merge(CheckGraph(run.traces));
  result.Merge(CheckGroups(analysis));
  result.Merge(CheckReduction(analysis));
  result.Merge(CheckLifetime(analysis));
  result.Merge(CheckOrder(analysis));
  result.Merge(CheckNumerics(analysis));
  return result;
}

}  // namespace shardproof
