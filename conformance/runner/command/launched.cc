#include "conformance/runner/command/launched.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "conformance/fabric/nccl/rendezvous/environment.h"
#include "conformance/runner/fabric_row.h"

namespace shardproof {

bool IsFirstProcess() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* rank = std::getenv(name);
    if (rank != nullptr) return std::string_view(rank) == "0";
  }
  return true;
}

bool WritesReport(const Options& options) {
  if (FabricNamed(options.fabric).starts_ranks) {
    if (const std::optional<Meeting> job = JobFromEnvironment(std::getenv)) return job->rank == 0;
    return IsFirstProcess();
  }
  return options.fabric != "mpi" || IsFirstProcess();  // others have all ranks in one process
}

}  // namespace shardproof
