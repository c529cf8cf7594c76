// facts.h: what does a plan follow from? Tables, knobs and groups: nothing that only a run knows.
#pragma once
#include <vector>

#include "reference/core/config.h"
#include "reference/core/operation.h"
#include "reference/core/units.h"

namespace reference {

// Of one bucket group.
struct GroupFacts {
  uint64_t bytes = 0;      // of its full parameters
  bool trainable = false;  // one of its buckets at least
  bool travels = true;     // layer-wise: several ranks hold it, and it is not empty
};

struct PlanFacts {
  const spf_model& model;
  const Config& config;
  const ModelPlan& buckets;
  std::vector<GroupFacts> groups{};
  int32_t pipeline_ranks = 1, pipeline_rank = 0;

  // Of this step.
  std::vector<const spf_program*> programs{};  // by microbatch
  bool stale = true;           // weights were installed since they were last gathered
  bool backward_stale = true;  // the same of copies for backward, which an eval does not gather

  int32_t UnitOf(int32_t module) const {
    return module < 0 ? kNoUnit : At(buckets.module_unit, module);
  }
  int32_t UnitOf(const Operation& operation) const { return UnitOf(operation.node->module); }
  int32_t ModuleOf(int32_t unit) const { return At(buckets.unit_modules, unit); }
  // Its parameters and gradients live in one of two buffers, as those of the units like it do.
  bool HasDoubleBuffer(int32_t unit) const {
    return config.HasDoubleBuffers() && unit != kNoUnit && At(buckets.unit_alike, unit);
  }
  bool IsLast(int32_t microbatch) const { return microbatch == config.microbatches - 1; }
};

// Bucket groups that the operation reads parameters of (SPF_IN_PARAM; backward, of its own copies)
// or adds gradients to (SPF_IN_GRAD), each once.
std::vector<int32_t> GroupsOf(const PlanFacts& facts, const Operation& operation, spf_table table);

}  // namespace reference
