// overlap_expected.h: which communication of an engine instance is to hide under compute?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof::overlap {

// By world rank: who has the same parameters and reads other data. A sum of gradients over other
// ranks (of parameters that tp replicates, of an embedding that two stages share) is no reduction
// of a unit: published engines take it behind backward.
class DataRanks {
 public:
  DataRanks() = default;
  DataRanks(const InstanceSpec& spec, int32_t world);
  // Is one of the ranks, other than `rank`, of the same data-parallel group?
  bool Share(int32_t rank, const std::vector<int32_t>& ranks) const;

 private:
  std::vector<int32_t> dense_, expert_;  // the number of a rank's group; -1: it is in none
};

struct Expected {
  bool gathers = false, reductions = false, twin = false;
  bool limited = false;  // gathers may have to follow compute (prefetch_limit_bytes)
  // The case asks for it by name, not only by the way it shards: then labels need not be there.
  bool gathers_by_name = false, reductions_by_name = false;
  bool shared = false;   // some parameter is on several ranks: else nothing need travel
  bool buckets = false;  // not units travel but buckets, which labels need not name
  // How much an aligned bucket takes in, and of which layers, follows from its largest parameter:
  // maybe most of the model, or of all layers, complete when nothing is left to hide under.
  bool aligned = false;
  // With outer sharding the shard itself is filled up over these ranks once it is stepped, so after
  // every reduction: such a gather is none of those that hide.
  std::vector<std::vector<int32_t>> outer;
  DataRanks data;
};

Expected Expect(const InstanceSpec& spec, int32_t world);

}  // namespace shardproof::overlap
