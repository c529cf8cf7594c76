#include "reference/core/units.h"

#include <algorithm>
#include <set>
#include <tuple>

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
  if (!bucket.MayHold(key)) return false;
  if (bucket.unit == kNoUnit && bucket_size > 0 && ElementsIn(bucket) >= bucket_size) return false;
  return std::ranges::all_of(
      bucket.params, [&](const ParamShape& other) { return RowsFit(other.row, param.row); });
}

void GroupBuckets(ModelPlan& plan) {
  plan.unit_groups.resize(plan.unit_modules.size());
  for (int32_t b = 0; b < Length(plan.buckets); ++b) {
    const BucketPlan& bucket = At(plan.buckets, b);
    auto& siblings = bucket.unit == kNoUnit ? plan.root_groups : At(plan.unit_groups, bucket.unit);
    auto joins = [&](int32_t g) {
      return bucket.unit != kNoUnit && At(plan.groups, g).expert == bucket.expert;
    };
    auto found = std::ranges::find_if(siblings, joins);
    if (found == siblings.end()) {
      found = siblings.insert(found, Length(plan.groups));
      plan.groups.push_back({bucket.unit, bucket.expert, {}});
    }
    At(plan.groups, *found).buckets.push_back(b);
    plan.bucket_group.push_back(*found);
  }
}

// What buffers must be for a unit: of each bucket the dtype, whose ranks share it, and its rows.
using UnitShape = std::vector<std::tuple<spf_dtype, bool, std::vector<int64_t>>>;

UnitShape ShapeOf(const ModelPlan& plan, int32_t unit) {
  UnitShape shape;
  for (const BucketPlan& bucket : plan.buckets) {
    if (bucket.unit != unit) continue;
    auto& [dtype, expert, sizes] = shape.emplace_back(bucket.dtype, bucket.expert, 0);
    for (const ParamShape& param : bucket.params) {
      sizes.push_back(param.numel);
      sizes.push_back(param.row);
    }
  }
  return shape;
}

void FindAlike(ModelPlan& plan) {
  std::vector<UnitShape> shapes;
  for (int32_t u = 0; u < plan.units(); ++u) shapes.push_back(ShapeOf(plan, u));
  const auto alike = [&](const UnitShape& shape) {
    return shape.empty() ? 0 : std::ranges::count(shapes, shape);
  };
  const auto most = std::ranges::max_element(shapes, {}, alike);
  for (const UnitShape& shape : shapes) plan.unit_alike.push_back(shape == *most);
}

// Modules are numbered in forward order. The root's own parameters may be used anywhere, so with
// them backward goes all the way.
void FindBackward(const spf_model& model, ModelPlan& plan) {
  for (int32_t u = 0; u < plan.units(); ++u) {
    plan.unit_in_backward.push_back(
        std::ranges::any_of(ParamsOf(model), [&](const spf_param& param) {
          const bool before = param.module < At(plan.unit_modules, u);
          return IsTrainable(param) && (before || At(plan.module_unit, param.module) == u);
        }));
  }
}

// The module with whose parameters those of this node are gathered: its unit's, or its own if it
// owns some; -1.
int32_t GatherModuleOf(const spf_model& model, const ModelPlan& plan, const spf_node& node) {
  const int32_t unit = At(plan.module_unit, node.module);
  if (unit != kNoUnit) return At(plan.unit_modules, unit);
  const auto owned = [&](const spf_param& param) { return param.module == node.module; };
  return std::ranges::any_of(ParamsOf(model), owned) ? node.module : -1;
}

// Only on the way forward: what comes again together with its neighbours (a layer that runs twice)
// has no place of its own.
void FindReentries(const spf_model& model, const spf_program& program, ModelPlan& plan) {
  std::set<int32_t> seen;
  int32_t furthest = -1, last = -1;
  const auto module_at = [&](int32_t i) { return GatherModuleOf(model, plan, program.nodes[i]); };
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    const int32_t here = module_at(i);
    const int32_t unit = At(plan.module_unit, program.nodes[i].module);
    if (unit != kNoUnit && here != last && seen.contains(here)) {
      int32_t next = i;
      while (next < program.n_nodes && (module_at(next) == here || module_at(next) < 0)) ++next;
      const int32_t before = next < program.n_nodes ? module_at(next) : model.n_modules;
      const auto has_backward = [&](const spf_node& node) {
        return At(plan.module_unit, node.module) == unit && node.uses[SPF_BWD].n > 0;
      };
      const Reentry reentry{unit, before,
                            std::any_of(program.nodes + i, program.nodes + next, has_backward)};
      if (last == furthest && before > furthest && std::ranges::count(plan.reentries, reentry) == 0)
        plan.reentries.push_back(reentry);
    }
    if (here < 0) continue;
    seen.insert(here);
    furthest = std::max(furthest, here);
    last = here;
  }
}

std::vector<int32_t> UnitModules(const spf_model& model,
                                 const std::vector<std::string>& unit_types) {
  std::vector<int32_t> units;
  std::vector<bool> inside;  // by module; parents come before their children
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const spf_module& module = model.modules[m];
    const bool nested = module.parent >= 0 && At(inside, module.parent);
    const bool matches = std::ranges::count(unit_types, module.type) > 0;
    if (matches && !nested) units.push_back(m);
    inside.push_back(nested || matches);
  }
  return units;
}

std::vector<int32_t> UnitOfModules(const spf_model& model,
                                   const std::vector<int32_t>& unit_modules) {
  std::vector<int32_t> unit_of(static_cast<size_t>(model.n_modules), kNoUnit);
  for (int32_t u = 0; u < Length(unit_modules); ++u) At(unit_of, At(unit_modules, u)) = u;
  for (int32_t m = 0; m < model.n_modules; ++m) {
    const int32_t parent = model.modules[m].parent;
    if (parent >= 0 && At(unit_of, m) == kNoUnit) At(unit_of, m) = At(unit_of, parent);
  }
  return unit_of;
}

// Parameters that nodes of several units use, or nodes both inside and outside units. Such a weight
// is kept outside units, so that it is gathered once and reduced once, after all its uses (FS-12;
// NVIDIA/Megatron-LM#6164).
std::set<int32_t> SharedParams(const spf_model& model, const std::vector<int32_t>& module_unit,
                               const std::vector<const spf_program*>& programs) {
  std::vector<std::set<int32_t>> users(static_cast<size_t>(model.n_params));
  for (int32_t p = 0; p < model.n_params; ++p)
    At(users, p).insert(At(module_unit, model.params[p].module));
  for (const spf_program* program : programs) {
    for (const spf_node& node : NodesOf(*program)) {
      for (spf_phase phase : {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
        for (const spf_use& use : UsesOf(node, phase)) {
          if (use.table == SPF_IN_PARAM) At(users, use.id).insert(At(module_unit, node.module));
        }
      }
    }
  }
  std::set<int32_t> shared;
  for (int32_t p = 0; p < model.n_params; ++p) {
    if (At(users, p).size() > 1) shared.insert(p);
  }
  return shared;
}

}  // namespace

BucketPlan KindOf(const spf_model& model, int32_t id, int32_t unit, const std::vector<bool>& muon) {
  const spf_param& param = model.params[id];
  return {unit, IsExpert(param), IsTrainable(param), !muon.empty() && At(muon, id), param.dtype,
          {}};
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
    const int32_t unit = shared.contains(p) ? kNoUnit : At(plan.module_unit, param.module);
    const BucketPlan key = KindOf(model, p, unit, muon);
    const ParamShape shape{p, param.numel, RowOf(param)};
    auto fits = [&](const BucketPlan& bucket) { return Fits(bucket, key, shape, bucket_size); };
    auto found = std::find_if(plan.buckets.begin(), plan.buckets.end(), fits);
    if (found == plan.buckets.end()) found = plan.buckets.insert(plan.buckets.end(), key);
    found->params.push_back(shape);
    plan.param_bucket.push_back(static_cast<int32_t>(found - plan.buckets.begin()));
  }
  GroupBuckets(plan);
  FindAlike(plan);
  FindBackward(model, plan);
  for (const spf_program* program : programs) FindReentries(model, *program, plan);
  return plan;
}

int32_t ModelPlan::GroupReadOf(int32_t param, bool backward) const {
  const int32_t group = GroupOfParam(param);
  if (!backward || unit_backward_groups.empty()) return group;
  const int32_t unit = At(groups, group).unit;
  if (unit == kNoUnit) return group;
  const std::vector<int32_t>& of_unit = At(unit_groups, unit);
  return At(GroupsForBackward(unit),
            static_cast<int32_t>(std::ranges::find(of_unit, group) - of_unit.begin()));
}

void AddBackwardCopies(ModelPlan& plan) {
  plan.unit_backward_groups.resize(plan.unit_groups.size());
  for (int32_t u = 0; u < plan.units(); ++u) {
    for (int32_t g : At(plan.unit_groups, u)) {
      At(plan.unit_backward_groups, u).push_back(Length(plan.groups));
      BucketGroup copy = At(plan.groups, g);
      copy.for_backward = true;
      plan.groups.push_back(std::move(copy));
    }
  }
}

}  // namespace reference
