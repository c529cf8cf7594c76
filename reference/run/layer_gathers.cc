#include "reference/run/layer_gathers.h"

#include <algorithm>

#include "reference/core/at.h"

namespace reference {
namespace {

int64_t LargestPiece(const BucketLayout& layout) {
  int64_t largest = 0;
  for (int32_t r = 0; r < layout.shards; ++r) largest = std::max(largest, layout.ShardSize(r));
  return largest;
}

}  // namespace

LayerGathers::LayerGathers(Context& context) : c_(context), transfers_(context.plan.groups.size()) {
  for (int32_t b = Length(transfers_); b-- > 0;) {
    if (!c_.bucket(b).plan.trainable) continue;
    Transfer& transfer = At(transfers_, b);
    transfer.bucket = b;
    transfer.done = c_.host.Event();
    if (c_.config.transport == Transport::kPadded)
      transfer.piece_size = LargestPiece(c_.bucket(b).layout);
  }
}

spf_addr LayerGathers::Arrival(const Transfer& transfer) {
  const Bucket& b = BucketOf(transfer);
  if (InPlace()) return b.model;
  return c_.config.gather_into_grads ? b.main_grad : transfer.buffer;
}

void LayerGathers::Launch(int32_t group, bool) {
  Transfer& transfer = At(transfers_, group);
  AllocateBuffers(transfer);
  c_.host.After(c_.streams.gather, c_.streams.compute);
  c_.host.Communicate(Operations(transfer));
  c_.host.Record(transfer.done, c_.streams.gather);
}

void LayerGathers::AllocateBuffers(Transfer& transfer) {
  const Bucket& b = BucketOf(transfer);
  if (InPlace() || c_.config.gather_into_grads) return;
  const spf_label label = spf::For(SPF_FOR_PARAM_FULL, b.module);
  const int64_t padded = transfer.piece_size * b.layout.shards;
  const uint64_t bytes = b.Bytes(padded > 0 ? padded : b.size(), b.plan.dtype);
  transfer.buffer = c_.host.Alloc(c_.streams.compute, bytes, label);
  if (padded == 0) return;
  transfer.staged =
      c_.host.Alloc(c_.streams.compute, b.Bytes(transfer.piece_size, b.plan.dtype), label);
  c_.host.Copy(c_.streams.compute, transfer.staged, b.ShardOfModel(),
               b.Bytes(b.shard_size(), b.plan.dtype));
  c_.host.Fill(c_.streams.compute, transfer.staged + b.Bytes(b.shard_size(), b.plan.dtype),
               Count(transfer.piece_size - b.shard_size()), b.plan.dtype, 0);
}

// Every rank issues the same ones, also where it owns nothing of the bucket.
std::vector<spf_collective> LayerGathers::Operations(const Transfer& transfer) {
  const Bucket& b = BucketOf(transfer);
  const spf_addr arrival = Arrival(transfer);
  const spf_addr mine = b.shard_size() > 0 ? b.ShardOfModel() : 0;
  const spf_label label = spf::For(SPF_FOR_PARAM_FULL, b.module);
  const auto operation = [&](spf_collective_kind kind, spf_addr send, spf_addr recv, int64_t n) {
    return spf::Host::Collective(kind, b.groups.gather.handle, c_.streams.gather, b.plan.dtype,
                                 send, recv, Count(n), label);
  };
  if (InPlace()) return {operation(SPF_ALL_GATHER, mine, arrival, b.shard_size())};
  if (c_.config.transport == Transport::kPadded)
    return {operation(SPF_ALL_GATHER, transfer.staged, arrival, transfer.piece_size)};
  if (c_.config.transport == Transport::kAllGatherV) {
    counts_.clear();
    for (int32_t r = 0; r < b.layout.shards; ++r) counts_.push_back(Count(b.layout.ShardSize(r)));
    spf_collective gather = operation(SPF_ALL_GATHER_V, mine, arrival, 0);
    gather.recv_counts = counts_.data();
    return {gather};
  }
  std::vector<spf_collective> broadcasts;
  for (int32_t r = 0; r < b.layout.shards; ++r) {
    if (b.layout.ShardSize(r) == 0) continue;
    broadcasts.push_back(operation(SPF_BROADCAST, r == b.shard ? mine : 0,
                                   arrival + b.Bytes(b.layout.ShardBegin(r), b.plan.dtype),
                                   b.layout.ShardSize(r)));
    broadcasts.back().peer = r;
  }
  return broadcasts;
}

void LayerGathers::Wait(int32_t group) {
  c_.host.Wait(c_.streams.compute, At(transfers_, group).done);
}

void LayerGathers::Release(int32_t group) {
  Transfer& transfer = At(transfers_, group);
  const Bucket& b = BucketOf(transfer);
  CopyOthers(transfer);
  if (c_.config.gather_into_grads)
    c_.host.Fill(c_.streams.compute, b.main_grad, Count(b.size()), b.grad_dtype, 0);
  c_.host.Free(c_.streams.compute, transfer.buffer);
  c_.host.Free(c_.streams.compute, transfer.staged);
}

void LayerGathers::CopyOthers(const Transfer& transfer) {
  const Bucket& b = BucketOf(transfer);
  const spf_addr arrival = Arrival(transfer);
  for (int32_t r = 0; r < b.layout.shards; ++r) {
    if (r == b.shard) continue;
    const int64_t begin = b.layout.ShardBegin(r);
    const int64_t from = transfer.piece_size > 0 ? r * transfer.piece_size : begin;
    c_.host.Copy(c_.streams.compute, b.model + b.Bytes(begin, b.plan.dtype),
                 arrival + b.Bytes(from, b.plan.dtype),
                 b.Bytes(b.layout.ShardSize(r), b.plan.dtype));
  }
}

void LayerGathers::Destroy() {
  for (int32_t b = Length(transfers_); b-- > 0;) {
    if (c_.bucket(b).plan.trainable) spf::Check(c_.host.DestroyEvent(At(transfers_, b).done));
  }
}

}  // namespace reference
