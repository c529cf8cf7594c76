// process_fabric_for_test.h: what if ranks are processes that only have a rendezvous? A machine
// without a GPU.
//
// Everything runs at once, in the order of issue; a group call waits for the members of its
// communicators. No timing but one, so nothing is learnt about waits; enough to run whole cases
// where the runner is tested.
#pragma once
#include <memory>

#include "conformance/runner/nccl/kit.h"

namespace shardproof {

// What a test does in rank processes; either may be null.
struct ProcessHooks {
  std::function<void(const RankMachineOptions& options)> on_open;
  // Inside of the engine's calls of compute; nth_case: of this process, from 0.
  std::function<void(int rank, int nth_case)> on_compute;
};

// A kit whose machines are such fabrics.
NcclKit ProcessKitForTest(ProcessHooks hooks = {});

}  // namespace shardproof
