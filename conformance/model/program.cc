// network.h: values, nodes, programs.
#include <algorithm>

#include "conformance/model/program_builder.h"

namespace shardproof {

void ProgramBuilder::Build(bool absent) {
  program_.clear();
  for (const Stage& stage : n_.Stages()) Forward(stage, absent);
  spf_model tables{};
  tables.n_params = static_cast<int32_t>(n_.params_.size());
  tables.n_values = static_cast<int32_t>(n_.values_.size());
  tables.params = n_.params_.data();
  tables.values = n_.values_.data();
  n_.most_uses_ = std::max(n_.most_uses_, DecideGradients(program_, tables));
  for (const NodeSpec& spec : program_) Register(spec, absent);
}

void ProgramBuilder::Forward(const Stage& stage, bool absent) {
  chunk_ = stage.chunk;
  int32_t h = Begin(stage);
  for (int64_t layer = stage.begin; layer < stage.end; ++layer) {
    if (absent && layer == AbsentLayer(c_)) continue;
    h = DecoderLayer(layer, h, "");
    if (c_.reused && layer == d_.layers - 1) h = DecoderLayer(layer, h, ".again");
  }
  if (!stage.last) {
    // Without a layer another value would be the last one; nothing is left out in a pipeline.
    if (!absent) n_.values_[static_cast<size_t>(h)].flags |= SPF_VALUE_TO_NEXT;
    return;
  }
  const int32_t labels = Integers("labels");
  const int32_t next = c_.mtp ? Mtp(h, labels) : -1;
  Head(h, labels);
  if (c_.mtp) MtpHead(next, labels);
}

int32_t ProgramBuilder::Begin(const Stage& stage) {
  if (stage.first || stage.last) {
    NodeSpec input;
    input.name = stage.first ? "input" : "input.labels";
    input.chunk = chunk_;
    if (stage.first) input.out[0] = Integers("tokens");
    if (stage.last) input.out[1] = Integers("labels");
    program_.push_back(input);
  }
  if (!stage.first) {
    const int32_t h = StreamValue(StreamName(stage.begin - 1));
    n_.values_[static_cast<size_t>(h)].flags |= SPF_VALUE_FROM_PREV;
    return h;
  }
  if (c_.vocab_parallel) return SplitEmbedding();
  NodeSpec& embed =
      Add(Op::kEmbed, "embedding", "embedding", Integers("tokens"), StreamValue("embedding"));
  embed.weights = {n_.FindParam("embedding.weight")};
  embed.biases = {n_.FindParam("position")};
  embed.part = c_.sequence_parallel;
  const int32_t h = embed.out[0];
  if (!c_.sequence_parallel) return h;
  // Forward it takes its part of the tokens. All ranks have the whole gradient of its weight.
  const int32_t whole = embed.grad_from = Value("embedding.whole", d_.width);
  Add(Op::kReduceScatter, "embedding.scatter", "embedding", whole, h).backward = true;
  return h;
}

std::string ProgramBuilder::StreamName(int64_t layer) const {
  const std::string name = LayerName(layer);
  if (HasMoe(c_, layer)) return name + ".moe.unpermute";
  if (HasExpert(c_, layer)) return name + ".experts." + std::to_string(n_.rank().ep) + ".fc2";
  return name + (SplitsMlp(c_, layer) ? ".mlp.fc2.residual" : ".mlp.fc2");
}

void ProgramBuilder::SetLayer(size_t first, int64_t layer) {
  for (size_t i = first; i < program_.size(); ++i) program_[i].layer = static_cast<int32_t>(layer);
}

int32_t ProgramBuilder::DecoderLayer(int64_t layer, int32_t h, const std::string& suffix) {
  const size_t first = program_.size();
  const std::string name = LayerName(layer);
  h = Attention(name, h, suffix);
  const int32_t x = Norm(name + ".mlp_norm", h, suffix);
  const std::string mlp =
      name + (HasExpert(c_, layer) ? ".experts." + std::to_string(n_.rank().ep) : ".mlp");
  h = HasMoe(c_, layer)      ? Moe(name + ".moe", x, h, suffix)
      : SplitsMlp(c_, layer) ? SplitMlp(mlp, x, h, suffix)
                             : Mlp(mlp, x, h, suffix);
  SetLayer(first, layer);
  return h;
}

int32_t ProgramBuilder::Attention(const std::string& name, int32_t h, const std::string& suffix) {
  const std::string attention = name + ".attention";
  int32_t x = Norm(name + ".attn_norm", h, suffix);
  const int64_t inner = d_.local_heads() * d_.head_dim;
  const bool split = c_.tensor_parallel;
  x = split ? ColumnLinear(attention + ".qkv", x, 3 * inner, suffix)
            : Linear(attention + ".qkv", x, 3 * inner, suffix);
  const int32_t keys_values = c_.context_parallel ? GatherKeysValues(attention, x, suffix) : -1;
  const std::string core = attention + ".core" + suffix;
  x = Add(Op::kAttention, core, attention, x, Value(core, inner)).out[0];
  program_.back().in[1] = keys_values;
  program_.back().split = split;
  return split ? RowLinear(attention + ".proj", x, h, suffix)
               : LinearResidual(attention + ".proj", x, h, suffix);
}

int32_t ProgramBuilder::GatherKeysValues(const std::string& attention, int32_t qkv,
                                         const std::string& suffix) {
  const int64_t width = 2 * d_.local_heads() * d_.head_dim;
  const std::string own = attention + ".keys_values" + suffix;
  NodeSpec& take = Add(Op::kKeysValues, own, attention, qkv, Value(own, width));
  take.split = c_.tensor_parallel;
  const int32_t part = take.out[0];
  const std::string all = attention + ".keys_values.gather" + suffix;
  const int32_t whole = AddValue(all, {nullptr, 0, SPF_F32, d_.whole_sequence(), width, -1});
  Add(Op::kAllGather, all, attention, part, whole).over_cp = true;
  return whole;
}

int32_t ProgramBuilder::SplitMlp(const std::string& mlp, int32_t x, int32_t h,
                                 const std::string& suffix) {
  x = ColumnLinear(mlp + ".fc1", x, 2 * d_.local_ffn(), suffix);
  const std::string swiglu = mlp + ".swiglu" + suffix;
  x = Add(Op::kSwiglu, swiglu, mlp, x, Value(swiglu, d_.local_ffn())).out[0];
  program_.back().split = true;
  return RowLinear(mlp + ".fc2", x, h, suffix);
}

int32_t ProgramBuilder::Mlp(const std::string& mlp, int32_t x, int32_t h,
                            const std::string& suffix) {
  x = Linear(mlp + ".fc1", x, 2 * d_.ffn, suffix);
  const std::string swiglu = mlp + ".swiglu" + suffix;
  x = Add(Op::kSwiglu, swiglu, mlp, x, Value(swiglu, d_.ffn)).out[0];
  if (h < 0) return Linear(mlp + ".fc2", x, d_.width, suffix);
  return LinearResidual(mlp + ".fc2", x, h, suffix);
}

void ProgramBuilder::Head(int32_t h, int32_t labels) {
  int32_t x = Norm("final_norm", h, "");
  program_.back().head = true;
  if (c_.sequence_parallel) {
    const size_t norm = program_.size() - 1;
    x = AllGather("head.gather", "head", x);
    // All ranks compute the whole head, or what its gain makes of it, and have the whole gradient
    // of its input.
    if (!c_.vocab_parallel || c_.odd_sizes) {
      program_.back().forward = true;
      program_[norm].grad_from = x;
    }
  }
  if (c_.odd_sizes) {
    NodeSpec& gain = Add(Op::kGain, "gain", "gain", x, Value("gain", d_.width));
    gain.weights = {n_.FindParam("gain.weight")};
    x = gain.out[0];
  }
  if (c_.vocab_parallel) return SplitHeadAndLoss(x, labels);
  for (int32_t chunk = 0; chunk < c_.loss_chunks; ++chunk) HeadAndLoss(x, labels, chunk);
}

void ProgramBuilder::HeadAndLoss(int32_t x, int32_t labels, int32_t chunk) {
  const std::string suffix = c_.loss_chunks > 1 ? "." + std::to_string(chunk) : "";
  const std::string head = "head" + suffix;
  const spf_value logits{nullptr, 0, SPF_F32, d_.sequence / c_.loss_chunks, d_.vocab, -1};
  const size_t first = program_.size();
  Add(Op::kLinear, head, "head", x, AddValue(head, logits)).head = true;
  Weights(program_.back(), "head");
  if (c_.tied) program_.back().weights = {n_.FindParam("embedding.weight")};
  NodeSpec& loss = Add(Op::kLoss, "loss" + suffix, "model", program_.back().out[0],
                       Loss("loss", SPF_VALUE_LOSS));
  loss.in[1] = labels;
  for (size_t i = first; i < program_.size(); ++i) {
    program_[i].loss_chunk = chunk;
    program_[i].loss_chunks = c_.loss_chunks;
  }
}

NodeSpec& ProgramBuilder::Add(Op op, const std::string& name, const std::string& module, int32_t in,
                              int32_t out) {
  NodeSpec& spec = program_.emplace_back();
  spec.op = op;
  spec.name = name;
  spec.module = n_.FindModule(module);
  spec.chunk = chunk_;
  spec.part = part_;
  spec.in[0] = in;
  spec.out[0] = out;
  return spec;
}

void ProgramBuilder::Weights(NodeSpec& spec, const std::string& module) {
  spec.weights = {n_.FindParam(module + ".weight")};
  spec.biases = {n_.FindParam(module + ".bias")};
}

int32_t ProgramBuilder::Norm(const std::string& module, int32_t h, const std::string& suffix) {
  NodeSpec& spec = Add(Op::kNorm, module + suffix, module, h, StreamValue(module + suffix));
  spec.part = c_.sequence_parallel;
  spec.weights = {n_.FindParam(module + ".weight")};
  return spec.out[0];
}

int32_t ProgramBuilder::Linear(const std::string& module, int32_t x, int64_t out,
                               const std::string& suffix) {
  NodeSpec& spec = Add(Op::kLinear, module + suffix, module, x, Value(module + suffix, out));
  Weights(spec, module);
  return spec.out[0];
}

int32_t ProgramBuilder::LinearResidual(const std::string& module, int32_t x, int32_t h,
                                       const std::string& suffix) {
  const int32_t out = Linear(module, x, d_.width, suffix);
  program_.back().op = Op::kLinearResidual;
  program_.back().in[1] = h;
  return out;
}

int32_t ProgramBuilder::ColumnLinear(const std::string& module, int32_t x, int64_t out,
                                     const std::string& suffix) {
  if (c_.sequence_parallel) {
    x = AllGather(module + ".gather" + suffix, module, x);
  } else {
    AllReduce(module + ".copy" + suffix, module, x, true);
  }
  x = Linear(module, x, out, suffix);
  program_.back().op = Op::kColumnLinear;
  return x;
}

// The bias belongs to what adds up, once, behind the sum.
int32_t ProgramBuilder::RowLinear(const std::string& module, int32_t x, int32_t h,
                                  const std::string& suffix) {
  int32_t sum = Linear(module, x, d_.width, suffix);
  program_.back().op = Op::kRowLinear;
  program_.back().biases.clear();
  if (c_.sequence_parallel) {
    sum = ReduceScatter(module + ".scatter" + suffix, module, sum);
  } else {
    AllReduce(module + ".reduce" + suffix, module, sum, false);
  }
  const std::string residual = module + ".residual" + suffix;
  NodeSpec& add = Add(Op::kResidualAdd, residual, module, sum, StreamValue(residual));
  add.part = c_.sequence_parallel;
  add.in[1] = h;
  add.biases = {n_.FindParam(module + ".bias")};
  return add.out[0];
}

void ProgramBuilder::AllReduce(const std::string& name, const std::string& module, int32_t value,
                               bool backward) {
  Add(Op::kAllReduce, name, module, value, -1).backward = backward;
}

int32_t ProgramBuilder::AllGather(const std::string& name, const std::string& module, int32_t x) {
  return Add(Op::kAllGather, name, module, x, Value(name, d_.width)).out[0];
}

int32_t ProgramBuilder::ReduceScatter(const std::string& name, const std::string& module,
                                      int32_t sum) {
  return Add(Op::kReduceScatter, name, module, sum, StreamValue(name)).out[0];
}

int32_t ProgramBuilder::AddValue(const std::string& name, spf_value value) {
  for (size_t i = 0; i < n_.values_.size(); ++i) {
    if (name == n_.values_[i].name) return static_cast<int32_t>(i);
  }
  value.name = n_.Keep(name);
  n_.values_.push_back(value);
  return static_cast<int32_t>(n_.values_.size()) - 1;
}

int32_t ProgramBuilder::Value(const std::string& name, int64_t width) {
  const int64_t tokens = part_ ? d_.local_sequence() : d_.sequence;
  return AddValue(name, {nullptr, 0, SPF_F32, tokens, width, -1});
}

int32_t ProgramBuilder::StreamValue(const std::string& name) {
  const int64_t tokens = c_.sequence_parallel ? d_.local_sequence() : d_.sequence;
  return AddValue(name, {nullptr, 0, SPF_F32, tokens, d_.width, -1});
}

int32_t ProgramBuilder::Integers(const std::string& name) {
  return AddValue(name, {nullptr, 0, SPF_I32, d_.sequence, 1, -1});
}

int32_t ProgramBuilder::Loss(const std::string& name, uint32_t flags) {
  return AddValue(name, {nullptr, flags, SPF_F32, 1, 1, -1});
}

spf_uses ProgramBuilder::Store(std::vector<spf_use> uses) {
  n_.uses_.push_back(std::move(uses));
  return {static_cast<int32_t>(n_.uses_.back().size()), n_.uses_.back().data()};
}

void ProgramBuilder::Register(const NodeSpec& spec, bool absent) {
  const auto known = std::find(n_.specs_.begin(), n_.specs_.end(), spec);
  const auto id = static_cast<size_t>(known - n_.specs_.begin());
  if (known == n_.specs_.end()) {
    n_.specs_.push_back(spec);
    spf_node node{};
    node.id = static_cast<int32_t>(id);
    node.module = spec.module;
    node.kind = spec.op == Op::kInput           ? SPF_NODE_INPUT
                : spec.op == Op::kExchange      ? SPF_NODE_EXCHANGE
                : spec.op == Op::kAllReduce     ? SPF_NODE_ALL_REDUCE
                : spec.over_cp                  ? SPF_NODE_ALL_GATHER_CP
                : spec.op == Op::kAllGather     ? SPF_NODE_ALL_GATHER
                : spec.op == Op::kReduceScatter ? SPF_NODE_REDUCE_SCATTER
                                                : SPF_NODE_COMPUTE;
    node.layer = spec.layer;
    node.chunk = spec.chunk;
    node.name = n_.Keep(spec.name);
    for (spf_phase phase : {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
      node.uses[phase] = Store(UsesOf(spec, phase, n_.values_.data()));
    }
    node.send_counts = spec.send_counts;
    node.recv_counts = spec.recv_counts;
    n_.nodes_.push_back(node);
  }
  n_.in_program_[absent ? 1 : 0].push_back(n_.nodes_[id]);
}

void BuildPrograms(Network& network) {
  ProgramBuilder builder(network);
  builder.Build(false);
  builder.Build(true);
}

}  // namespace shardproof
