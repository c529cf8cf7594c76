#include "conformance/oracle/shards.h"

#include "conformance/model/network.h"

namespace shardproof {
namespace {

using Tensors = std::map<std::string, std::vector<float>>;

std::vector<float> ShardOf(const std::vector<float>& whole, const spf_param& shard, int32_t tp,
                           int32_t rank) {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(shard.numel));
  for (int64_t i = 0; i < shard.numel; ++i)
    values.push_back(whole[static_cast<size_t>(ElementOfWhole(shard, tp, rank, i))]);
  return values;
}

void Cut(const spf_param& param, int32_t tp, Tensors& tensors) {
  const auto whole = tensors.find(param.name);
  if (whole == tensors.end()) return;
  spf_param shard = param;
  shard.shape[param.tp_dim] /= tp;
  shard.numel /= tp;
  for (int32_t rank = 0; rank < tp; ++rank)
    tensors[ShardName(param.name, rank, tp)] = ShardOf(whole->second, shard, tp, rank);
  tensors.erase(whole);
}

}  // namespace

void CutIntoShards(const spf_model& whole, int32_t tp, OracleCall& call) {
  for (int32_t id = 0; id < whole.n_params; ++id) {
    const spf_param& param = whole.params[id];
    if (param.tp_dim < 0) continue;
    Cut(param, tp, call.grads);
    Cut(param, tp, call.weights);
    for (Tensors& sample : call.sample_grads) Cut(param, tp, sample);
  }
}

}  // namespace shardproof
