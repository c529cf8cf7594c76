#include "conformance/runner/fabric_row.h"

#include <stdexcept>

namespace shardproof {

namespace {

constexpr FabricRow kFabrics[] = {
    {"sim", true, false, ""},
    {"dry", false, false, ": its world is the case's"},
    {"mpi", false, false, ": mpirun -n says how many"},
    {"nccl", false, true, ""},
};

}  // namespace

const FabricRow& FabricNamed(const std::string& name) {
  for (const FabricRow& row : kFabrics) {
    if (row.name == name) return row;
  }
  throw std::invalid_argument("fabric " + name + ": there is none");
}

}  // namespace shardproof
