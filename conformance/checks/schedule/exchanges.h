// exchanges.h: which exchange node did each all-to-all of a run serve?
//
// By bytes: what an all-to-all sends was last written as a value (or its gradient) of a microbatch,
// and one node exchanges that value. Copies carry values along, and so do launches by which an
// engine packs the rows of one value; what is freed or overwritten by anything else is no value. A
// rank that sends nothing is told by the other members at the same place on the communicator, and,
// if nobody sends anything, by the label. What is sent and is no value, or several, stays unknown.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof::schedule {

struct Exchange {
  int32_t rank = 0;
  int64_t event = -1;
  int32_t instance = 0, call = -1;
  std::string comm;
  int64_t position = 0;  // among the rank's all-to-alls on this communicator
  int32_t node = -1;     // -1: not known
  int32_t microbatch = -1;
  bool backward = false;
  bool again = false;               // a forward that ran before in this call: recompute
  bool sends = false;               // something
  std::vector<int64_t> send, recv;  // elements by member
  int64_t row = 1;                  // elements of one row
  bool counts = false;              // moves counts, not activations
};

// By rank, in issue order. REQUIRES: a.has_case().
std::vector<std::vector<Exchange>> FindExchanges(const Analysis& a);

// "layers.0.moe.dispatch FWD, microbatch 1"
std::string Text(const Analysis& a, const Exchange& exchange);

}  // namespace shardproof::schedule
