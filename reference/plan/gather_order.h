// gather_order.h: in which order do units come, whatever a rank's program uses?
//
// One order that every rank shares: modules by number in forward, units in reverse in backward
// (FS-08, FS-11; NVIDIA/Megatron-LM#2218).
#pragma once
#include <vector>

#include "reference/plan/facts.h"

namespace reference {

// A unit, or (forward) a module outside units that owns parameters; under the 1F1B schedule one
// bucket group.
struct Place {
  int32_t module = -1;
  int32_t unit = kNoUnit;
  std::vector<int32_t> groups;
};
using GatherOrder = std::vector<Place>;

struct UnitOrder {
  // A unit that comes again after later ones has a place there, too; in backward, parts of layers
  // that are run again have one before.
  GatherOrder forward, backward;
  std::vector<int32_t> place_of;  // by module, in forward: its unit's or its own, or -1
};

UnitOrder OrderUnits(const PlanFacts& facts);

// Of a unit: forward's copies for what runs again, if backward reads others, then what it reads.
std::vector<int32_t> GroupsNeededInBackward(const PlanFacts& facts, int32_t unit);

}  // namespace reference
