// plan.h: which NCCL calls carry out one group call?
//
// A pure function of the operations, the same on every rank as far as they are alike. What NCCL has
// is one call. The rest:
//   all_gather_v   one broadcast a member, straight into its place; one all_gather if all counts
//   are equal. NCCL runs
//                  grouped broadcasts as one kernel (from 2.29 on by
//                  src/scheduler/allgatherv_sched.cc), and a root whose send is its own place stays
//                  in place, which sends and receives would have to skip.
//   all_to_all_v   a send and a receive for each member with something to send, itself included
//   (NCCL copies) groups of one  a copy on the stream; no communicator is needed. Messages to
//   oneself are NCCL's.
// Nothing is sent of what has no elements: members agree on counts, so that no side waits alone.
//
// Averages are ncclAvg. For floating dtypes NCCL multiplies each contribution by 1/n, rounded to
// the dtype, before the sum (hostToDevRedOp in src/enqueue.cc: ncclDevPreMulSum), as
// ScaleForAverage of collective_math.h does. If n is a power of two and nothing underflows,
// products and, on the model's grid, sums are exact: the same bits. For other n they need not be:
// the products are off the grid, so that the order of summation shows, and NCCL's compiler may fuse
// a product with its sum (src/device/reduce_kernel.h has plain * and __hmul, which may be
// contracted; on an H200 bf16 sums of 3 ranks were off by what that would leave). Such cases are
// not asked (runner/selection.cc). Hosts refuse averages of integers.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/nccl/gpu.h"

namespace shardproof {

struct PlannedCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;  // not to, and not overlapping it
  uint64_t bytes = 0;
};

// All operations of one group call on one communicator: one kernel of fabric.h.
struct KernelPlan {
  int32_t group = -1;
  std::vector<int32_t> streams;     // that the operations name, in order of first use
  std::vector<GpuCall> calls;       // as one NCCL group; each on the stream of its operation
  std::vector<PlannedCopy> copies;  // on streams.front()
};

struct GroupPlace {
  int32_t members = 0;
  int32_t me = -1;  // this rank's index in them
};

// One plan a communicator, in order of first use. They are separate NCCL groups: inside one group
// NCCL orders communicators by a hash of theirs (ncclGroupCommJoin in src/include/group.h), not by
// first use.
std::vector<KernelPlan> PlanGroupCall(const std::vector<CommOp>& ops,
                                      const std::function<GroupPlace(int32_t group)>& place_of);

}  // namespace shardproof
