#include "conformance/model/node_bench.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace shardproof {

namespace {

size_t ElementBytes(const spf_value& value) {
  return value.dtype == SPF_I64 ? sizeof(int64_t) : sizeof(float);
}

}  // namespace

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

NodeBench::NodeBench(const ModelConfig& config, int64_t max_tokens, ModelRank rank)
    : model_(config, max_tokens), rank_(rank) {}

Blocks NodeBench::Start() const {
  Blocks blocks;
  for (int32_t id = 0; id < tables().n_params; ++id) {
    const int64_t numel = tables().params[id].numel;
    std::vector<float> values(static_cast<size_t>(numel));
    model_.InitialValue(id, rank_, 0, numel, values.data());
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
    blocks.act.emplace_back(ElementBytes(value) *
                            static_cast<size_t>(value.max_rows * value.row_elems));
    blocks.dact.push_back(blocks.act.back());
  }
  blocks.rows.resize(blocks.act.size());
  return blocks;
}

size_t NodeBench::LiveBytes(const Blocks& blocks, int32_t value) const {
  const spf_value& v = tables().values[value];
  const bool dynamic = (v.flags & SPF_VALUE_DYNAMIC) != 0;
  const int64_t rows = dynamic ? blocks.rows[static_cast<size_t>(value)] : v.max_rows;
  return ElementBytes(v) * static_cast<size_t>(rows * v.row_elems);
}

int32_t FindParam(const spf_model& tables, const std::string& name) {
  for (int32_t id = 0; id < tables.n_params; ++id) {
    if (name == tables.params[id].name) return id;
  }
  throw std::logic_error("no parameter " + name);
}

int32_t FindValue(const spf_model& tables, const std::string& name) {
  for (int32_t id = 0; id < tables.n_values; ++id) {
    if (name == tables.values[id].name) return id;
  }
  throw std::logic_error("no value " + name);
}

void CountRows(const spf_model& tables, const spf_node& node, Blocks& blocks) {
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t i = 0; i < uses.n; ++i) {
    const int32_t counts = uses.use[i].id;
    if (uses.use[i].table != SPF_IN_ACT || uses.use[i].access != SPF_WRITE) continue;
    if ((tables.values[counts].flags & SPF_VALUE_COUNTS) == 0) continue;
    const Block& block = blocks.act[static_cast<size_t>(counts)];
    std::vector<int64_t> each(block.size() / sizeof(int64_t));
    std::memcpy(each.data(), block.data(), block.size());
    for (int32_t id = 0; id < tables.n_values; ++id) {
      if (tables.values[id].rows_from == counts)
        blocks.rows[static_cast<size_t>(id)] =
            std::accumulate(each.begin(), each.end(), int64_t{0});
    }
  }
}

// As if all ranks held what this one holds. Exchanges are of equal sizes here; of a sequence what
// is read is a part of what is written, or the other way round.
void NodeBench::Move(Blocks& blocks, const spf_node& node, spf_phase phase) const {
  const spf_uses& uses = node.uses[phase];
  std::vector<Block>& table = phase == SPF_FWD ? blocks.act : blocks.dact;
  const Block& from = table[static_cast<size_t>(uses.use[0].id)];
  Block& to = table[static_cast<size_t>(uses.use[1].id)];
  const size_t part = std::min(LiveBytes(blocks, uses.use[0].id), to.size());
  const size_t times = tables().values[uses.use[1].id].rows_from < 0 ? to.size() / part : 1;
  const int32_t rank = node.kind == SPF_NODE_ALL_GATHER_CP ? rank_.cp : rank_.tp;
  const size_t first = from.size() > to.size() ? static_cast<size_t>(rank) * part : 0;
  for (size_t i = 0; i < times; ++i) std::memcpy(to.data() + i * part, from.data() + first, part);
}

void NodeBench::Run(Blocks& blocks, const spf_node& node, spf_phase phase, double scale,
                    int32_t grad_dtype, int64_t step, int64_t sample) const {
  if (node.uses[phase].n == 0) return;
  if (node.kind == SPF_NODE_ALL_REDUCE) return;
  if (node.kind != SPF_NODE_COMPUTE && node.kind != SPF_NODE_INPUT)
    return Move(blocks, node, phase);
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
  args.scale = args.aux_scale = scale;
  args.grad_dtype = grad_dtype;
  args.param = param.data();
  args.grad = grad.data();
  args.act = act.data();
  args.dact = dact.data();
  args.rows = blocks.rows.data();
  Compute(args);
  if (phase == SPF_FWD) CountRows(tables(), node, blocks);
}

// A loss in chunks is added to.
void NodeBench::ClearLoss(Blocks& blocks) const {
  for (int32_t id = 0; id < tables().n_values; ++id) {
    if ((tables().values[id].flags & SPF_VALUE_LOSS) != 0) *blocks.Floats(SPF_IN_ACT, id) = 0;
  }
}

void NodeBench::RunSample(Blocks& blocks, int64_t step, int64_t sample, bool split, double scale,
                          int32_t grad_dtype) const {
  for (Block& block : blocks.dact) std::fill(block.begin(), block.end(), std::byte{0});
  ClearLoss(blocks);
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
  ModelConfig routed;
  routed.layers = 3;
  routed.moe.experts = 4;
  routed.moe.layers = "odd";
  routed.moe.shared = routed.moe.z_loss = routed.moe.aux_loss = true;
  routed.moe.score = "sigmoid";
  routed.mtp = routed.biases = true;
  ModelConfig dropped;
  dropped.moe.experts = 4;
  dropped.moe.capacity_percent = 100;
  dropped.moe.aux_loss = true;
  dropped.reused = true;
  dropped.unused = "step";
  ModelConfig padded = dropped;
  padded.reused = false;
  padded.moe.pad = padded.bf16_params = padded.tied = padded.mtp = true;
  padded.frozen = "layer";
  padded.moe.score = "presoftmax";
  ModelConfig context = all;
  context.tied = false;
  context.context_parallel = true;
  ModelConfig split = all;
  split.tensor_parallel = true;
  split.tp = 2;
  ModelConfig parts = split;
  parts.sequence_parallel = true;
  parts.tp = 1;
  ModelConfig vocabulary = split;
  vocabulary.vocab_parallel = true;
  vocabulary.vocab_multiple = 4;
  vocabulary.tp = 1;  // each token is in the range
  ModelConfig chunks = all;
  chunks.loss_chunks = 2;
  return {ModelConfig{}, all,     experts, embedding, layer,      routed, dropped,
          padded,        context, split,   chunks,    vocabulary, parts};
}

ModelConfig Split(int32_t tp, const ModelConfig& from) {
  ModelConfig config = from;
  config.tensor_parallel = true;
  config.tp = tp;
  return config;
}

}  // namespace shardproof
