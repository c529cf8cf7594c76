// gather_chain.h: in which order do owners' new values come, where whole parameters are dealt?
//
//   launched ------ waited ------ next one launched ------ published
//
// At most two buckets are between launch and publication: one that is being published and one
// that travels. Each bucket is gathered once per step, so every step has a chain of its own. The
// order is that of forward, whatever a rank's program needs first (layer_wise.h).
#pragma once
#include "reference/plan/writer.h"

namespace reference {

class GatherChain {
 public:
  // stale: else nothing is gathered, because values are the same everywhere.
  GatherChain(PlanWriter& write, bool stale);

  // Before an operation reads parameters of a bucket, it and those before it are published.
  void Need(const Operation& operation);
  void PublishAll();

 private:
  void PublishNext();
  void Add(Do what, int32_t place);

  PlanWriter& write_;
  const std::vector<int32_t> order_;      // bucket groups; frozen parameters are everywhere already
  int32_t launched_ = 0, published_ = 0;  // so far; launched_ - published_ is 0 or 1
};

}  // namespace reference
