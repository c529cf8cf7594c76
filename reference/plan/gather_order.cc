#include "reference/plan/gather_order.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "reference/core/at.h"
#include "reference/plan/layer_nodes.h"
#include "reference/plan/program.h"

namespace reference {
namespace {

// Bucket groups that are first needed at this place: they hold a parameter of the unit, or for a
// place outside units one of the module itself.
std::vector<int32_t> GroupsAt(const PlanFacts& facts, const Place& place) {
  std::set<int32_t> groups;
  for (int32_t p = 0; p < facts.model.n_params; ++p) {
    const int32_t owner = facts.model.params[p].module;
    if (place.unit == kNoUnit ? owner == place.module : facts.UnitOf(owner) == place.unit)
      groups.insert(facts.buckets.GroupOfParam(p));
  }
  return {groups.begin(), groups.end()};
}

void Add(const PlanFacts& facts, Place place, bool in_backward, UnitOrder& order) {
  order.forward.push_back(place);
  if (place.unit == kNoUnit || !in_backward) return;
  place.groups = At(facts.buckets.unit_in_backward, place.unit)
                     ? facts.buckets.GroupsForBackward(place.unit)
                     : std::vector<int32_t>{};
  order.backward.insert(order.backward.begin(), std::move(place));
}

// Where backward reads copies of its own: those of forward that hold a parameter of what is run
// again.
std::vector<int32_t> ReadAgain(const PlanFacts& facts, int32_t unit) {
  if (!facts.config.backward_copies) return {};
  const Recompute again =
      PlanRecompute(facts.model, facts.config.recompute, facts.config.recompute_modules);
  std::set<int32_t> groups;
  for (int32_t p = 0; p < facts.model.n_params; ++p) {
    const int32_t owner = facts.model.params[p].module, group = facts.buckets.GroupOfParam(p);
    if (At(facts.buckets.groups, group).unit != unit) continue;
    if ((!again.segment_of.empty() && At(again.segment_of, owner) >= 0) ||
        (!again.on_demand.empty() && At(again.on_demand, owner)))
      groups.insert(group);
  }
  return {groups.begin(), groups.end()};
}

// A layer that is run again comes in forward order, and then its units in reverse: the last one
// turns around, and the others come twice.
GatherOrder WithForwardAgain(const PlanFacts& facts, const GatherOrder& backward) {
  const spf_model& model = facts.model;
  GatherOrder order;
  for (auto begin = backward.begin(); begin != backward.end();) {
    const int32_t layer = AncestorOfType(model, begin->module, "TransformerLayer");
    const auto end = std::find_if(begin + 1, backward.end(), [&](const Place& place) {
      return layer < 0 || AncestorOfType(model, place.module, "TransformerLayer") != layer;
    });
    for (auto place = end; place-- != begin + 1;) {
      order.push_back(*place);
      const std::vector<int32_t> forward = ReadAgain(facts, place->unit);
      if (!place->groups.empty() && !forward.empty()) order.back().groups = forward;
    }
    order.push_back(*begin);
    if (!begin->groups.empty()) order.back().groups = GroupsNeededInBackward(facts, begin->unit);
    order.insert(order.end(), begin + 1, end);
    begin = end;
  }
  return order;
}

}  // namespace

std::vector<int32_t> GroupsNeededInBackward(const PlanFacts& facts, int32_t unit) {
  std::vector<int32_t> groups = ReadAgain(facts, unit);
  const std::vector<int32_t>& own = facts.buckets.GroupsForBackward(unit);
  groups.insert(groups.end(), own.begin(), own.end());
  return groups;
}

UnitOrder OrderUnits(const PlanFacts& facts) {
  UnitOrder order;
  const spf_model& model = facts.model;
  for (int32_t m = 0; m <= model.n_modules; ++m) {
    for (const Reentry& again : facts.buckets.reentries) {
      if (again.before != m) continue;
      Add(facts, At(order.forward, At(order.place_of, facts.ModuleOf(again.unit))),
          again.in_backward, order);
    }
    if (m == model.n_modules) break;
    Place place{m, facts.UnitOf(m), {}};
    const bool inside = place.unit != kNoUnit && facts.ModuleOf(place.unit) != m;
    if (!inside) place.groups = GroupsAt(facts, place);
    if (inside) {
      order.place_of.push_back(At(order.place_of, model.modules[m].parent));
    } else if (place.unit != kNoUnit || !place.groups.empty()) {
      order.place_of.push_back(Length(order.forward));
      Add(facts, std::move(place), true, order);
    } else {
      order.place_of.push_back(-1);
    }
  }
  if (facts.config.recompute) {
    order.backward = WithForwardAgain(facts, order.backward);
  } else if (facts.config.backward_copies) {
    for (Place& place : order.backward) {
      if (!place.groups.empty()) place.groups = GroupsNeededInBackward(facts, place.unit);
    }
  }
  return order;
}

}  // namespace reference
