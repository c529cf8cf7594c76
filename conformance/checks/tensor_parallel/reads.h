// reads.h: is what a node reads behind a collective what the ranks have brought together, and what
// is it else?
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/checks/tensor_parallel/holds.h"
#include "conformance/checks/tensor_parallel/meetings.h"

namespace shardproof {

// The words of a finding.
struct Misread {
  const char* id;
  std::string expected, seen, message;
};

// One read. Refers to its arguments.
struct ReadOfMet {
  const Met& met;
  bool value;  // else the gradient of one
  bool whole;  // all bytes hold it
  int32_t rank;
  const std::vector<int32_t>& wanted;  // whose summands or parts it is to be

  // Nothing: it met once, over collectives or over messages.
  std::optional<Misread> Judge(const HeldBytes& held, const RankSets& ranks) const;

 private:
  // met_by: ranks, where messages brought together what none of the collectives did.
  Misread Gathered(const HeldBytes& held, const std::vector<int32_t>& met_by) const;
  Misread Summed(const HeldBytes& held, const std::vector<int32_t>& met_by) const;
  // What it holds in place of other ranks' parts or summands.
  std::string Own(const HeldBytes& held, const std::vector<int32_t>& met_by) const;
};

}  // namespace shardproof
