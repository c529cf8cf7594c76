#include "conformance/model/c_api/facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/cases/knob.h"

namespace shardproof::c_api {
namespace {

using nlohmann::json;

// Knobs that the facts of an instance say under names of their own.
bool SaidElsewhere(const std::string& knob) {
  return knob == "name" || knob == "script" || knob == "rank_offset" || knob == "rank_span";
}

// What engines are not told as knobs, where it differs from the default: sizes and traits of the
// model, axes of explicit groups.
json Traits(const InstanceSpec& spec, const std::map<std::string, std::string>& told) {
  const InstanceSpec usual;
  json traits = json::object();
  for (const Knob& knob : KnobTable()) {
    if (knob.text == nullptr || told.contains(knob.name) || SaidElsewhere(knob.name)) continue;
    if (const std::string value = knob.text(spec); value != knob.text(usual))
      traits[knob.name] = value;
  }
  return traits;
}

// What a knob is where a case does not set it.
json Defaults() {
  const InstanceSpec usual;
  json defaults = json::object();
  for (const Knob& knob : KnobTable()) {
    if (knob.told != Told::kNever && knob.text != nullptr) defaults[knob.name] = knob.text(usual);
  }
  return defaults;
}

json Calls(const InstanceSpec& spec) {
  json calls = json::array();
  for (const ScriptCall& call : ExpandScript(spec))
    calls.push_back({std::string(1, call.letter), call.step});
  return calls;
}

json InstanceFacts(const Case& c, const InstanceSpec& spec) {
  const std::map<std::string, std::string> told = Knobs(spec);
  json facts = {{"name", spec.name},
                {"script", spec.script},
                {"calls", Calls(spec)},
                {"knobs", told},
                {"traits", Traits(spec, told)},
                {"explicit_groups", !spec.grid},
                {"first_rank", spec.offset},
                {"ranks", spec.span}};
  if (!c.illegal.empty()) return facts;
  facts["dp_cp"] = DpCpSize(spec);
  facts["grad_divisor"] = GradDivisor(spec);
  json groups = json::array();
  for (const GroupFamily& family : GroupFamilies(spec, c.world)) {
    for (const std::vector<int32_t>& list : family.lists) groups.push_back({family.name, list});
  }
  facts["groups"] = std::move(groups);
  return facts;
}

json UsesOf(const spf_uses& uses) {
  json list = json::array();
  for (int32_t i = 0; i < uses.n; ++i)
    list.push_back({uses.use[i].table, uses.use[i].access, uses.use[i].id});
  return list;
}

json NodesOf(const Model& model, ModelRank rank) {
  json nodes = json::array();
  for (int32_t i = 0; i < model.node_count(rank); ++i) {
    const spf_node& node = model.Node(i, rank);
    json row = {node.module, node.kind, node.name};
    for (const spf_uses& uses : node.uses) row.push_back(UsesOf(uses));
    row.push_back(node.send_counts);
    row.push_back(node.recv_counts);
    row.push_back(node.chunk);
    nodes.push_back(std::move(row));
  }
  return nodes;
}

}  // namespace

RankPlace PlaceOf(const InstanceSpec& spec, int32_t world, int32_t rank) {
  RankPlace place;
  place.data_ranks = DpCpSize(spec);
  for (const GroupFamily& family : GroupFamilies(spec, world)) {
    const std::vector<int32_t>* members = nullptr;
    const int32_t index = IndexIn(family, rank, &members);
    if (index < 0) continue;
    if (family.name == "dp_cp") place.data_rank = index;
    if (family.name == "ep" && (spec.model.experts || spec.model.moe.experts > 0))
      place.model.ep = index;
    if (family.name == "pp" && spec.model.pp > 1) place.model.pp = index;
    if (family.name == "tp" && spec.model.tp > 1) place.model.tp = index;
    if (family.name == "cp" && spec.model.cp > 1) place.model.cp = index;
  }
  return place;
}

std::string CaseFacts(const Case& c) {
  if (!c.before.empty())
    throw std::invalid_argument("case " + Id(c) +
                                " has several legs (.then.), which shardproof run plays");
  json instances = json::array();
  for (const InstanceSpec& spec : c.instances) instances.push_back(InstanceFacts(c, spec));
  return json{{"id", Id(c)},
              {"world", c.world},
              {"illegal", c.illegal},
              {"defaults", Defaults()},
              {"instances", std::move(instances)}}
      .dump();
}

std::string ModelTables(const Model& model, const RankPlace& place) {
  const spf_model& tables = model.Tables(place.model);
  json modules = json::array(), params = json::array(), values = json::array();
  for (int32_t i = 0; i < tables.n_modules; ++i) {
    const spf_module& m = tables.modules[i];
    modules.push_back({m.parent, m.name, m.type});
  }
  for (int32_t i = 0; i < tables.n_params; ++i) {
    const spf_param& p = tables.params[i];
    const std::vector<int64_t> shape(p.shape, p.shape + p.n_dim);
    params.push_back({p.name, p.module, p.flags, p.dtype, shape, p.tp_dim});
  }
  for (int32_t i = 0; i < tables.n_values; ++i) {
    const spf_value& v = tables.values[i];
    values.push_back({v.name, v.flags, v.dtype, v.max_rows, v.row_elems, v.rows_from});
  }
  return json{{"data_rank", place.data_rank},  {"data_ranks", place.data_ranks},
              {"modules", std::move(modules)}, {"params", std::move(params)},
              {"values", std::move(values)},   {"nodes", NodesOf(model, place.model)}}
      .dump();
}

}  // namespace shardproof::c_api
