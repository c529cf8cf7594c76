#include "conformance/model/node_bench.h"

#include <algorithm>
#include <cstring>

namespace shardproof {

std::vector<Block>& Blocks::Table(int32_t table) {
  switch (table) {
    case SPF_IN_PARAM:
      return param;
    case SPF_IN_GRAD:
      return grad;
    case SPF_IN_ACT:
      return act;
    default:
      return dact;
  }
}

NodeBench::NodeBench(const ModelConfig& config, int64_t max_tokens, int32_t ep_rank)
    : model_(config, max_tokens), ep_rank_(ep_rank) {}

Blocks NodeBench::Start() const {
  Blocks blocks;
  for (int32_t id = 0; id < tables().n_params; ++id) {
    const int64_t numel = tables().params[id].numel;
    std::vector<float> values(static_cast<size_t>(numel));
    model_.InitialValue(id, ep_rank_, 0, numel, values.data());
    Block& param = blocks.param.emplace_back(values.size() * sizeof(float));
    if (model_.config().bf16_params) {
      std::vector<uint16_t> bits;
      for (float value : values) bits.push_back(ToBf16(value));
      param.resize(bits.size() * sizeof(uint16_t));
      std::memcpy(param.data(), bits.data(), param.size());
    } else {
      std::memcpy(param.data(), values.data(), param.size());
    }
    blocks.grad.emplace_back(values.size() * sizeof(float));
  }
  for (int32_t id = 0; id < tables().n_values; ++id) {
    const spf_value& value = tables().values[id];
    blocks.act.emplace_back(static_cast<size_t>(value.max_rows * value.row_elems) *
                            (value.dtype == SPF_I64 ? sizeof(int64_t) : sizeof(float)));
    blocks.dact.push_back(blocks.act.back());
  }
  return blocks;
}

void NodeBench::Run(Blocks& blocks, const spf_node& node, spf_phase phase, double scale,
                    int32_t grad_dtype, int64_t step, int64_t sample) const {
  if (node.uses[phase].n == 0) return;
  std::vector<const void*> param(blocks.param.size());
  std::vector<void*> grad(blocks.grad.size()), act(blocks.act.size()), dact(blocks.dact.size());
  for (size_t i = 0; i < param.size(); ++i) param[i] = blocks.param[i].data();
  for (size_t i = 0; i < grad.size(); ++i) grad[i] = blocks.grad[i].data();
  for (size_t i = 0; i < act.size(); ++i) act[i] = blocks.act[i].data();
  for (size_t i = 0; i < dact.size(); ++i) dact[i] = blocks.dact[i].data();
  NodeArgs args;
  args.node = node.id;
  args.phase = phase;
  args.step = step;
  args.sample = sample;
  args.scale = scale;
  args.grad_dtype = grad_dtype;
  args.param = param.data();
  args.grad = grad.data();
  args.act = act.data();
  args.dact = dact.data();
  model_.Compute(args, ep_rank_);
}

void NodeBench::RunSample(Blocks& blocks, int64_t step, int64_t sample, bool split, double scale,
                          int32_t grad_dtype) const {
  for (Block& block : blocks.dact) std::fill(block.begin(), block.end(), std::byte{0});
  const spf_program& p = program(step, sample);
  auto run = [&](int32_t i, spf_phase phase) {
    Run(blocks, p.nodes[i], phase, scale, grad_dtype, step, sample);
  };
  for (int32_t i = 0; i < p.n_nodes; ++i) run(i, SPF_FWD);
  for (int32_t i = p.n_nodes; i-- > 0;) run(i, split ? SPF_DGRAD : SPF_BWD);
  for (int32_t i = 0; split && i < p.n_nodes; ++i) run(i, SPF_WGRAD);
}

std::vector<ModelConfig> VariedConfigs() {
  ModelConfig all;
  all.layers = 3;
  all.biases = all.odd_sizes = all.root_param = all.reused = all.tied = true;
  all.sequence = 4;
  ModelConfig experts = all;
  experts.tied = experts.odd_sizes = false;
  experts.experts = true;
  experts.ep = 2;
  experts.frozen = "norms";
  experts.unused = "rank";
  experts.d_odd = 3;
  ModelConfig embedding;
  embedding.frozen = "embedding";
  embedding.unused = "step";
  embedding.bf16_params = true;
  ModelConfig layer = all;
  layer.frozen = "layer";
  layer.narrow = true;
  return {ModelConfig{}, all, experts, embedding, layer};
}

}  // namespace shardproof
