// kstar.h: how many communicator kernels of a device can be in flight at once?
//
// A device that can run that many cannot hang, in whatever order it starts them (if profile E0 has
// no cycle). Kernels that may be in flight together are an antichain of "a is over before b can
// start"; three orders, three numbers: spin <= resident <= local.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/program/program.h"
#include "conformance/checks/program/wait_graph.h"

namespace shardproof::graph {

struct Slots {
  int32_t spin =
      0;  // waiting for a peer together; an upper bound for kernels of several operations
  int32_t resident = 0;  // on the device together
  int32_t local = 0;     // bound of both, from the rank's own edges only
  bool exact = false;    // spin and resident are the numbers; else they are set to local
  bool bound = false;    // more than 8 streams: local is a bound by streams and communicators
};

// By rank. The program must be free of cycles in E0. work_limit: clock entries that may be computed
// for the exact numbers.
std::vector<Slots> CountSlots(const Program& program, int64_t work_limit = 5'000'000);

// The least number of slots with which no timing hangs when every device starts its communicator
// kernels in issue order; 0: no number helps.
int32_t SlotsInOrder(const Program& program);

}  // namespace shardproof::graph
