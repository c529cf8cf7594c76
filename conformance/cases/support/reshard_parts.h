// reshard_parts.h: what may change between a save and the load of it, and how is that asked?
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "conformance/cases/case.h"

namespace shardproof {

// Whether a factor says where parameters and optimizer state are, and not what is trained.
bool MayChangeBetweenLegs(const std::string& factor);

// Whether it is changed with something else only: by itself it moves nothing, or it follows.
bool Follows(const std::string& factor);

// Whether it says what is trained and stored.
bool IsTrained(const std::string& factor);

// Saved as one case, gone on with as the other, and back; with as many tokens as are exact.
// number: chooses among scripts. Nothing: an engine could not be asked.
std::optional<Case> ThereAndBack(const Case& one, const Case& other, bool any_microbatches,
                                 size_t number);

}  // namespace shardproof
