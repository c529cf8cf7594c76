#include "conformance/checks/base/facts.h"

#include <algorithm>
#include <tuple>

#include "conformance/cases/bounds.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

bool Contains(const std::vector<int32_t>& list, int32_t rank) {
  return std::find(list.begin(), list.end(), rank) != list.end();
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c != ',') {
      part += c;
      continue;
    }
    if (!part.empty() && part != "none") parts.push_back(part);
    part.clear();
  }
  return parts;
}

}  // namespace

std::string ListText(const std::vector<int32_t>& ranks) {
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? "," : "") + std::to_string(ranks[i]);
  return text + "]";
}

InstanceFacts::InstanceFacts(const InstanceSpec& spec, int32_t world)
    : spec_(&spec),
      model_(std::make_unique<Model>(spec.model, TokensToSum(spec))),
      families_(GroupFamilies(spec, world)),
      calls_(ExpandScript(spec)),
      data_rank_(size_t(world), -1),
      place_(size_t(world)) {
  const bool experts = spec.model.experts || spec.model.moe.experts > 0;
  for (int32_t rank = 0; rank < world; ++rank) {
    for (const GroupFamily& family : families_) {
      const int32_t index = IndexIn(family, rank, nullptr);
      if (index < 0) continue;
      if (family.name == "dp_cp") At(data_rank_, rank) = index;
      if (family.name == "ep" && experts) At(place_, rank).ep = index;
      if (family.name == "pp" && spec.model.pp > 1) At(place_, rank).pp = index;
      if (family.name == "tp" && spec.model.tp > 1) At(place_, rank).tp = index;
      if (family.name == "cp" && spec.model.cp > 1) At(place_, rank).cp = index;
    }
  }
  for (int32_t pp = 0; pp < spec.model.pp; ++pp) units_.push_back(UnitsOf(pp));
  // Every part of the model, whether or not a rank of this world holds it: keys do not depend on
  // the world.
  for (int32_t pp = 0; pp < spec.model.pp; ++pp) {
    for (int32_t ep = 0; ep < spec.model.ep; ++ep) {
      for (int32_t tp = 0; tp < spec.model.tp; ++tp) {
        for (int32_t cp = 0; cp < spec.model.cp; ++cp) AddParams({ep, pp, tp, cp});
      }
    }
  }
}

bool InstanceFacts::SumsParts(const std::vector<int32_t>& ranks, int32_t world_rank,
                              const std::vector<const ParamFacts*>& params) const {
  const std::vector<int32_t>* tp = List("tp", world_rank);
  if (tp == nullptr || params.empty()) return false;
  std::vector<int32_t> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  return sorted == *tp && std::all_of(params.begin(), params.end(),
                                      [](const ParamFacts* param) { return param->part; });
}

void InstanceFacts::AddParams(ModelRank place) {
  const spf_model& tables = model_->Tables(place);
  std::vector<ParamFacts>& row = params_[place];
  for (int32_t id = 0; id < tables.n_params; ++id) {
    const spf_param& param = tables.params[id];
    ParamFacts facts;
    facts.tensor = param.name;
    facts.name = param.tp_dim < 0 || spec_->model.tp == 1
                     ? facts.tensor
                     : ShardName(param.name, place.tp, spec_->model.tp);
    facts.expert = (param.flags & SPF_PARAM_EXPERT) != 0;
    facts.part = (param.flags & SPF_PARAM_SEQUENCE_PARALLEL) != 0 && spec_->model.tp > 1;
    facts.frozen = (param.flags & SPF_PARAM_FROZEN) != 0;
    facts.matrix = IsMatrix(tables, param);
    facts.numel = param.numel;
    facts.row = param.n_dim > 0 && param.shape[0] > 0 ? param.numel / param.shape[0] : 1;
    facts.dtype = param.dtype;
    facts.module = param.module;
    facts.unit = UnitIn(At(units_, place.pp), param.module);
    row.push_back(std::move(facts));
  }
  FindShared(place);
  for (ParamFacts& facts : row) {
    const auto known = std::find_if(by_key_.begin(), by_key_.end(), [&](const ParamFacts& other) {
      return other.name == facts.name;
    });
    facts.key = static_cast<int32_t>(known - by_key_.begin());
    if (known == by_key_.end()) by_key_.push_back(facts);
  }
}

bool InstanceFacts::IsMatrix(const spf_model& tables, const spf_param& param) {
  for (int32_t m = param.n_dim == 2 ? param.module : -1; m >= 0; m = tables.modules[m].parent) {
    const std::string_view type = tables.modules[m].type;
    if (type == "TransformerLayer" || type == "MTP") return true;
  }
  return false;
}

// A parameter that nodes outside its unit use stays gathered for them: it belongs to no unit.
void InstanceFacts::FindShared(ModelRank place) {
  for (int32_t id = 0; id < model_->node_count(place); ++id) {
    const spf_node& node = model_->Node(id, place);
    for (const spf_uses& uses : node.uses) {
      for (int32_t i = 0; i < uses.n; ++i) {
        if (uses.use[i].table != SPF_IN_PARAM && uses.use[i].table != SPF_IN_GRAD) continue;
        ParamFacts& param = At(params_[place], uses.use[i].id);
        if (param.unit != UnitIn(At(units_, place.pp), node.module)) param.unit = -1;
      }
    }
  }
}

bool InstanceFacts::UnitMayBeAbsent(int32_t world_rank, int32_t call, int32_t unit) const {
  if (size_t(call) >= calls_.size() || At(calls_, call).step < 0) return true;
  for (int32_t m = 0; m < spec_->microbatches; ++m) {
    const int64_t sample = int64_t{m} * DpCpSize(*spec_) + DataRank(world_rank);
    const spf_program& program = model_->Program(At(calls_, call).step, sample, Place(world_rank));
    // A frozen unit that nothing trainable precedes has no backward, but is gathered in its place.
    const int phase = At(calls_, call).letter == 't' ? SPF_BWD : SPF_FWD;
    const bool runs =
        std::any_of(program.nodes, program.nodes + program.n_nodes, [&](const spf_node& node) {
          return UnitOfModule(node.module, world_rank) == unit && node.uses[phase].n > 0;
        });
    if (!runs) return true;
  }
  return false;
}

// What must be equal of two units: of each bucket the dtype, the kind, and what lies in it.
InstanceFacts::UnitShape InstanceFacts::ShapeOf(int32_t unit, int32_t world_rank) const {
  UnitShape shape;
  std::vector<std::tuple<int32_t, bool, bool>> buckets;
  for (int32_t id = 0; id < n_params(world_rank); ++id) {
    const ParamFacts& param = Param(world_rank, id);
    if (param.unit != unit) continue;
    const std::tuple of{param.dtype, param.expert, param.frozen};
    const auto bucket = std::ranges::find(buckets, of);
    const auto place = static_cast<size_t>(bucket - buckets.begin());
    if (bucket == buckets.end()) {
      buckets.push_back(of);
      shape.push_back({param.dtype, param.expert, {}});
    }
    std::get<2>(shape[place]).emplace_back(param.numel, param.row);
  }
  return shape;
}

std::vector<int32_t> InstanceFacts::UnitsAlike(int32_t world_rank) const {
  std::map<UnitShape, std::vector<int32_t>> by_shape;
  std::vector<int32_t> alike;
  for (const int32_t unit : units(world_rank)) {
    const UnitShape shape = ShapeOf(unit, world_rank);
    if (!shape.empty()) by_shape[shape].push_back(unit);
  }
  for (const auto& [shape, units] : by_shape) {
    const bool first = units.size() == alike.size() && units.front() < alike.front();
    if (units.size() > alike.size() || first) alike = units;
  }
  return alike;
}

// Layer-wise engines have buckets instead.
InstanceFacts::Units InstanceFacts::UnitsOf(int32_t pp) const {
  Units found;
  if (spec_->strategy == ShardingStrategy::kLayerWise) return found;
  const spf_model& tables = model_->Tables({0, pp, 0});
  const std::vector<std::string> types = Split(spec_->units);
  found.of_module.assign(size_t(tables.n_modules), -1);
  for (int32_t id = 0; id < tables.n_modules; ++id) {
    const spf_module& module = tables.modules[id];
    const int32_t above = module.parent < 0 ? -1 : At(found.of_module, module.parent);
    const bool match = std::find(types.begin(), types.end(), module.type) != types.end();
    At(found.of_module, id) = above >= 0 ? above : match ? id : -1;
    if (above < 0 && match) found.units.push_back(id);
  }
  return found;
}

int32_t InstanceFacts::UnitIn(const Units& units, int32_t module) {
  return size_t(module) < units.of_module.size() ? At(units.of_module, module) : -1;
}

int32_t InstanceFacts::UnitOfModule(int32_t module, int32_t world_rank) const {
  return UnitIn(At(units_, Place(world_rank).pp), module);
}

int32_t InstanceFacts::n_params(int32_t world_rank) const {
  return static_cast<int32_t>(params_.at(Place(world_rank)).size());
}

const ParamFacts& InstanceFacts::Param(int32_t world_rank, int32_t local) const {
  return At(params_.at(Place(world_rank)), local);
}

const ParamFacts& InstanceFacts::ByKey(int32_t key) const { return At(by_key_, key); }

std::string InstanceFacts::ModuleName(int32_t module, int32_t world_rank) const {
  const spf_model& tables = model_->Tables(Place(world_rank));
  if (module < 0 || module >= tables.n_modules) return "module " + std::to_string(module);
  const std::string name = tables.modules[module].name;
  return name.empty() ? "root" : name;
}

const std::vector<int32_t>* InstanceFacts::List(std::string_view family, int32_t world_rank) const {
  for (const GroupFamily& candidate : families_) {
    if (candidate.name != family) continue;
    for (const auto& list : candidate.lists) {
      if (Contains(list, world_rank)) return &list;
    }
  }
  return nullptr;
}

const std::vector<int32_t>* InstanceFacts::FullList(bool expert, int32_t world_rank) const {
  return List(expert ? "expt_dp" : "dp_cp", world_rank);
}

const std::vector<int32_t>* InstanceFacts::InnerList(bool expert, int32_t world_rank) const {
  if (spec_->outer <= 1) return FullList(expert, world_rank);
  return List(expert ? "intra_expt_dp" : "intra_dp_cp", world_rank);
}

const std::vector<int32_t>* InstanceFacts::OuterList(bool expert, int32_t world_rank) const {
  return spec_->outer <= 1 ? nullptr : List(expert ? "inter_expt_dp" : "inter_dp_cp", world_rank);
}

const std::vector<int32_t>* InstanceFacts::PartList(bool expert, int32_t world_rank) const {
  return expert || !ReshardsToFewer(*spec_) ? nullptr : List("dp_cp_reshard", world_rank);
}

bool InstanceFacts::Twin(bool expert) const {
  return HasTwin(*spec_, expert) && !HasWrongTwin(*spec_);
}

}  // namespace shardproof
