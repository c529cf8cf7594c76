// in_parts_for_test.h: do checks say the same of a run in parts as whole?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof {

struct InParts {
  std::string whole;  // why nothing follows
  int64_t parts = 0;
};

// Expects that CheckAll and the parts, of so many events or more, say the same, if the parts do.
void ExpectAlike(const std::vector<Trace>& run, int64_t least, InParts* got);

// Why a run of one rank must be judged whole; empty: it need not, and says the same.
std::string WholeOrAlike(Trace trace);

}  // namespace shardproof
