// carried.h: which parameters and gradients did each collective move?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// One collective of one rank, by what it carried (flow.h), not by its label.
struct Carried {
  int64_t event = -1;
  std::string comm;
  const GroupInfo* group = nullptr;
  bool gather = false;        // brought parameter elements in train_step or eval_step
  bool reduction = false;     // summed gradient elements
  std::vector<Chunk> params;  // received parameter elements
  std::vector<Chunk> grads;   // sent gradient elements
};

struct CarriedOfRank {
  std::vector<Carried> all, part_sums;  // of CarriedBy and of PartSumsBy
};

// The collectives of a rank that carried parameters or gradients over groups of more than one rank,
// in issue order, without the sums over tp that sequence parallelism asks for (TP-09).
// REQUIRES: a.has_flow().
const std::vector<Carried>& CarriedBy(const Analysis& a, int32_t rank);
// Those sums. REQUIRES: a.has_flow().
const std::vector<Carried>& PartSumsBy(const Analysis& a, int32_t rank);

// Contributions of ranks at this place of tp.
std::vector<Contribution> OfPlace(const InstanceFacts& facts, int32_t tp,
                                  const std::vector<Contribution>& set);
// What the rank's data-parallel reductions are about: `set`, without what other ranks of tp have
// added to it of their parts of the sequence. room: where it lies, if it is not all.
const std::vector<Contribution>& OfThisPart(const InstanceFacts& facts, const ParamFacts& param,
                                            int32_t rank, const std::vector<Contribution>& set,
                                            std::vector<Contribution>& room);

bool IsReduction(uint8_t collective);

// A sum over tp that sequence parallelism asks for: of gradients of parts of the sequence alone.
// REQUIRES: a reduction over a group.
bool SumsParts(const Analysis& a, int32_t rank, const Event& event,
               const std::vector<Chunk>& grads);

// It runs between ranks with the same place in each optimizer instance. With outer sharding such a
// gather fills up a shard, and not the full parameters.
bool IsOuter(const Analysis& a, int32_t rank, const Carried& carried);

}  // namespace shardproof
