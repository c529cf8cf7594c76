#include "reference/optim/grad_statistics.h"

#include <cmath>

#include "reference/core/collectives.h"

namespace reference {

void GradStatistics::Create() {
  if (Asked()) sums_.Create(c_.host, c_.streams.compute);
}

GradFacts GradStatistics::Measure() {
  if (!Asked()) return {};
  sums_.Clear(c_.host, c_.streams.compute);
  for (const Bucket& b : c_.buckets) {
    if (b.plan.trainable) AddMine(b);
  }
  const bool sharded = c_.config.strategy != ShardingStrategy::kNoShard;
  if (sharded) AddOver(c_.groups.dense.reduce, kDense);
  if (c_.config.outer_shards) AddOver(c_.groups.dense.outer, kDense);
  if (c_.groups.expert) {
    if (sharded) AddOver(c_.groups.expert->reduce, kExpert);
    if (c_.config.outer_shards) AddOver(c_.groups.expert->outer, kExpert);
    AddOver(c_.groups.ep, kExpert);
  }
  if (c_.groups.pp) {  // other stages hold other parameters, maybe experts where this one has none
    AddOver(c_.groups.pp, kDense);
    AddOver(c_.groups.pp, kExpert);
  }
  if (c_.groups.tp) AddShards();
  const std::vector<double> sums = sums_.Read(c_.host, c_.streams.compute);
  const auto total = [&](Sum sum) {
    return sums[2 * kDense + sum] + sums[2 * kExpert + sum] + sums[2 * kSplit + sum];
  };
  return {std::sqrt(total(kSquares)), total(kZeros)};
}

// Each rank of tp has the squares of its own shards.
void GradStatistics::AddShards() {
  if (c_.config.Shards()) AddOver(c_.groups.dense.reduce, kSplit);
  if (c_.config.outer_shards) AddOver(c_.groups.dense.outer, kSplit);
  AddOver(c_.groups.tp, kSplit);
  if (c_.groups.pp) AddOver(c_.groups.pp, kSplit);
}

bool GradStatistics::IsSplit(int32_t param) const {
  const spf_param& row = c_.host.model().params[param];
  return !IsExpert(row) && row.tp_dim >= 0;
}

void GradStatistics::AddMine(const Bucket& b) {
  const Kind kind = b.plan.expert ? kExpert : kDense;
  for (const BucketSlice& s : b.MySlices()) {
    const Kind of = IsSplit(s.param) ? kSplit : kind;
    const spf_span mine{b.ShardOfGrad() + b.Bytes(s.range_offset, b.grad_dtype),
                        static_cast<uint64_t>(s.count), b.grad_dtype, SPF_READ};
    const auto add = [&](spf_kernel kernel, Sum sum) {
      c_.host.Launch(c_.streams.compute, kernel, {mine, {At(of, sum), 1, SPF_F64, SPF_ADD}});
    };
    if (c_.config.grad_norm) add(SPF_K_SUM_SQUARES, kSquares);
    if (c_.config.zero_count) add(SPF_K_COUNT_ZERO, kZeros);
  }
}

// Both sums of the kind in one operation, if both are asked for.
void GradStatistics::AddOver(const Communicator& ranks, Kind kind) {
  const Sum first = c_.config.grad_norm ? kSquares : kZeros;
  const int64_t count = c_.config.grad_norm && c_.config.zero_count ? 2 : 1;
  CollectiveBatch(c_.host, ranks, c_.streams.compute)
      .AllReduce(SPF_F64, SPF_SUM, At(kind, first), count, spf::For(SPF_FOR_NORM))
      .Issue();
}

void GradStatistics::Publish(const GradFacts& facts) {
  const auto publish = [&](spf_result what, uint64_t place, double value) {
    c_.host.Publish(c_.streams.compute, what, 0, 0, 1, SPF_F64, sums_.Write(c_.host, place, value));
  };
  if (c_.config.grad_norm) publish(SPF_RESULT_GRAD_NORM, 0, facts.norm);
  if (c_.config.zero_count) publish(SPF_RESULT_ZERO_COUNT, 1, facts.zeros);
}

}  // namespace reference
