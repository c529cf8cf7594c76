// microbatch_pass.h: what follows from one microbatch's own program, whatever runs beside it?
//
// The schedule nodes of a microbatch come in the same order in every combined step. So its
// operations are one list, known before it starts: what it needs first, what is last to use a unit
// or to add to a gradient, and when values die, are found by looking at that list.
#pragma once
#include "reference/plan/plan_operations.h"
#include "reference/plan/writer.h"

namespace reference {

struct MicrobatchPass : Pass {
  struct PassNode {
    PlannedNode planned;
    size_t begin = 0;               // its first operation
    std::vector<int32_t> complete;  // bucket groups to which nothing later adds, in that order
    std::vector<int32_t> left;  // units that are no layers and that no later node of this side uses
  };

  // eval: forward only.
  MicrobatchPass(const PlanFacts& facts, ChunkPass id, bool eval);

  const bool eval;
  ScheduleNodes nodes;
  std::vector<PassNode> order;          // forward, then backward
  GatherOrder needs[2];                 // places by first need: forward, backward
  std::vector<bool> in_other_chunks;    // by bucket group: other chunks add to its gradient
  std::vector<bool> in_earlier_chunks;  // which come later in backward

  int32_t layers() const { return Length(nodes.layers); }
  // Values (or their gradients) that leave this stage, or come into it. What leaves is freed by who
  // sends it.
  std::vector<ValueRef> Crossing(const PlanFacts& facts, bool gradients, bool leaving) const;
};

// Where the bucket group is gathered; behind the last place if nowhere.
int32_t PlaceWith(const GatherOrder& order, int32_t group);

}  // namespace reference
