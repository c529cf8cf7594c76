#include "reference/plan/plan.h"

#include <algorithm>

#include "reference/plan/layer_wise.h"
#include "reference/plan/one_f_one_b.h"
#include "reference/plan/sequential.h"

namespace reference {
namespace {

void Install(PlanWriter& write) {
  write.Mark(SPF_HOOK_INSTALL_WEIGHTS);  // H10
  write.Add(Do::kInstall);
  if (write.facts.config.LayerWise()) PlanLayerWiseGathers(write);
}

}  // namespace

Plan PlanTrainStep(const PlanFacts& facts) {
  PlanWriter write(facts);
  if (facts.config.overlap_moe || facts.pipeline_ranks > 1) {
    PlanOneFOneBTraining(write);
  } else if (facts.config.LayerWise()) {
    PlanLayerWiseTraining(write);
  } else {
    PlanSequentialTraining(write);
  }
  Install(write);
  return std::move(write.plan);
}

Plan PlanEvalStep(const PlanFacts& facts) {
  PlanWriter write(facts);
  if (facts.pipeline_ranks > 1) {
    PlanPipelineEval(write);
  } else if (facts.config.LayerWise()) {
    PlanLayerWiseEval(write);
  } else {
    PlanSequentialEval(write);
  }
  return std::move(write.plan);
}

Plan PlanInstall(const PlanFacts& facts) {
  PlanWriter write(facts);
  Install(write);
  return std::move(write.plan);
}

std::vector<int32_t> GroupsOf(const PlanFacts& facts, const Operation& operation, spf_table table) {
  std::vector<int32_t> groups;
  for (const spf_use& use : UsesOf(operation)) {
    if (use.table != table) continue;
    const int32_t group = table == SPF_IN_PARAM
                              ? facts.buckets.GroupReadOf(use.id, operation.phase != SPF_FWD)
                              : facts.buckets.GroupOfParam(use.id);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  return groups;
}

}  // namespace reference
