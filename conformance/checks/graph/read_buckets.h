// read_buckets.h: is there compute of one bucket that the gather of another can run beside?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "conformance/checks/base/facts.h"
#include "conformance/trace/event.h"

namespace shardproof::graph {

// A bucket of parameters: where its gathers receive, and keys of what they brought; none: that is
// not known.
struct GatheredBucket {
  int32_t block = -1;
  std::set<int32_t> keys;
};
// By entry call, in the order of issue.
using GatheredBuckets = std::map<int32_t, std::vector<GatheredBucket>>;

// Whether in some entry call compute of forward of the first microbatch on the trace's rank needs
// one bucket and not another one, which is gathered behind it, or which compute after it needs:
// that can travel beside it. Where modules go unused there may be none: all buckets have to be
// there before the first gradient (LW-18). True where it is not known what a gather brought.
bool SomethingRunsBeside(const Trace& trace, int32_t instance, const GatheredBuckets& gathered,
                         const InstanceFacts& facts);

}  // namespace shardproof::graph
