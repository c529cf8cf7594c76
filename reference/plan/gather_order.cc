#include "reference/plan/gather_order.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "reference/core/at.h"
#include "reference/plan/layer_nodes.h"

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
  if (!At(facts.buckets.unit_in_backward, place.unit)) place.groups.clear();
  order.backward.insert(order.backward.begin(), std::move(place));
}

// A layer that is run again comes in forward order, and then its units in reverse: the last one
// turns around, and the others come twice.
GatherOrder WithForwardAgain(const spf_model& model, const GatherOrder& backward) {
  GatherOrder order;
  for (auto begin = backward.begin(); begin != backward.end();) {
    const int32_t layer = AncestorOfType(model, begin->module, "TransformerLayer");
    const auto end = std::find_if(begin + 1, backward.end(), [&](const Place& place) {
      return layer < 0 || AncestorOfType(model, place.module, "TransformerLayer") != layer;
    });
    std::reverse_copy(begin + 1, end, std::back_inserter(order));
    order.insert(order.end(), begin, end);
    begin = end;
  }
  return order;
}

}  // namespace

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
  if (facts.config.recompute) order.backward = WithForwardAgain(model, order.backward);
  return order;
}

}  // namespace reference
