#include "reference/run/param_store.h"

namespace reference {

namespace {

using Users = CollectiveBuffers::Users;

// Gathers send from the model weights, or into them.
Users GathersOf(const Config& config, const Bucket& b) {
  Users users;
  if (config.Shards()) users.push_back(&b.groups.gather);
  if (config.outer_shards) users.push_back(&b.groups.outer);
  return users;
}

// Reductions work on the main gradients themselves, if these have the dtype of the wire: the inner
// one where they are kept whole, the outer one always.
Users ReductionsOf(const Config& config, const Bucket& b) {
  if (b.grad_dtype != config.grad_comm_dtype) return {};
  if (b.full_grads) return {&b.groups.reduce, &b.groups.outer};
  return {&b.groups.outer};
}

}  // namespace

spf_addr ParamStore::Zeroed(int64_t elements, int32_t dtype, spf_purpose purpose, int32_t module,
                            const Users& users) {
  if (elements == 0) return 0;
  const auto n = Count(elements);
  const spf_addr block =
      c_.buffers.Take(c_.streams.compute, n * spf::SizeOf(dtype), users, spf::For(purpose, module));
  c_.host.Fill(c_.streams.compute, block, n, dtype, 0);
  return block;
}

void ParamStore::Create() {
  for (Bucket& b : c_.buckets) {
    b.main = Zeroed(b.shard_size(), SPF_F32, SPF_FOR_MAIN_PARAM, b.module);
    b.model = Zeroed(b.full_weights ? b.size() : b.inner_shard_size(), b.plan.dtype,
                     b.full_weights ? SPF_FOR_PARAM_FULL : SPF_FOR_PARAM_SHARD, b.module,
                     GathersOf(c_.config, b));
    if (b.backward_copy) {
      b.backward_model = Zeroed(b.inner_shard_size(), b.plan.dtype, SPF_FOR_PARAM_SHARD, b.module,
                                GathersOf(c_.config, b));
    }
    if (b.plan.trainable) {
      b.main_grad =
          Zeroed(b.grad_size(), b.grad_dtype, b.full_grads ? SPF_FOR_GRAD : SPF_FOR_GRAD_SHARD,
                 b.module, ReductionsOf(c_.config, b));
      if (b.plan.muon) {
        b.momentum = Zeroed(b.shard_size(), SPF_F32, SPF_FOR_OPTIMIZER, b.module);
      } else if (c_.config.optimizer != OptimizerKind::kSgd) {
        b.exp_avg = Zeroed(b.shard_size(), SPF_F32, SPF_FOR_OPTIMIZER, b.module);
        b.exp_avg_sq = Zeroed(b.shard_size(), SPF_F32, SPF_FOR_OPTIMIZER, b.module);
      }
    }
  }
}

void ParamStore::AskForInitial() {
  for (const Bucket& b : c_.buckets) {
    for (const BucketSlice& s : b.MySlices()) {
      c_.host.Init(c_.streams.compute, s.param, s.param_offset, s.count, SPF_F32,
                   b.main + b.Bytes(s.range_offset, SPF_F32));
    }
  }
}

void ParamStore::Install() {
  for (const Bucket& b : c_.buckets) {
    c_.host.Axpby(c_.streams.compute, 1, b.main, SPF_F32, 0, b.ShardOfModel(), b.plan.dtype,
                  Count(b.shard_size()));
    if (!b.backward_copy) continue;
    c_.host.Axpby(c_.streams.compute, 1, b.main, SPF_F32, 0, b.ShardOfModel(true), b.plan.dtype,
                  Count(b.shard_size()));
  }
}

void ParamStore::InstallInitialEverywhere() {
  for (const Bucket& b : c_.buckets) {
    spf_addr initial = c_.host.Alloc(c_.streams.compute, b.Bytes(b.size(), SPF_F32),
                                     spf::For(SPF_FOR_SCRATCH, b.module));
    c_.host.Fill(c_.streams.compute, initial, Count(b.size()), SPF_F32, 0);
    for (const BucketItem& item : b.layout.items) {
      c_.host.Init(c_.streams.compute, item.param, 0, item.numel, SPF_F32,
                   initial + b.Bytes(item.offset, SPF_F32));
    }
    c_.host.Axpby(c_.streams.compute, 1, initial, SPF_F32, 0, b.model, b.plan.dtype,
                  Count(b.size()));
    c_.host.Free(c_.streams.compute, initial);
  }
}

void ParamStore::PublishParams() {
  for (const Bucket& b : c_.buckets) Publish(SPF_RESULT_PARAM, b, b.main, SPF_F32);
}

void ParamStore::PublishGrads() {
  for (const Bucket& b : c_.buckets) {
    if (b.plan.trainable) Publish(SPF_RESULT_GRAD, b, b.ShardOfGrad(), b.grad_dtype);
  }
}

void ParamStore::Publish(spf_result what, const Bucket& b, spf_addr shard, spf_dtype dtype) {
  for (const BucketSlice& s : b.MySlices())
    c_.host.Publish(c_.streams.compute, what, s.param, s.param_offset, s.count, dtype,
                    shard + b.Bytes(s.range_offset, dtype));
}

void ParamStore::Destroy() {
  for (Bucket& b : c_.buckets) {
    for (spf_addr* block : {&b.main, &b.model, &b.backward_model, &b.main_grad, &b.exp_avg,
                            &b.exp_avg_sq, &b.momentum}) {
      c_.buffers.Give(c_.streams.compute, *block);
    }
  }
}

}  // namespace reference
