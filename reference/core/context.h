// context.h: what do all parts of one engine share?
//
// The host, the configuration, the communicators, the plan of buckets, and one stream per kind of
// work. One Context per engine and rank; nothing of it is global.
#pragma once
#include <memory>

#include "reference/core/bucket.h"
#include "reference/core/collective_buffers.h"
#include "reference/core/config.h"
#include "reference/core/host.h"
#include "reference/groups/collection.h"

namespace reference {

// Gathers and reductions have streams of their own, so that both hide behind compute; HSDP's outer
// collectives too, so that they hide behind inner ones.
struct Streams {
  spf_stream compute = nullptr;
  spf_stream gather = nullptr;        // parameter all-gathers
  spf_stream reduce = nullptr;        // gradient reductions
  spf_stream outer_gather = nullptr;  // HSDP with outer_strategy optim
  spf_stream outer_reduce = nullptr;  // HSDP
  spf_stream a2a = nullptr;           // exchanges of tokens, where they hide behind compute
};

struct Context {
  explicit Context(spf_host* raw) : host(raw) {}

  Host host;
  Config config;
  EngineGroups groups;
  ModelPlan plan;
  std::vector<Bucket> buckets;  // by bucket id
  Streams streams;
  CollectiveBuffers buffers{host, config};

  const BucketGroup& GroupOf(int32_t group) const { return At(plan.groups, group); }
  Bucket& bucket(int32_t id) { return At(buckets, id); }
};

// The configuration is legal, but this step went wrong for a reason that somebody should read.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace reference
