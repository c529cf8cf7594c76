#include "reference/optim/grad_norm.h"

#include <cmath>

#include "reference/fsdp/collectives.h"

namespace reference {
namespace {
constexpr uint64_t kDense = 0, kExpert = 1;
}

double GradNorm::Measure() {
  sums_.Clear(c_.host, c_.streams.compute);
  for (const Bucket& b : c_.buckets) {
    if (!b.plan.trainable) continue;
    for (const BucketSlice& s : b.MySlices()) {
      c_.host.Launch(c_.streams.compute, SPF_K_SUM_SQUARES,
                     {{b.ShardOfGrad() + b.Bytes(s.range_offset, b.grad_dtype),
                       static_cast<uint64_t>(s.count), b.grad_dtype, SPF_READ},
                      {sums_.at(b.plan.expert ? kExpert : kDense), 1, SPF_F64, SPF_ADD}});
    }
  }
  const bool sharded = c_.config.strategy != Strategy::kNoShard;
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
  const std::vector<double> sums = sums_.Read(c_.host, c_.streams.compute);
  return std::sqrt(sums[kDense] + sums[kExpert]);
}

void GradNorm::AddOver(const Communicator& ranks, uint64_t sum) {
  CollectiveBatch batch(c_.host, ranks, c_.streams.compute);
  batch.AllReduce(SPF_F64, SPF_SUM, sums_.at(sum), 1, spf::For(SPF_FOR_NORM));
  batch.Issue();
}

void GradNorm::Publish(double norm) {
  c_.host.Publish(c_.streams.compute, SPF_RESULT_GRAD_NORM, 0, 0, 1, SPF_F64,
                  sums_.Write(c_.host, norm));
}

}  // namespace reference
