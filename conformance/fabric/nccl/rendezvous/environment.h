// environment.h: which job does the environment say that this process belongs to?
//
//   RANK, WORLD_SIZE             of the process; both or neither
//   MASTER_ADDR, MASTER_PORT     where rank 0 serves; as torchrun sets them
//   LOCAL_RANK, LOCAL_WORLD_SIZE of the process on its host; MPICH's and Open MPI's names too
//
// torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True): the next port is
// taken then.
#pragma once
#include <functional>
#include <optional>

#include "conformance/fabric/nccl/rendezvous/store.h"

namespace shardproof {

// std::getenv, or what a test says: null for what is not set.
using Environment = std::function<const char*(const char* name)>;

// Nothing: the environment names no job. Throws std::invalid_argument for one that is not whole:
// the message names the variable and its value.
std::optional<Meeting> JobFromEnvironment(const Environment& environment);

// Of this process on its host; where no launcher says it, as if the job had one host.
struct PlaceOnHost {
  int rank = 0, ranks = 1;
};
PlaceOnHost PlaceOnHostOf(int rank, int size, const Environment& environment);

}  // namespace shardproof
