// fabric_row.h: what does a fabric take of the command line?
//
// One row a fabric. How it runs is a row of command/run_command.cc, which cases it gets one of
// cases/fabric_spaces.cc.
#pragma once
#include <string>

namespace shardproof {

struct FabricRow {
  const char* name;
  bool replays;       // --queues, --timings, replay: it chooses when things happen
  bool starts_ranks;  // --ranks
  const char* ranks_instead;
};

// Throws std::invalid_argument: there is none of this name.
const FabricRow& FabricNamed(const std::string& name);

}  // namespace shardproof
