// rank_config.h: what does one instance of a case tell the host of one rank?
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/cases/grid.h"
#include "conformance/host/host.h"

namespace shardproof {

// The groups of a case's instances. Made once where one process runs many ranks.
class CaseFamilies {
 public:
  explicit CaseFamilies(const Case& c);
  CaseFamilies(const CaseFamilies&) = delete;
  CaseFamilies& operator=(const CaseFamilies&) = delete;

  const std::vector<GroupFamily>& Of(size_t instance) const { return families_[instance]; }
  const std::vector<FamilyIndex>& Index(size_t instance) const { return index_[instance]; }

 private:
  std::vector<std::vector<GroupFamily>> families_;
  std::vector<std::vector<FamilyIndex>> index_;  // refers to families_
};

// Knobs, groups, the rank's place among the data ranks and in the model. model outlives the host.
HostConfig HostConfigOf(const Case& c, size_t instance, int32_t rank, const Model& model,
                        const CaseFamilies& families);

// A rank that is outside the span of an explicit collection has no part in that instance.
bool TakesPart(const InstanceSpec& spec, int32_t rank);

}  // namespace shardproof
