// operation_signature.h: what must the members' parts of a collective have in common?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/checks/program/program.h"

namespace shardproof::graph {

struct Signature {
  uint64_t shape = 0;   // kind, dtype, reduction, root; with labels also what it is for
  uint64_t counts = 0;  // all but those of all_to_all_v
  bool operator==(const Signature&) const = default;
};

// labels: also purpose, module and microbatch, which tell a shifted sequence. They are the engine's
// own words.
Signature SignatureOf(const Trace& trace, const Event& event, bool labels);

uint64_t HashOn(uint64_t seed, uint64_t value);

// " differs by its root: rank 2 names root 1 (rank 1), ranks 0 and 1 name root 0 (rank 0)", if that
// is all that differs between odd and usual, which is what all of ranks issue; else empty.
std::string OtherRoots(const Program& program, const Part& odd, const Part& usual,
                       const std::vector<int32_t>& ranks);

// With dtype, counts and root.
std::string DescribeFully(const Program& program, const Part& part);

}  // namespace shardproof::graph
