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

// The collectives of a rank that carried parameters or gradients over groups of more than one rank,
// in issue order. REQUIRES: a.has_flow().
std::vector<Carried> CarriedBy(const Analysis& a, int32_t rank);

bool IsReduction(uint8_t collective);

// It runs between ranks with the same place in each optimizer instance. With outer sharding such a
// gather fills up a shard, and not the full parameters.
bool IsOuter(const Analysis& a, int32_t rank, const Carried& carried);

}  // namespace shardproof
