// environment.h: which environment lets several ranks run on one GPU, and what does it say
// about launch order?
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/rendezvous/environment.h"

namespace shardproof {

struct RankPlace {
  int rank = 0;        // of the job
  int local_rank = 0;  // on this host
  int local_ranks = 1;
  int devices = 1;  // that this process sees
  int nccl = 0;     // version as NCCL numbers it: 22809 is 2.28.9
};

inline int DeviceOf(const RankPlace& place) { return place.local_rank % place.devices; }

// Variables to set in a rank process before NCCL is used; what the user has set stays. Empty where
// each rank has a device of its own.
//   NCCL_HOSTID                 distinct: NCCL refuses two ranks of one host on one device (its
//   check compares host and
//                               device), and takes ranks of two hosts, which then talk over sockets
//   NCCL_SOCKET_IFNAME          lo: the sockets stay on this machine
//   NCCL_MULTI_RANK_GPU_ENABLE  1: from 2.30 on (user guide, environment variables)
//   NCCL_NVLS_ENABLE            0: from 2.30 on, where the switch above excludes it
//   NCCL_MAX_CTAS               4 for two ranks, fewer for more: kernels of all ranks must fit on
//   the device together
std::vector<std::pair<std::string, std::string>> NcclVariables(const RankPlace& place,
                                                               const Environment& environment);

// "NCCL_MAX_CTAS=4, ...; CUDA_DEVICE_MAX_CONNECTIONS is not set (8 hardware queues)": what decides
// how launches are ordered and how ranks reach each other.
std::string EnvironmentFact(const Environment& environment);

}  // namespace shardproof
