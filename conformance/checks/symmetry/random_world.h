// random_world.h: which random worlds put the check of many ranks to the test?
//
// 2 to 64 ranks in a grid; communicators of rows, columns, neighbours and all. All ranks run one
// program (collectives, messages along a row, events, waits and syncs on two or three streams), or
// a few by their place; then, in most worlds, some ranks are changed: two operations swapped, one
// left out, another root or count, another stream.
#pragma once
#include <random>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::symmetry {

std::vector<Trace> DrawWorld(std::mt19937& random);

}  // namespace shardproof::symmetry
