#include "conformance/model/interim/tables.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardproof {

Dims DimsOf(const ModelConfig& c) {
  Dims d{c.vocab, c.width, c.heads, c.ffn, c.sequence};
  if (c.odd_sizes) d = {c.vocab + 5, c.width + 6, c.heads, c.ffn + 3, c.sequence};
  return d;
}

TableSet::TableSet(const ModelConfig& config, int32_t ep_rank) : config_(config) {
  const Dims d = DimsOf(config);
  AddModule(-1, "model", "Model");
  embedding_ = AddModule(0, "embedding", "Embedding");
  if (config.root_param) position_ = AddParam(0, "position", {d.sequence, d.width}, ParamDef::Kind::kBias);
  embed_w_ = AddParam(embedding_, "embedding.weight", {d.vocab, d.width}, ParamDef::Kind::kMatrix);
  if (config.odd_sizes) shift_ = AddParam(embedding_, "embedding.shift", {1}, ParamDef::Kind::kBias);
  for (int32_t i = 0; i < config.layers; ++i) AddLayer(i, ep_rank);
  final_norm_ = AddModule(0, "final_norm", "RMSNorm");
  final_norm_w_ = AddParam(final_norm_, "final_norm.weight", {d.width}, ParamDef::Kind::kNorm);
  head_ = AddModule(0, "head", "Linear");
  head_w_ = config.tied ? embed_w_
                        : AddParam(head_, "head.weight", {d.vocab, d.width}, ParamDef::Kind::kMatrix);

  tokens_ = AddValue("tokens", SPF_I32, d.sequence, 1);
  labels_ = AddValue("labels", SPF_I32, d.sequence, 1);
  h0_ = AddValue("h0", SPF_F32, d.sequence, d.width);
  for (int32_t i = 0; i < config.layers; ++i) AddInvocation(i);
  if (config.reused && config.layers > 0) AddInvocation(config.layers - 1);
  xf_ = AddValue("xf", SPF_F32, d.sequence, d.width);
  logits_ = AddValue("logits", SPF_F32, d.sequence, d.vocab);
  loss_ = AddValue("loss", SPF_F32, 1, 1, SPF_VALUE_LOSS);

  // The short program leaves out the last layer, in every invocation.
  const size_t all = invocations_.size();
  const auto without = static_cast<size_t>(std::max(0, config.layers - 1));
  BuildProgram(all);
  const auto split = static_cast<int32_t>(nodes_.size());
  BuildProgram(without);
  program_.n_nodes = split;
  program_.nodes = nodes_.data();
  short_program_.n_nodes = static_cast<int32_t>(nodes_.size()) - split;
  short_program_.nodes = nodes_.data() + split;
  program_.size = short_program_.size = sizeof(spf_program);
  model_ = {sizeof(spf_model), static_cast<int32_t>(modules_.size()), static_cast<int32_t>(params_.size()),
            static_cast<int32_t>(values_.size()), modules_.data(), param_rows_.data(), values_.data()};
}

int32_t TableSet::AddModule(int32_t parent, const std::string& name, const std::string& type) {
  const char* stable_name = names_.emplace_back(name).c_str();
  modules_.push_back({parent, stable_name, names_.emplace_back(type).c_str()});
  return static_cast<int32_t>(modules_.size() - 1);
}

bool TableSet::Frozen(const std::string& name) const {
  if (config_.frozen == "embedding") return name.starts_with("embedding.") || name == "position";
  if (config_.frozen == "layer") return name.starts_with("layers.0.");
  if (config_.frozen == "norms") return name.find("norm.weight") != std::string::npos;
  return false;
}

int32_t TableSet::AddParam(int32_t module, const std::string& name, std::vector<int64_t> shape, ParamDef::Kind kind,
                         bool expert) {
  const bool frozen = Frozen(name);
  spf_param row{};
  row.name = names_.emplace_back(name).c_str();
  row.module = module;
  row.flags = (frozen ? uint32_t{SPF_PARAM_FROZEN} : 0u) | (expert ? uint32_t{SPF_PARAM_EXPERT} : 0u);
  row.dtype = config_.bf16_params ? SPF_BF16 : SPF_F32;
  row.n_dim = static_cast<int32_t>(shape.size());
  row.numel = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    row.shape[i] = shape[i];
    row.numel *= shape[i];
  }
  row.tp_dim = -1;
  param_rows_.push_back(row);
  params_.push_back({name, module, std::move(shape), kind, frozen, expert});
  return static_cast<int32_t>(params_.size() - 1);
}

int32_t TableSet::AddValue(const std::string& name, spf_dtype dtype, int64_t rows, int64_t elems, uint32_t flags) {
  values_.push_back({names_.emplace_back(name).c_str(), flags, dtype, rows, elems, -1});
  return static_cast<int32_t>(values_.size() - 1);
}

void TableSet::AddLayer(int32_t index, int32_t ep_rank) {
  using Kind = ParamDef::Kind;
  const Dims d = DimsOf(config_);
  const std::string name = "layers." + std::to_string(index);
  const int32_t layer = AddModule(0, name, "TransformerLayer");
  LayerIds ids{};
  ids.attn_norm = AddModule(layer, name + ".attn_norm", "RMSNorm");
  ids.attn_norm_w = AddParam(ids.attn_norm, name + ".attn_norm.weight", {d.width}, Kind::kNorm);
  ids.attention = AddModule(layer, name + ".attention", "Attention");
  const auto linear = [&](int32_t module, const std::string& of, int64_t n, int64_t k, int32_t* w, int32_t* b,
                          bool expert) {
    *w = AddParam(module, of + ".weight", {n, k}, Kind::kMatrix, expert);
    *b = config_.biases ? AddParam(module, of + ".bias", {n}, Kind::kBias, expert) : -1;
  };
  linear(ids.attention, name + ".attention.qkv", 3 * d.width, d.width, &ids.qkv_w, &ids.qkv_b, false);
  linear(ids.attention, name + ".attention.proj", d.width, d.width, &ids.proj_w, &ids.proj_b, false);
  ids.mlp_norm = AddModule(layer, name + ".mlp_norm", "RMSNorm");
  ids.mlp_norm_w = AddParam(ids.mlp_norm, name + ".mlp_norm.weight", {d.width}, Kind::kNorm);
  const bool expert = config_.experts && index % 2 == 1;
  const std::string mlp = expert ? name + ".experts." + std::to_string(ep_rank) : name + ".mlp";
  ids.mlp = AddModule(layer, mlp, expert ? "Expert" : "MLP");
  linear(ids.mlp, mlp + ".fc1", d.ffn, d.width, &ids.fc1_w, &ids.fc1_b, expert);
  linear(ids.mlp, mlp + ".fc2", d.width, d.ffn, &ids.fc2_w, &ids.fc2_b, expert);
  layers_.push_back(ids);
}

void TableSet::AddInvocation(int32_t layer) {
  const Dims d = DimsOf(config_);
  const std::string p = "run" + std::to_string(invocations_.size()) + ".";
  const auto value = [&](const char* name, int64_t elems) { return AddValue(p + name, SPF_F32, d.sequence, elems); };
  Invocation at{};
  at.layer = layer;
  at.x1 = value("x1", d.width);
  at.qkv = value("qkv", 3 * d.width);
  at.a = value("a", d.width);
  at.mid = value("mid", d.width);
  at.x2 = value("x2", d.width);
  at.u = value("u", d.ffn);
  at.g = value("g", d.ffn);
  at.out = value("h", d.width);
  invocations_.push_back(at);
}

NodeDef& TableSet::AddNode(Op op, const std::string& name, int32_t module, int32_t layer) {
  NodeDef& def = defs_.emplace_back();
  def.op = op;
  def.name = name;
  def.module = module;
  def.layer = layer;
  const auto at = std::find(site_names_.begin(), site_names_.end(), name);
  def.site = static_cast<int32_t>(at - site_names_.begin());
  if (at == site_names_.end()) site_names_.push_back(name);
  return def;
}

void TableSet::AddLayerNodes(const Invocation& at, int32_t in, const std::string& p) {
  const LayerIds& l = layers_[static_cast<size_t>(at.layer)];
  const Dims d = DimsOf(config_);
  const auto norm = [&](const char* name, int32_t module, int32_t from, int32_t to, int32_t w) {
    NodeDef& def = AddNode(Op::kNorm, p + name, module, at.layer);
    def.in = from, def.out = to, def.weight = w, def.n = d.width;
  };
  const auto linear = [&](Op op, const char* name, int32_t module, int32_t from, int32_t to, int32_t w, int32_t b,
                          int64_t k, int64_t n) -> NodeDef& {
    NodeDef& def = AddNode(op, p + name, module, at.layer);
    def.in = from, def.out = to, def.weight = w, def.bias = b, def.k = k, def.n = n;
    return def;
  };
  norm("attn_norm", l.attn_norm, in, at.x1, l.attn_norm_w);
  linear(Op::kLinear, "qkv", l.attention, at.x1, at.qkv, l.qkv_w, l.qkv_b, d.width, 3 * d.width);
  NodeDef& core = AddNode(Op::kAttention, p + "attention", l.attention, at.layer);
  core.in = at.qkv, core.out = at.a, core.n = d.width;
  linear(Op::kResidualLinear, "proj", l.attention, at.a, at.mid, l.proj_w, l.proj_b, d.width, d.width).residual = in;
  norm("mlp_norm", l.mlp_norm, at.mid, at.x2, l.mlp_norm_w);
  linear(Op::kLinear, "fc1", l.mlp, at.x2, at.u, l.fc1_w, l.fc1_b, d.width, d.ffn);
  NodeDef& act = AddNode(Op::kSilu, p + "act", l.mlp, at.layer);
  act.in = at.u, act.out = at.g, act.n = d.ffn;
  linear(Op::kResidualLinear, "fc2", l.mlp, at.g, at.out, l.fc2_w, l.fc2_b, d.ffn, d.width).residual = at.mid;
}

void TableSet::BuildProgram(size_t invocations) {
  const Dims d = DimsOf(config_);
  const size_t first = defs_.size();
  NodeDef& input = AddNode(Op::kInput, "input", 0, -1);
  input.in = labels_, input.out = tokens_;
  NodeDef& embed = AddNode(Op::kEmbed, "embed", embedding_, -1);
  embed.in = tokens_, embed.out = h0_, embed.weight = embed_w_, embed.position = position_, embed.shift = shift_;
  embed.n = d.width;
  int32_t h = h0_;
  for (size_t i = 0; i < invocations; ++i) {
    const Invocation& at = invocations_[i];
    const bool again = i >= static_cast<size_t>(config_.layers);
    AddLayerNodes(at, h, "layers." + std::to_string(at.layer) + (again ? ".again." : "."));
    h = at.out;
  }
  NodeDef& norm = AddNode(Op::kNorm, "final_norm", final_norm_, -1);
  norm.in = h, norm.out = xf_, norm.weight = final_norm_w_, norm.n = d.width;
  NodeDef& head = AddNode(Op::kHead, "head", head_, -1);
  head.in = xf_, head.out = logits_, head.weight = head_w_, head.k = d.width, head.n = d.vocab;
  NodeDef& loss = AddNode(Op::kLoss, "loss", 0, -1);
  loss.in = logits_, loss.residual = labels_, loss.out = loss_, loss.n = d.vocab;
  FinishNodes(first);
}

namespace {

void Use(std::vector<spf_use>& uses, spf_table table, int32_t id, spf_access access) {
  if (id >= 0) uses.push_back({static_cast<uint8_t>(table), static_cast<uint8_t>(access), 0, id});
}

// Backward = DGRAD then WGRAD: what either uses, with the wider access.
std::vector<spf_use> Union(const std::vector<spf_use>& a, const std::vector<spf_use>& b) {
  std::vector<spf_use> out = a;
  for (const spf_use& use : b) {
    const auto at = std::find_if(out.begin(), out.end(),
                                 [&](const spf_use& o) { return o.table == use.table && o.id == use.id; });
    if (at == out.end()) {
      out.push_back(use);
    } else {
      at->access = static_cast<uint8_t>(at->access | use.access);
    }
  }
  return out;
}

std::vector<spf_use> ForwardUses(const NodeDef& d) {
  std::vector<spf_use> u;
  if (d.op == Op::kInput) {
    Use(u, SPF_IN_ACT, d.out, SPF_WRITE);
    Use(u, SPF_IN_ACT, d.in, SPF_WRITE);
    return u;
  }
  Use(u, SPF_IN_PARAM, d.weight, SPF_READ);
  Use(u, SPF_IN_PARAM, d.bias, SPF_READ);
  Use(u, SPF_IN_PARAM, d.position, SPF_READ);
  Use(u, SPF_IN_PARAM, d.shift, SPF_READ);
  Use(u, SPF_IN_ACT, d.in, SPF_READ);
  Use(u, SPF_IN_ACT, d.residual, SPF_READ);
  Use(u, SPF_IN_ACT, d.out, SPF_WRITE);
  return u;
}

}  // namespace

void TableSet::FinishNodes(size_t first) {
  std::map<int32_t, int> readers;  // nodes whose DGRAD writes this value's gradient
  for (size_t i = first; i < defs_.size(); ++i) {
    const NodeDef& d = defs_[i];
    if (d.op == Op::kInput || d.op == Op::kEmbed) continue;
    ++readers[d.in];
    if (d.op == Op::kResidualLinear) ++readers[d.residual];
  }
  const auto access = [&](int32_t value) { return readers[value] > 1 ? SPF_ADD : SPF_WRITE; };
  const auto trains = [&](int32_t param) { return param >= 0 && !params_[static_cast<size_t>(param)].frozen; };
  for (size_t i = first; i < defs_.size(); ++i) {
    const NodeDef& d = defs_[i];
    std::vector<spf_use> dgrad, wgrad;
    if (d.op != Op::kInput && d.op != Op::kEmbed) {
      if (d.op != Op::kLoss) Use(dgrad, SPF_IN_DACT, d.out, SPF_READ);
      Use(dgrad, SPF_IN_PARAM, d.weight, SPF_READ);
      const bool needs_input = d.op == Op::kNorm || d.op == Op::kAttention || d.op == Op::kSilu || d.op == Op::kLoss;
      if (needs_input) Use(dgrad, SPF_IN_ACT, d.in, SPF_READ);
      if (d.op == Op::kLoss) Use(dgrad, SPF_IN_ACT, d.residual, SPF_READ);
      Use(dgrad, SPF_IN_DACT, d.in, access(d.in));
      if (d.op == Op::kResidualLinear) Use(dgrad, SPF_IN_DACT, d.residual, access(d.residual));
    }
    if (trains(d.weight) || trains(d.bias) || trains(d.position) || trains(d.shift)) {
      Use(wgrad, SPF_IN_DACT, d.out, SPF_READ);
      Use(wgrad, SPF_IN_ACT, d.in, SPF_READ);
      for (const int32_t param : {d.weight, d.bias, d.position, d.shift}) {
        if (trains(param)) Use(wgrad, SPF_IN_GRAD, param, SPF_ADD);
      }
    }
    spf_node node{};
    node.id = static_cast<int32_t>(nodes_.size());
    node.module = d.module;
    node.kind = d.op == Op::kInput ? SPF_NODE_INPUT : SPF_NODE_COMPUTE;
    node.layer = d.layer;
    node.name = names_.emplace_back(d.name).c_str();
    node.send_counts = node.recv_counts = -1;
    const std::vector<spf_use> by_phase[4] = {ForwardUses(d), Union(dgrad, wgrad), dgrad, wgrad};
    for (int phase = 0; phase < 4; ++phase) {
      const std::vector<spf_use>& kept = uses_.emplace_back(by_phase[phase]);
      node.uses[phase] = {static_cast<int32_t>(kept.size()), kept.data()};
    }
    nodes_.push_back(node);
  }
}

}  // namespace shardproof
