// training_grid.h: which groups does one engine's grid have, by name?
//
// Dense parameters live on the grid {tp, cp, dp, pp}; experts on a second factorisation of the same
// ranks {etp, ep, edp, pp}, in which context parallelism is part of the expert data-parallel size.
// Both follow one order.
#pragma once
#include "reference/groups/hybrid.h"

namespace reference {

struct GridSizes {
  int32_t tp = 1, cp = 1, ep = 1, pp = 1, etp = 1;
  std::string order = "tp-cp-ep-dp-pp";
  int32_t offset = 0, span = 0;     // ranks [offset, offset + span) of the world
  int32_t optimizer_instances = 1;  // outer data-parallel size
};

// One family of disjoint groups: every rank of the grid is in exactly one of the lists.
struct GroupFamily {
  std::string name;
  RankLists lists;
};

// All families in the order in which every rank creates them: dp_cp dp cp tp pp ep expt_dp expt_tp,
// with several instances also intra_dp_cp inter_dp_cp intra_expt_dp inter_expt_dp. Throws
// GridError.
std::vector<GroupFamily> FamiliesOf(const GridSizes& sizes, int32_t world);

// The twin of a family for parameter gathers: the same ordered members under another name, hence a
// second communicator. It is the twin of what reduces the same buffer, so of the inner groups where
// there are several instances.
GroupFamily TwinOf(const std::vector<GroupFamily>& families, bool expert);

// Ranks that share out dense parameters between forward and backward: runs of n of those that
// reduce them.
GroupFamily ReshardOf(const std::vector<GroupFamily>& families, int32_t n);

const GroupFamily& FamilyNamed(const std::vector<GroupFamily>& families, const std::string& name);

}  // namespace reference
