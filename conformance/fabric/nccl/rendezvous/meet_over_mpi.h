// meet_over_mpi.h: how do processes under mpirun meet?
//
// MPI carries one text: where rank 0 serves the table (store.h), under a name that no
// other job has. NCCL's own start needs sockets between the hosts anyway, and afterwards nobody
// calls MPI any more, from whatever thread.
#pragma once
#include <memory>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/fabric/nccl/rendezvous/store.h"

namespace shardproof {

// Collective over the job. Throws std::runtime_error on every rank when rank 0 cannot serve.
std::unique_ptr<Store> MeetOverMpi(MpiWorld& world, double patience_seconds = 60);

}  // namespace shardproof
