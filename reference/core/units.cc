#include "reference/core/units.h"

#include <algorithm>
#include <map>

namespace reference {
namespace {

int64_t RowOf(const spf_param& param) {
  int64_t row = 1;
  for (int32_t d = 1; d < param.n_dim; ++d) row *= param.shape[d];
  return row;
}

int64_t ElementsIn(const BucketPlan& bucket) {
  int64_t elements = 0;
  for (const ParamShape& param : bucket.params) elements += param.numel;
  return elements;
}

bool Fits(const BucketPlan& bucket, const BucketPlan& key, const ParamShape& param,
          int64_t bucket_size) {
  if (bucket.unit != key.unit || bucket.expert != key.expert || bucket.trainable != key.trainable ||
      bucket.muon != key.muon || bucket.dtype != key.dtype) {
    return false;
  }
  if (bucket.unit == kNoUnit && bucket_size > 0 && ElementsIn(bucket) >= bucket_size) return false;
  return std::all_of(bucket.params.begin(), bucket.params.end(),
                     [&](const ParamShape& other) { return RowsFit(other.row, param.row); });
}

void GroupBuckets(ModelPlan& plan) {
  plan.unit_groups.resize(plan.unit_modules.size());
  for (int32_t b = 0; b < static_cast<int32_t>(plan.buckets.size()); ++b) {
    const BucketPlan& bucket = plan.buckets[static_cast<size_t>(b)];
    auto& siblings = bucket.unit == kNoUnit ? plan.root_groups
                                            : plan.unit_groups[static_cast<size_t>(bucket.unit)];
    auto joins = [&](int32_t g) {
      return bucket.unit != kNoUnit && plan.groups[static_cast<size_t>(g)].expert == bucket.expert;
    };
    auto found = std::find_if(siblings.begin(), siblings.end(), joins);
    if (found != siblings.end()) {
      plan.groups[static_cast<size_t>(*found)].buckets.push_back(b);
      plan.bucket_group.push_back(*found);
      continue;
    }
    plan.bucket_group.push_back(static_cast<int32_t>(plan.groups.size()));
    siblings.push_back(static_cast<int32_t>(plan.groups.size()));
    plan.groups.push_back({bucket.unit, bucket.expert, {b}});
  }
}

// Modules are numbered in forward order. The root's own parameters may be used anywhere, so with
// them backward goes all the way.
void FindBackward(const spf_model& model, ModelPlan& plan) {
  for (int32_t u = 0; u < plan.units(); ++u) {
    const int32_t unit_module = plan.unit_modules[static_cast<size_t>(u)];
    const auto comes_this_way = [&](const spf_param& param) {
      const bool trainable = (param.flags & SPF_PARAM_FROZEN) == 0;
      return trainable && (param.module < unit_module ||
                           plan.module_unit[static_cast<size_t>(param.module)] == u);
    };
    plan.unit_in_backward.push_back(
        std::any_of(model.params, model.params + model.n_params, comes_this_way));
  }
}

// The module whose stage this node belongs to: its unit's, or its own if it owns parameters; -1.
int32_t StageOf(const spf_model& model, const ModelPlan& plan, const spf_node& node) {
  const int32_t unit = plan.module_unit[static_cast<size_t>(node.module)];
  if (unit != kNoUnit) return plan.unit_modules[static_cast<size_t>(unit)];
  const auto owned = [&](const spf_param& param) { return param.module == node.module; };
  return std::any_of(model.params, model.params + model.n_params, owned) ? node.module : -1;
}

// Only on the way forward: what comes again together with its neighbours (a layer that runs twice)
// has no place of its own.
void FindReentries(const spf_model& model, const spf_program& program, ModelPlan& plan) {
  std::set<int32_t> seen;
  int32_t furthest = -1, last = -1;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const int32_t here = StageOf(model, plan, program.nodes[i]);
    const int32_t unit = plan.module_unit[static_cast<size_t>(program.nodes[i].module)];
    if (unit != kNoUnit && here != last && seen.contains(here)) {
      int32_t next = i;
      while (next < program.n_nodes && (StageOf(model, plan, program.nodes[next]) == here ||
                                        StageOf(model, plan, program.nodes[next]) < 0))
        ++next;
      const int32_t before =
          next < program.n_nodes ? StageOf(model, plan, program.nodes[next]) : model.n_modules;
      const Reentry reentry{unit, before};
      if (last == furthest && before > furthest &&
          std::count(plan.reentries.begin(), plan.reentries.end(), reentry) == 0)
        plan.reentries.push_back(reentry);
    }
    if (here < 0) continue;
    seen.insert(here);
    furthest = std::max(furthest, here);
    last = here;
  }
}

}  // namespace

std::vector<int32_t> UnitModules(const spf_model& model,
                                 const std::vector<std::string>& unit_types) {
  std::vector<int32_t> units;
  std::vector<bool> inside(
      static_cast<size_t>(model.n_modules));  // parents come before their children
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const spf_module& module = model.modules[m];
    const bool nested = module.parent >= 0 && inside[static_cast<size_t>(module.parent)];
    const bool matches =
        std::find(unit_types.begin(), unit_types.end(), module.type) != unit_types.end();
    if (matches && !nested) units.push_back(m);
    inside[static_cast<size_t>(m)] = nested || matches;
  }
  return units;
}

std::vector<int32_t> UnitOfModules(const spf_model& model,
                                   const std::vector<int32_t>& unit_modules) {
  std::vector<int32_t> unit_of(static_cast<size_t>(model.n_modules), kNoUnit);
  for (size_t u = 0; u < unit_modules.size(); ++u) {
    unit_of[static_cast<size_t>(unit_modules[u])] = static_cast<int32_t>(u);
  }
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const int32_t parent = model.modules[m].parent;
    if (parent >= 0 && unit_of[static_cast<size_t>(m)] == kNoUnit) {
      unit_of[static_cast<size_t>(m)] = unit_of[static_cast<size_t>(parent)];
    }
  }
  return unit_of;
}

std::set<int32_t> SharedParams(const spf_model& model, const std::vector<int32_t>& module_unit,
                               const std::vector<const spf_program*>& programs) {
  std::vector<std::set<int32_t>> users(static_cast<size_t>(model.n_params));
  for (int32_t p = 0; p < model.n_params; ++p) {
    users[static_cast<size_t>(p)].insert(module_unit[static_cast<size_t>(model.params[p].module)]);
  }
  for (const spf_program* program : programs) {
    for (int32_t i = 0; i < program->n_nodes; ++i) {
      const spf_node& node = program->nodes[i];
      for (const spf_uses& uses : node.uses) {
        for (int32_t k = 0; k < uses.n; ++k) {
          if (uses.use[k].table != SPF_IN_PARAM) continue;
          users[static_cast<size_t>(uses.use[k].id)].insert(
              module_unit[static_cast<size_t>(node.module)]);
        }
      }
    }
  }
  std::set<int32_t> shared;
  for (int32_t p = 0; p < model.n_params; ++p) {
    if (users[static_cast<size_t>(p)].size() > 1) shared.insert(p);
  }
  return shared;
}

ModelPlan PlanModel(const spf_model& model, const std::vector<std::string>& unit_types,
                    int64_t bucket_size, const std::vector<const spf_program*>& programs,
                    const std::vector<bool>& muon) {
  ModelPlan plan;
  plan.unit_modules = UnitModules(model, unit_types);
  plan.module_unit = UnitOfModules(model, plan.unit_modules);
  const std::set<int32_t> shared = SharedParams(model, plan.module_unit, programs);
  for (int32_t p = 0; p < model.n_params; ++p) {
    const spf_param& param = model.params[p];
    BucketPlan key;
    key.unit = shared.contains(p) ? kNoUnit : plan.module_unit[static_cast<size_t>(param.module)];
    key.expert = (param.flags & SPF_PARAM_EXPERT) != 0;
    key.trainable = (param.flags & SPF_PARAM_FROZEN) == 0;
    key.muon = !muon.empty() && muon[static_cast<size_t>(p)];
    key.dtype = param.dtype;
    const ParamShape shape{p, param.numel, RowOf(param)};
    auto fits = [&](const BucketPlan& bucket) { return Fits(bucket, key, shape, bucket_size); };
    auto found = std::find_if(plan.buckets.begin(), plan.buckets.end(), fits);
    if (found == plan.buckets.end()) found = plan.buckets.insert(plan.buckets.end(), key);
    found->params.push_back(shape);
    plan.param_bucket.push_back(static_cast<int32_t>(found - plan.buckets.begin()));
  }
  GroupBuckets(plan);
  FindBackward(model, plan);
  for (const spf_program* program : programs) FindReentries(model, *program, plan);
  return plan;
}

}  // namespace reference
