#include "reference/plan/sequential.h"

#include <algorithm>
#include <set>

#include "reference/core/at.h"

namespace reference {
namespace {

// Operations that follow each other at one place of an order.
struct Window {
  int32_t place = -1;  // nothing is gathered for a window without one
  int32_t unit = kNoUnit;
  size_t begin = 0, end = 0;  // operations
  bool last = false;          // of its unit
};

// The next place of a unit after this one; its first place if there is no other.
int32_t NextPlace(const GatherOrder& order, int32_t unit, int32_t after) {
  const auto matches = [&](const Place& place) { return place.unit == unit; };
  auto found = std::find_if(order.begin() + after + 1, order.end(), matches);
  if (found == order.end()) found = std::find_if(order.begin(), order.end(), matches);
  return static_cast<int32_t>(found - order.begin());
}

// Outside units, in forward: the place of its module; a module whose nodes read the parameters of
// its children (a group of experts) comes with the last of them.
int32_t PlaceOf(const PlanFacts& facts, const UnitOrder& order, const Operation& operation) {
  const int32_t module = operation.node->module;
  int32_t place = At(order.place_of, module);
  for (const spf_use& use : UsesOf(operation)) {
    if (use.table != SPF_IN_PARAM) continue;
    const int32_t owner = facts.model.params[use.id].module;
    int32_t above = owner;
    while (above > module) above = facts.model.modules[above].parent;
    if (module > 0 && above == module) place = std::max(place, At(order.place_of, owner));
  }
  return place;
}

// Cuts the forward or the backward of a pass: every place of the order up to each operation's, and
// the rest of the order at the end. Units that backward does not reach have no window.
std::vector<Window> Cut(const PlanFacts& facts, const UnitOrder& units, const Pass& pass,
                        bool backward) {
  const GatherOrder& order = backward ? units.backward : units.forward;
  const size_t begin = backward ? pass.backward : 0;
  const size_t end = backward ? pass.operations.size() : pass.backward;
  std::vector<Window> windows{{-1, kNoUnit, begin, begin}};
  int32_t place = -1;
  const auto visit = [&](int32_t p, size_t i) {
    const int32_t unit = At(order, p).unit;
    const bool reached = !backward || At(facts.buckets.unit_in_backward, unit);
    windows.push_back({p, reached ? unit : kNoUnit, i, i});
  };
  for (size_t i = begin; i < end; ++i) {
    const int32_t unit = facts.UnitOf(pass.operations[i]);
    int32_t until = backward ? -1 : PlaceOf(facts, units, pass.operations[i]);
    if (unit != windows.back().unit) {
      windows.push_back({-1, kNoUnit, i, i});
      if (unit != kNoUnit) until = NextPlace(order, unit, place);
    }
    while (place < until) visit(++place, i);
    if (unit != windows.back().unit) visit(until, i);  // again, and there is no place for that
    windows.back().end = i + 1;
  }
  while (place + 1 < Length(order)) visit(++place, end);
  std::set<int32_t> later;
  for (auto window = windows.rbegin(); window != windows.rend(); ++window)
    window->last = later.insert(window->unit).second;
  return windows;
}

// The places of these windows: what comes again together with its neighbours stands there again.
GatherOrder InOrder(const GatherOrder& order, const std::vector<Window>& windows) {
  GatherOrder places;
  for (const Window& window : windows) {
    if (window.place >= 0) places.push_back(At(order, window.place));
  }
  return places;
}

void Run(PlanWriter& write, const Pass& pass, const Window& window) {
  for (size_t i = window.begin; i < window.end; ++i) {
    write.gathering.Need(pass.operations[i]);
    write.Run(pass, i);
  }
}

void Forward(PlanWriter& write, const UnitOrder& units, const Pass& pass) {
  const int32_t m = pass.id.microbatch;
  const bool training = pass.backward < pass.operations.size();
  std::set<int32_t> registered;
  write.Mark(SPF_HOOK_FORWARD, 0, m);  // H0
  const std::vector<Window> windows = Cut(write.facts, units, pass, false);
  const GatherOrder order = InOrder(units.forward, windows);
  int32_t place = -1;
  for (const Window& window : windows) {
    if (window.place >= 0) {
      write.gathering.Acquire(order, ++place);
      write.Mark(SPF_HOOK_PRE_FORWARD, At(units.forward, window.place).module, m);  // H1
    }
    const int32_t unit = window.unit;
    if (training && unit != kNoUnit && registered.insert(unit).second)
      write.Mark(SPF_HOOK_REGISTER_BACKWARD, write.facts.ModuleOf(unit), m);  // H2
    Run(write, pass, window);
    if (unit == kNoUnit) continue;
    write.Mark(SPF_HOOK_POST_FORWARD, write.facts.ModuleOf(unit), m);  // H3: reshard
    const bool comes_again = !window.last || At(write.facts.buckets.unit_in_backward, unit);
    if (training && comes_again) {
      write.gathering.ReleaseAfterForward(unit);
    } else {
      write.gathering.Release(unit, Gathering::Pass::kForward);
    }
  }
}

void Backward(PlanWriter& write, const UnitOrder& units, const Pass& pass) {
  const PlanFacts& facts = write.facts;
  const int32_t m = pass.id.microbatch;
  write.Mark(SPF_HOOK_ROOT_PRE_BACKWARD, 0, m);  // H4
  write.reducing.Begin(facts.buckets.root_groups);
  const std::vector<Window> windows = Cut(facts, units, pass, true);
  const GatherOrder order = InOrder(units.backward, windows);
  write.gathering.Prefetch(order);
  int32_t place = -1;
  for (const Window& window : windows) {
    const int32_t unit = window.unit;
    place += window.place >= 0;
    if (unit == kNoUnit) {
      Run(write, pass, window);
      continue;
    }
    const std::vector<int32_t>& groups = At(facts.buckets.unit_groups, unit);
    write.gathering.Acquire(order, place);
    write.reducing.Begin(groups);
    write.Mark(SPF_HOOK_PRE_BACKWARD, facts.ModuleOf(unit), m);  // H5
    Run(write, pass, window);
    write.Mark(SPF_HOOK_POST_BACKWARD, facts.ModuleOf(unit), m);  // H6: reshard
    write.gathering.Release(unit, Gathering::Pass::kBackward);
    if (!window.last) continue;  // its gradients are not complete, on this rank or another one
    write.Mark(SPF_HOOK_ACCUMULATE, facts.ModuleOf(unit), m);  // H7
    write.reducing.HandOver(groups, facts.IsLast(m));
  }
  write.Mark(SPF_HOOK_ROOT_POST_BACKWARD, 0, m);  // H8
  write.reducing.HandOver(facts.buckets.root_groups, facts.IsLast(m));
}

}  // namespace

void PlanSequentialTraining(PlanWriter& write) {
  const UnitOrder units = OrderUnits(write.facts);
  write.BeginStep();
  write.gathering.Start(units.forward);
  for (int32_t m = 0; m < write.facts.config.microbatches; ++m) {
    const Pass pass = write.Open(m, true);
    Forward(write, units, pass);
    Backward(write, units, pass);
    write.Add(Do::kClose, pass.id);
  }
  write.EndStep();
}

void PlanSequentialEval(PlanWriter& write) {
  const UnitOrder units = OrderUnits(write.facts);
  write.Mark(SPF_HOOK_START_PARAM_SYNC, 0, 0);
  write.gathering.Start(units.forward);
  for (int32_t m = 0; m < write.facts.config.microbatches; ++m) {
    const Pass pass = write.Open(m, false);
    Forward(write, units, pass);
    write.Add(Do::kClose, pass.id);
  }
  write.gathering.ReleaseAll();
}

}  // namespace reference
