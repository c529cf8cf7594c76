#include "conformance/runner/nccl/environment.h"

#include <algorithm>
#include <cstdlib>

namespace shardproof {

std::vector<std::pair<std::string, std::string>> NcclVariables(const RankPlace& place,
                                                               const Environment& environment) {
  std::vector<std::pair<std::string, std::string>> set;
  if (place.local_ranks <= place.devices) return set;
  const auto add = [&](const char* name, const std::string& value) {
    if (environment(name) == nullptr) set.emplace_back(name, value);
  };
  const int sharing = (place.local_ranks + place.devices - 1) / place.devices;
  // A host id that the user has set is the same for all ranks of this host: it would bring NCCL's
  // refusal back.
  const char* host = environment("NCCL_HOSTID");
  set.emplace_back("NCCL_HOSTID", (host == nullptr ? std::string("shardproof") : host) + "-rank-" +
                                      std::to_string(place.rank));
  add("NCCL_SOCKET_IFNAME", "lo");
  if (place.nccl >= 23000) {
    add("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    add("NCCL_NVLS_ENABLE", "0");
  }
  if (place.nccl >= 21700) add("NCCL_MAX_CTAS", std::to_string(std::max(1, 8 / sharing)));
  return set;
}

std::string EnvironmentFact(const Environment& environment) {
  std::string text;
  for (const char* name : {"NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_MULTI_RANK_GPU_ENABLE",
                           "NCCL_NVLS_ENABLE", "NCCL_MAX_CTAS", "NCCL_LAUNCH_ORDER_IMPLICIT",
                           "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_VISIBLE_DEVICES"}) {
    if (const char* value = environment(name)) text += std::string(name) + "=" + value + ", ";
  }
  const char* queues = environment("CUDA_DEVICE_MAX_CONNECTIONS");
  return text + "CUDA_DEVICE_MAX_CONNECTIONS" +
         (queues == nullptr ? " is not set (CUDA's default: 8 hardware queues)"
                            : std::string("=") + queues);
}

}  // namespace shardproof
