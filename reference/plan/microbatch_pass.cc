#include "reference/plan/microbatch_pass.h"

#include <algorithm>
#include <set>

namespace reference {
namespace {

bool Contains(const std::vector<ValueRef>& values, const ValueRef& value) {
  return std::ranges::count(values, value) > 0;
}

// Where bucket groups are gathered: under the overlap each when it is needed, since nodes of two
// microbatches come in turn (fine_grained_param_gather); else with all of its unit.
Place PlaceOf(const PlanFacts& facts, int32_t group, bool backward) {
  const int32_t unit = At(facts.buckets.groups, group).unit;
  if (facts.config.GathersByModule() || unit == kNoUnit) return {-1, kNoUnit, {group}};
  return {facts.ModuleOf(unit), unit,
          backward ? GroupsNeededInBackward(facts, unit) : At(facts.buckets.unit_groups, unit)};
}

// Units of the node's operations, each once, that are no layers of the program.
std::set<int32_t> OtherUnits(const PlanFacts& facts, const ScheduleNodes& nodes,
                             const PlannedNode& node) {
  std::set<int32_t> units;
  for (const Operation& operation : node.operations) units.insert(facts.UnitOf(operation));
  units.erase(kNoUnit);
  for (const LayerNodes& layer : nodes.layers) units.erase(facts.UnitOf(layer.module));
  return units;
}

// From the end: the last operation that adds to a bucket group completes it, and the last node of
// each side that uses a unit leaves it.
void FindEnds(const PlanFacts& facts, MicrobatchPass& pass) {
  std::set<int32_t> added;
  std::set<std::pair<bool, int32_t>> used;
  for (auto node = pass.order.rbegin(); node != pass.order.rend(); ++node) {
    const std::vector<Operation>& operations = node->planned.operations;
    for (auto operation = operations.rbegin(); operation != operations.rend(); ++operation) {
      const std::vector<int32_t> groups = GroupsOf(facts, *operation, SPF_IN_GRAD);
      for (auto g = groups.rbegin(); g != groups.rend(); ++g) {
        if (added.insert(*g).second) node->complete.insert(node->complete.begin(), *g);
      }
    }
    for (int32_t unit : OtherUnits(facts, pass.nodes, node->planned)) {
      if (used.insert({node->planned.backward(), unit}).second) node->left.push_back(unit);
    }
  }
}

void FindOtherChunks(const PlanFacts& facts, const spf_program& program, MicrobatchPass& pass) {
  for (const spf_node& node : NodesOf(program)) {
    if (node.chunk == pass.id.chunk) continue;
    for (int32_t g : GroupsOf(facts, {&node, SPF_WGRAD}, SPF_IN_GRAD)) {
      At(pass.in_other_chunks, g) = true;
      if (node.chunk < pass.id.chunk) At(pass.in_earlier_chunks, g) = true;
    }
  }
}

}  // namespace

int32_t PlaceWith(const GatherOrder& order, int32_t group) {
  const auto with = [&](const Place& place) { return std::ranges::count(place.groups, group) > 0; };
  return static_cast<int32_t>(std::ranges::find_if(order, with) - order.begin());
}

MicrobatchPass::MicrobatchPass(const PlanFacts& facts, ChunkPass of, bool forward_only)
    : Pass{of, {}, {}, 0},
      eval(forward_only),
      in_other_chunks(facts.groups.size()),
      in_earlier_chunks(facts.groups.size()) {
  const spf_program& program = *At(facts.programs, id.microbatch);
  nodes = DeriveScheduleNodes(facts.model, program, id.chunk);
  const ScheduleSettings settings{
      facts.config.delay_wgrad, facts.config.early_attn_release, eval,
      PlanRecompute(facts.model, false, facts.config.recompute_modules).on_demand};
  const std::vector<PlannedNode> planned = PlanOperations(facts.model, nodes, settings);
  deaths = PlanDeaths(planned, facts.model.n_values);
  for (const PlannedNode& node : planned) {
    for (const Operation& operation : node.operations) {
      GatherOrder& places = needs[node.backward()];
      for (int32_t g : GroupsOf(facts, operation, SPF_IN_PARAM)) {
        if (PlaceWith(places, g) == Length(places))
          places.push_back(PlaceOf(facts, g, node.backward()));
      }
    }
    const size_t begin = operations.size();
    operations.insert(operations.end(), node.operations.begin(), node.operations.end());
    order.push_back({node, begin, {}, {}});
  }
  FindEnds(facts, *this);
  FindOtherChunks(facts, program, *this);
  for (const bool gradients : {false, true}) {
    const std::vector<ValueRef> sent = Crossing(facts, gradients, true);
    for (std::vector<ValueRef>& dead : deaths)
      std::erase_if(dead, [&](const ValueRef& value) { return Contains(sent, value); });
  }
}

std::vector<ValueRef> MicrobatchPass::Crossing(const PlanFacts& facts, bool gradients,
                                               bool leaving) const {
  // Values come from the previous stage; gradients go there.
  const uint32_t flag = gradients == leaving ? SPF_VALUE_FROM_PREV : SPF_VALUE_TO_NEXT;
  std::vector<ValueRef> crossing;
  for (const Operation& operation : operations) {
    for (const spf_use& use : UsesOf(*operation.node, SPF_FWD)) {
      const ValueRef value{gradients, use.id};
      if (use.table != SPF_IN_ACT || (facts.model.values[use.id].flags & flag) == 0) continue;
      if (!Contains(crossing, value)) crossing.push_back(value);
    }
  }
  return crossing;
}

}  // namespace reference
