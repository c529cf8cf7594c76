// as_if.h: which known mistake gives just the results that were published?
//
// Values that differ say little. Some mistakes give values that can be computed: gradients that
// were added up in bf16, scaled along with the sum, an update that clipped by the norm of a shard,
// or that counted evaluations. What was published is compared with them, bit for bit where the
// mistake is one of rounding or of the update.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "conformance/checks/base/published.h"

namespace shardproof {

struct Mistake {
  int32_t call = -1;
  bool gradients = false;   // of this call are wrong; else its parameters
  std::set<int32_t> keys;   // of the parameters that it explains
  std::string requirement;  // that it breaks; empty: that values differ is all (what is missing or
                            // twice in a sum, reductions and samples tell)
  std::string what;         // in words
};

// Of the first entry call whose results are wrong: all before are right, so it is where the mistake
// was made. Empty: none that is known. REQUIRES: an oracle of the instance; both with values.
std::optional<Mistake> FirstMistake(const Analysis& a, int instance, const Published& params,
                                    const Published& grads);

}  // namespace shardproof
