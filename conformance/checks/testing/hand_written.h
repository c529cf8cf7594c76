// hand_written.h: what does a good trace of two ranks look like that uses everything once, and how
// does a test change one row of it?
#pragma once
#include <string>

namespace shardproof {

// In the first row that begins with `row`, the first `from` becomes `to`. An empty `from`: the
// whole row; an empty row is left out.
struct RowChange {
  int rank = -1;  // -1: both
  std::string row, from, to;
};

// As it stands on disk (trace/FORMAT.md), complete, everything provided. Throws
// std::invalid_argument if there is nothing to change.
std::string HandWrittenTrace(int rank, const RowChange* change = nullptr);

}  // namespace shardproof
