// grad_statistics.h: how long is the gradient, and how many of its elements are zero, over all
// ranks, each logical element counted once?
//
// Every rank sums over the elements of its own shards, padding left out (FS-25, FS-27). Partial
// sums are added over the ranks that hold other shards: dense ones over the sharding group, expert
// ones over theirs and over the ranks that hold other experts; of dense ones that are split over tp
// over tp, too. Replicas are never added: not the ranks of no_shard (NVIDIA/Megatron-LM#3754), not
// HSDP's outer ranks, not what ranks of tp hold whole (NVIDIA-NeMo/RL#3788); a tied weight is in
// one bucket (NVIDIA/Megatron-LM#7227); dense and expert sums have groups of their own
// (NVIDIA/Megatron-LM#6489).
#pragma once
#include "reference/core/context.h"
#include "reference/core/host_scalars.h"

namespace reference {

// What was not asked for is 0.
struct GradFacts {
  double norm = 0;   // 2-norm
  double zeros = 0;  // elements
};

class GradStatistics {
 public:
  explicit GradStatistics(Context& context) : c_(context) {}

  void Create();
  // What was asked for of the reduced gradient, the same bits on every rank. Blocks: clipping and
  // skipping are decided on the host.
  GradFacts Measure();
  void Publish(const GradFacts& facts);
  void Destroy() { sums_.Destroy(c_.host, c_.streams.compute); }

 private:
  enum Kind : uint64_t { kDense, kExpert, kSplit };  // kSplit: dense, over tp
  enum Sum : uint64_t { kSquares, kZeros };

  bool Asked() const { return c_.config.grad_norm || c_.config.zero_count; }
  spf_addr At(Kind kind, Sum sum) const { return sums_.at(2 * kind + sum); }
  void AddMine(const Bucket& bucket);
  void AddShards();
  bool IsSplit(int32_t param) const;
  void AddOver(const Communicator& ranks, Kind kind);

  Context& c_;
  HostScalars sums_{6};
};

}  // namespace reference
