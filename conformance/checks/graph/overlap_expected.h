// overlap_expected.h: which communication of an engine instance is to hide under compute?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/cases/case.h"

namespace shardproof::overlap {

struct Expected {
  bool gathers = false, reductions = false, twin = false;
  // The case asks for it by name, not only by the way it shards: then labels need not be there.
  bool gathers_by_name = false, reductions_by_name = false;
  bool buckets = false;  // not units travel but buckets, which labels need not name
  // How much an aligned bucket takes in, and of which layers, follows from its largest parameter:
  // maybe most of the model, or of all layers, complete when nothing is left to hide under.
  bool aligned = false;
  // With outer sharding the shard itself is filled up over these ranks once it is stepped, so after
  // every reduction: such a gather is none of those that hide.
  std::vector<std::vector<int32_t>> outer;
};

Expected Expect(const InstanceSpec& spec, int32_t world);

}  // namespace shardproof::overlap
