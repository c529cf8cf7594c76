// grad_norm.h: how long is the gradient, over all ranks, each logical element counted once?
//
// Every rank sums the squares of the elements of its own shards, padding left out (FS-25, FS-27).
// Partial sums are added over the ranks that hold other shards: dense ones over the sharding group,
// expert ones over theirs and over the ranks that hold other experts. Replicas are never added: not
// the ranks of no_shard (PR 3754), not HSDP's outer ranks; a tied weight is in one bucket (PR
// 7227); dense and expert sums have groups of their own (PR 6489).
#pragma once
#include "reference/fsdp/context.h"
#include "reference/fsdp/host_scalars.h"

namespace reference {

class GradNorm {
 public:
  explicit GradNorm(Context& context) : c_(context) {}

  void Create() { sums_.Create(c_.host, c_.streams.compute); }
  // The norm, the same bits on every rank. Blocks: clipping is decided on the host.
  double Measure();
  void Publish(double norm);
  void Destroy() { sums_.Destroy(c_.host, c_.streams.compute); }

 private:
  void AddOver(const Communicator& ranks, uint64_t sum);

  Context& c_;
  HostScalars sums_{2};  // dense, expert
};

}  // namespace reference
