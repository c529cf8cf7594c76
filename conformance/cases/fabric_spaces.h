// fabric_spaces.h: which fabrics are there, and in which worlds do profiles combine knobs on each?
//
// One row a fabric. How a fabric is run is a row of runner/command/run_command.cc.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

struct FabricSpaces {
  std::string name;
  // Not empty: its cases are those of another fabric, in worlds of as many ranks as the command is
  // given and fewer; not all pairs need be covered.
  std::string few_ranks_of;
  // Worlds of space.h, of schedule_space.h (and its sizes of ep), of layer_wise_space.h and of
  // pipeline_space.h.
  std::vector<int32_t> worlds;
  std::vector<int32_t> schedule_worlds, schedule_eps;
  std::vector<int32_t> layer_wise_worlds, pipeline_worlds;
};

const std::vector<FabricSpaces>& AllFabricSpaces();
// Throws std::invalid_argument for a name there is not.
const FabricSpaces& SpacesOfFabric(const std::string& name);
std::vector<std::string> FabricNames();

}  // namespace shardproof
