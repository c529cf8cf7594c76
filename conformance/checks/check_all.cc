#include "conformance/checks/check_all.h"

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/cause/order_by_cause.h"
#include "conformance/checks/completeness.h"
#include "conformance/checks/ended_early.h"
#include "conformance/checks/graph/comm_schedule.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/overlap_check.h"
#include "conformance/checks/groups/groups.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/lifetime/user_buffers.h"
#include "conformance/checks/loss_chunks/loss_chunks.h"
#include "conformance/checks/meta_init/meta_init.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/objects/objects.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/robustness/robustness.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"

namespace shardproof {

CheckResult CheckFamilies(const Analysis& analysis, CheckResult result) {
  result.Merge(CheckGraph(analysis.lowered()));
  result.Merge(CheckObjects(analysis));
  if (analysis.has_case()) {
    const Case& spec = *analysis.run().spec;
    result.Merge(CheckOverlap(spec, analysis.lowered(), WhatIsBrought(analysis)));
    result.Merge(CheckCommSchedule(spec, analysis.lowered()));
  }
  result.Merge(CheckGroups(analysis));
  result.Merge(CheckReduction(analysis));
  result.Merge(CheckLifetime(analysis));
  result.Merge(CheckUserBuffers(analysis));
  result.Merge(CheckOrder(analysis));
  result.Merge(CheckNumerics(analysis));
  result.Merge(CheckSchedule(analysis));
  result.Merge(CheckLayerWise(analysis));
  result.Merge(CheckTensorParallel(analysis));
  result.Merge(CheckLossChunks(analysis));
  result.Merge(CheckMetaInit(analysis));
  result.Merge(CheckKnobs(analysis));
  result.Merge(CheckBudgets(analysis));
  result.Merge(CiteForSchedule(analysis, result));
  result.Merge(CiteForLayerWise(analysis, result));
  return result;
}

CheckResult CheckAll(const Run& run) {
  const Analysis analysis(run);
  CheckResult result = CheckFamilies(analysis, CheckRobustness(analysis));
  JudgeEarlyEnd(analysis, result);
  SettleWhatIsOpen(analysis, result);
  OrderByCause(analysis.lowered(), result);
  return result;
}

}  // namespace shardproof
