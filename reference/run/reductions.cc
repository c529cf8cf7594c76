#include "reference/run/reductions.h"

#include "reference/core/at.h"
#include "reference/core/collectives.h"
#include "reference/core/tables.h"

namespace reference {

Reductions::Reductions(Context& context)
    : c_(context), grad_(static_cast<size_t>(context.host.model().n_params)) {}

void Reductions::Create() {
  if (c_.config.check_for_nan_in_grad) nonfinite_.Create(c_.host, c_.streams.compute);
}

std::vector<Bucket*> Reductions::Trainable(int32_t group) {
  std::vector<Bucket*> buckets;
  for (int32_t id : c_.GroupOf(group).buckets) {
    if (c_.bucket(id).plan.trainable) buckets.push_back(&c_.bucket(id));
  }
  return buckets;
}

// What goes onto the wire as it is. Full gradients go from the main ones, other dtypes from a cast.
CollectiveBuffers::Users Reductions::SendersOfLocalGrad(const Bucket& b) const {
  if (!c_.config.ShardsGrads() || c_.config.grad_comm_dtype != SPF_F32) return {};
  return {&b.groups.reduce};
}

void Reductions::ZeroGrad() {
  for (const Bucket& b : c_.buckets) {
    if (!b.plan.trainable) continue;
    c_.host.Fill(c_.streams.compute, b.main_grad, Count(b.grad_size()), b.grad_dtype, 0);
  }
}

void Reductions::Begin(int32_t group) {
  for (Bucket* b : Trainable(group)) {
    if (c_.config.HasLocalGrad()) {
      b->local_grad =
          c_.buffers.Take(c_.streams.compute, b->Bytes(b->size(), SPF_F32), SendersOfLocalGrad(*b),
                          spf::For(SPF_FOR_GRAD, b->module), b->double_buffer);
      c_.host.Fill(c_.streams.compute, b->local_grad, Count(b->size()), SPF_F32, 0);
    }
    const spf_addr base = c_.config.HasLocalGrad() ? b->local_grad : b->main_grad;
    for (const BucketItem& item : b->layout.items)
      At(grad_, item.param) = base + b->Bytes(item.offset, SPF_F32);
  }
}

void Reductions::Fold(int32_t group) {
  for (Bucket* b : Trainable(group)) {
    c_.host.Axpby(c_.streams.compute, 1, b->local_grad, SPF_F32, 1, b->main_grad, b->grad_dtype,
                  Count(b->size()));
    c_.buffers.Give(c_.streams.compute, b->local_grad);
  }
}

void Reductions::Reduce(int32_t group, bool last) {
  std::vector<Contribution> contributions;
  for (Bucket* b : Trainable(group)) contributions.push_back(Contribute(*b));
  c_.host.After(c_.streams.reduce, c_.streams.compute);
  ReduceInner(contributions);
  for (const Contribution& contribution : contributions) Keep(contribution);
  const bool outer = last && contributions[0].bucket->groups.outer;
  if (outer) ReduceOuter(contributions);
  InFlight& launched = in_flight_.emplace_back();
  launched.done = c_.host.Event();
  c_.host.Record(launched.done, outer ? c_.streams.outer_reduce : c_.streams.reduce);
  for (const Contribution& contribution : contributions) {
    if (contribution.own_block) launched.blocks.push_back(contribution.data);
  }
}

// Scales this rank's gradient and casts it to the dtype of the wire; in place where that is its
// dtype already.
Reductions::Contribution Reductions::Contribute(Bucket& b) {
  const bool local = b.local_grad != 0;
  const spf_addr source = local ? b.local_grad : b.main_grad;
  const int32_t dtype = local ? SPF_F32 : b.grad_dtype, wire = c_.config.grad_comm_dtype;
  const auto n = Count(b.size());
  if (c_.config.check_for_nan_in_grad) CheckFinite(b, source, dtype);
  const double scale = ScaleOf(b);
  if (dtype == wire) {
    if (scale != 1) c_.host.Axpby(c_.streams.compute, scale, source, dtype, 0, source, dtype, n);
    b.local_grad = 0;
    return {&b, source, local};
  }
  const spf_addr cast =
      c_.buffers.Take(c_.streams.compute, b.Bytes(b.size(), wire), {&b.groups.reduce},
                      spf::For(SPF_FOR_GRAD, b.module), b.double_buffer);
  c_.host.Axpby(c_.streams.compute, scale, source, dtype, 0, cast, wire, n);
  c_.buffers.Give(c_.streams.compute, b.local_grad);
  return {&b, cast, true};
}

// The gradient of a step is the sum over ranks and microbatches, divided by D = dp_cp *
// microbatches or the number of tokens. D is the dense one for experts too. Where the collective
// averages, it has divided by the size of its own group already: for experts the rest is expt_dp /
// D, not 1 / microbatches (the factor edp / dp that NVIDIA/Megatron-LM#5956 is about). The loss
// scale goes here too: a power of two, so nothing is rounded, and whatever comes after sees the
// true gradient.
double Reductions::ScaleOf(const Bucket& b) const {
  const double divisor = c_.config.per_token_loss
                             ? static_cast<double>(c_.config.tokens_per_step)
                             : static_cast<double>(c_.groups.dp_cp.size()) * c_.config.microbatches;
  return (c_.config.average_in_collective ? static_cast<double>(b.groups.total) : 1.0) /
         (divisor * c_.config.loss_scale);
}

void Reductions::CheckFinite(const Bucket& b, spf_addr data, int32_t dtype) {
  nonfinite_.Clear(c_.host, c_.streams.compute);
  for (const BucketItem& item : b.layout.items) {
    c_.host.Launch(c_.streams.compute, SPF_K_COUNT_NONFINITE,
                   {{data + b.Bytes(item.offset, dtype), Count(item.numel), dtype, SPF_READ},
                    {nonfinite_.at(0), 1, SPF_F64, SPF_ADD}});
  }
  if (nonfinite_.Read(c_.host, c_.streams.compute)[0] == 0) return;
  throw Failed("check_for_nan_in_grad = 1: a gradient in the bucket of " +
               std::string(c_.host.model().params[b.layout.items[0].param].name) +
               " is not finite on this rank; nothing of it was sent");
}

void Reductions::ReduceInner(const std::vector<Contribution>& contributions) {
  const spf_reduction reduction = c_.config.average_in_collective ? SPF_AVG : SPF_SUM;
  CollectiveBatch batch(c_.host, contributions[0].bucket->groups.reduce, c_.streams.reduce);
  for (const auto& [b, data, own_block] : contributions) {
    const spf_label label = spf::For(SPF_FOR_GRAD, b->module);
    if (b->inner_size == 1) {
      batch.AllReduce(c_.config.grad_comm_dtype, reduction, data, b->size(), label);
    } else {
      batch.ReduceScatter(c_.config.grad_comm_dtype, reduction, data, b->inner_shard_size(), label);
    }
  }
  batch.Issue();
}

// Sharded gradients accumulate over microbatches; full ones are replaced by their reduced value.
void Reductions::Keep(const Contribution& contribution) {
  if (!contribution.own_block) return;  // reduced in place, in the main gradient
  const Bucket& b = *contribution.bucket;
  const int32_t wire = c_.config.grad_comm_dtype;
  const spf_addr reduced = contribution.data + b.Bytes(b.inner_shard_begin(), wire);
  c_.host.Axpby(c_.streams.reduce, 1, reduced, wire, b.full_grads ? 0 : 1, b.InnerShardOfGrad(),
                b.grad_dtype, Count(b.inner_shard_size()));
}

void Reductions::ReduceOuter(const std::vector<Contribution>& contributions) {
  const spf_stream stream = c_.streams.outer_reduce;
  const spf_reduction reduction = c_.config.average_in_collective ? SPF_AVG : SPF_SUM;
  const int32_t wire = c_.config.grad_comm_dtype;
  c_.host.After(stream, c_.streams.reduce);
  CollectiveBatch batch(c_.host, contributions[0].bucket->groups.outer, stream);
  std::vector<spf_addr> data;
  for (const Contribution& contribution : contributions) {
    const Bucket& b = *contribution.bucket;
    const spf_label label = spf::For(SPF_FOR_OUTER_GRAD, b.module);
    data.push_back(b.InnerShardOfGrad());
    if (b.grad_dtype != wire) {
      data.back() =
          c_.buffers.Take(stream, b.Bytes(b.inner_shard_size(), wire), {&b.groups.outer}, label);
      c_.host.Axpby(stream, 1, b.InnerShardOfGrad(), b.grad_dtype, 0, data.back(), wire,
                    Count(b.inner_shard_size()));
    }
    if (c_.config.outer_shards) {
      batch.ReduceScatter(wire, reduction, data.back(), b.shard_size(), label);
    } else {
      batch.AllReduce(wire, reduction, data.back(), b.inner_shard_size(), label);
    }
  }
  batch.Issue();
  for (size_t i = 0; i < contributions.size(); ++i) {
    const Bucket& b = *contributions[i].bucket;
    if (b.grad_dtype == wire) continue;
    const uint64_t mine = b.Bytes(b.shard_begin() - b.inner_shard_begin(), wire);
    c_.host.Axpby(stream, 1, data[i] + mine, wire, 0, b.ShardOfGrad(), b.grad_dtype,
                  Count(b.shard_size()));
    c_.buffers.Give(stream, data[i]);
  }
}

void Reductions::WaitForOldest() {
  InFlight& oldest = in_flight_.front();
  c_.host.Wait(c_.streams.compute, oldest.done);
  spf::Check(c_.host.DestroyEvent(oldest.done));
  for (spf_addr block : oldest.blocks) c_.buffers.Give(c_.streams.compute, block);
  in_flight_.pop_front();
}

void Reductions::SumOverTp() {
  CollectiveBatch batch(c_.host, c_.groups.tp, c_.streams.compute);
  for (const Bucket& b : c_.buckets) {
    if (!b.plan.trainable) continue;
    for (const BucketSlice& s : b.MySlices()) {
      if (!IsSequenceParallel(c_.host.model().params[s.param])) continue;
      batch.AllReduce(b.grad_dtype, SPF_SUM,
                      b.ShardOfGrad() + b.Bytes(s.range_offset, b.grad_dtype), s.count,
                      spf::For(SPF_FOR_GRAD, b.module));
    }
  }
  batch.Issue();
}

void Reductions::Destroy() {
  if (c_.config.check_for_nan_in_grad) nonfinite_.Destroy(c_.host, c_.streams.compute);
}

}  // namespace reference
