#include "conformance/cases/fabric_spaces.h"

#include <stdexcept>

#include "conformance/cases/schedule_space.h"

namespace shardproof {
namespace {

std::vector<FabricSpaces> Rows() {
  FabricSpaces sim{.name = "sim",
                   .few_ranks_of = "",
                   .worlds = {1, 2, 3, 4, 5, 6, 8, 16},
                   .schedule_worlds = {4, 8, 2},
                   .schedule_eps = ScheduleSpace::AllEps(),
                   .layer_wise_worlds = {8, 4, 3, 2, 5, 6, 1},
                   .pipeline_worlds = {8, 4, 2}};
  FabricSpaces mpi{.name = "mpi",
                   .few_ranks_of = "",
                   .worlds = {1, 2, 3, 4, 5, 6, 8},
                   .schedule_worlds = {8, 4},
                   .schedule_eps = {2, 4},
                   .layer_wise_worlds = {8, 4},
                   .pipeline_worlds = {8, 4}};
  FabricSpaces dry = sim;
  dry.name = "dry";
  FabricSpaces nccl = sim;
  nccl.name = "nccl";
  nccl.few_ranks_of = sim.name;
  return {sim, dry, mpi, nccl};
}

}  // namespace

const std::vector<FabricSpaces>& AllFabricSpaces() {
  static const std::vector<FabricSpaces> kRows = Rows();  // never written again
  return kRows;
}

std::vector<std::string> FabricNames() {
  std::vector<std::string> names;
  for (const FabricSpaces& row : AllFabricSpaces()) names.push_back(row.name);
  return names;
}

const FabricSpaces& SpacesOfFabric(const std::string& name) {
  for (const FabricSpaces& row : AllFabricSpaces()) {
    if (row.name == name) return row;
  }
  std::string text = "fabric " + name + ": use";
  for (const std::string& known : FabricNames()) text += " " + known;
  throw std::invalid_argument(text);
}

}  // namespace shardproof
