// id_fields.h: which tokens are there, and which field does each say?
//
// The vocabulary of README.md's table, in its order. The first one is the strategy, which every
// instance says.
#pragma once
#include <vector>

#include "conformance/cases/id_field.h"

namespace shardproof::ids {

std::vector<Field> Fields();

}  // namespace shardproof::ids
