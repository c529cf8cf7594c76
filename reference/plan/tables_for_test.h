// tables_for_test.h: which tables does a host hand out? Those of a small transformer, for tests of
// what follows from tables. Only what the schedule looks at is filled in.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"

namespace reference {

// layers: one letter each, m (MoE) or d (dense); mtp: one MoE layer more, with nodes around it;
// weight_in_combine: the sum after the exchange back has a weight, for which there is no place.
class TablesForTest {
 public:
  explicit TablesForTest(const std::string& layers, bool mtp = false,
                         bool weight_in_combine = false)
      : weight_in_combine_(weight_in_combine) {
    root_ = Module(-1, "Model");
    Node("input", root_, SPF_NODE_INPUT, {}, Value());
    int32_t h = Compute("embedding", Module(root_, "Embedding"), {values_back()}, true);
    for (char kind : layers) {
      h = Layer("layers." + std::to_string(layer_), Module(root_, "TransformerLayer"), h,
                kind == 'm');
      ++layer_;
    }
    const int32_t last = h;
    if (mtp) Mtp(last);
    layer_ = -1;
    h = Compute("final_norm", Module(root_, "RMSNorm"), {last}, true);
    h = Compute("head", Module(root_, "Linear"), {h}, true);
    Loss("loss", h);
    if (mtp) Loss("loss.mtp", Compute("head.mtp", 1, {h}, true));
    Fix();
  }
  const spf_model& model() const { return model_; }
  const spf_program& program() const { return program_; }

 private:
  struct NodeText {
    std::string name;
    std::vector<spf_use> uses[4];
  };

  int32_t Module(int32_t parent, const char* type) {
    modules_.push_back({parent, type, type});
    return static_cast<int32_t>(modules_.size()) - 1;
  }
  int32_t Value(spf_dtype dtype = SPF_F32) {
    values_.push_back({"", 0, dtype, 4, 4, -1});
    return values_back();
  }
  int32_t values_back() const { return static_cast<int32_t>(values_.size()) - 1; }

  int32_t Node(const std::string& name, int32_t module, int32_t kind, std::vector<int32_t> in,
               int32_t out, bool weight = false) {
    spf_node node{};
    node.id = static_cast<int32_t>(nodes_.size());
    node.module = module;
    node.kind = kind;
    node.layer = in.empty() && kind == SPF_NODE_INPUT ? -1 : current_layer();
    node.send_counts = node.recv_counts = -1;
    NodeText& text = texts_.emplace_back();
    text.name = name;
    const auto add = [&](spf_phase phase, int32_t table, int32_t access, int32_t id) {
      text.uses[phase].push_back(
          {static_cast<uint8_t>(table), static_cast<uint8_t>(access), 0, id});
    };
    for (int32_t v : in) add(SPF_FWD, SPF_IN_ACT, SPF_READ, v);
    add(SPF_FWD, SPF_IN_ACT, SPF_WRITE, out);
    const bool backward = kind != SPF_NODE_INPUT && IsFloat(out);
    for (spf_phase phase : {SPF_BWD, SPF_DGRAD}) {
      if (!backward) break;
      add(phase, SPF_IN_DACT, SPF_READ, out);
      for (int32_t v : in) {
        if (IsFloat(v)) add(phase, SPF_IN_DACT, SPF_ADD, v);
      }
    }
    if (weight) {
      const int32_t param = n_params_++;
      add(SPF_FWD, SPF_IN_PARAM, SPF_READ, param);
      for (spf_phase phase : {SPF_BWD, SPF_WGRAD}) {
        add(phase, SPF_IN_ACT, SPF_READ, in[0]);
        add(phase, SPF_IN_GRAD, SPF_ADD, param);
      }
      add(SPF_WGRAD, SPF_IN_DACT, SPF_READ, out);
    }
    nodes_.push_back(node);
    return out;
  }
  bool IsFloat(int32_t value) const { return values_[static_cast<size_t>(value)].dtype == SPF_F32; }
  int32_t current_layer() const { return in_layer_ ? layer_ : -1; }
  int32_t Compute(const std::string& name, int32_t module, std::vector<int32_t> in,
                  bool weight = false) {
    const int32_t out = Value();
    return Node(name, module, SPF_NODE_COMPUTE, std::move(in), out, weight);
  }
  int32_t Exchange(const std::string& name, int32_t module, int32_t in) {
    const int32_t out = Value(values_[static_cast<size_t>(in)].dtype);
    return Node(name, module, SPF_NODE_EXCHANGE, {in}, out);
  }

  int32_t Layer(const std::string& p, int32_t module, int32_t h, bool moe) {
    in_layer_ = true;
    const int32_t attention = Module(module, "Attention");
    int32_t x = Compute(p + ".attn_norm", Module(module, "RMSNorm"), {h}, true);
    x = Compute(p + ".qkv", Module(attention, "Linear"), {x}, true);
    x = Compute(p + ".core", attention, {x});
    h = Compute(p + ".proj", Module(attention, "Linear"), {x, h}, true);
    x = Compute(p + ".mlp_norm", Module(module, "RMSNorm"), {h}, true);
    h = moe ? Moe(p, module, x, h) : Mlp(p + ".mlp", Module(module, "MLP"), x, h);
    in_layer_ = false;
    return h;
  }
  int32_t Mlp(const std::string& p, int32_t module, int32_t x, int32_t h) {
    x = Compute(p + ".fc1", Module(module, "Linear"), {x}, true);
    x = Compute(p + ".swiglu", module, {x});
    std::vector<int32_t> in{x};
    if (h >= 0) in.push_back(h);
    return Compute(p + ".fc2", Module(module, "Linear"), in, true);
  }
  int32_t Moe(const std::string& p, int32_t layer, int32_t x, int32_t h) {
    const int32_t moe = Module(layer, "MoE"), dispatch = Module(moe, "Dispatcher");
    const int32_t experts = Module(moe, "Experts");
    const int32_t shared = Mlp(p + ".shared", Module(moe, "SharedExpert"), x, -1);
    const int32_t probs = Compute(p + ".router", Module(moe, "Router"), {x}, true);
    const int32_t rows = Compute(p + ".permute", dispatch, {x, probs});
    const int32_t counts = Value(SPF_I64);
    Node(p + ".count", dispatch, SPF_NODE_COMPUTE, {probs}, counts);
    const int32_t received = Exchange(p + ".counts", dispatch, counts);
    const int32_t tokens = Exchange(p + ".dispatch", dispatch, rows);
    const int32_t token_probs = Exchange(p + ".dispatch_probs", dispatch, probs);
    int32_t y = Compute(p + ".experts.fc1", experts, {tokens, received}, true);
    y = Compute(p + ".experts.act", experts, {y, token_probs});
    y = Compute(p + ".experts.fc2", experts, {y, received}, true);
    const int32_t combine = Module(moe, "Combiner");
    y = Exchange(p + ".combine", combine, y);
    return Compute(p + ".unpermute", combine, {y, shared, h}, weight_in_combine_);
  }
  void Mtp(int32_t h) {
    in_layer_ = true;
    const int32_t mtp = Module(root_, "MTP");
    const int32_t e = Compute("mtp.embedding", 1, {0}, true);
    const int32_t a = Compute("mtp.embed_norm", Module(mtp, "RMSNorm"), {e}, true);
    const int32_t b = Compute("mtp.hidden_norm", Module(mtp, "RMSNorm"), {h}, true);
    const int32_t x = Compute("mtp.eh_proj", Module(mtp, "Linear"), {a, b}, true);
    const int32_t y = Layer("mtp.layer", Module(mtp, "TransformerLayer"), x, true);
    in_layer_ = true;
    Compute("mtp.final_norm", Module(mtp, "RMSNorm"), {y}, true);
    in_layer_ = false;
  }
  void Loss(const std::string& name, int32_t in) {
    Node(name, root_, SPF_NODE_COMPUTE, {in}, Value());
    NodeText& text = texts_.back();
    for (spf_phase phase : {SPF_BWD, SPF_DGRAD})
      text.uses[phase] = {{SPF_IN_ACT, SPF_READ, 0, in}, {SPF_IN_DACT, SPF_WRITE, 0, in}};
  }
  void Fix() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i].name = texts_[i].name.c_str();
      for (int phase = 0; phase < 4; ++phase) {
        const std::vector<spf_use>& uses = texts_[i].uses[phase];
        nodes_[i].uses[phase] = {static_cast<int32_t>(uses.size()), uses.data()};
      }
    }
    model_ = {sizeof model_,
              static_cast<int32_t>(modules_.size()),
              0,
              static_cast<int32_t>(values_.size()),
              modules_.data(),
              nullptr,
              values_.data()};
    program_ = {sizeof program_, static_cast<int32_t>(nodes_.size()), nodes_.data()};
  }

  int32_t root_ = 0, layer_ = 0, n_params_ = 0;
  bool in_layer_ = false;
  const bool weight_in_combine_;
  std::vector<spf_module> modules_;
  std::vector<spf_value> values_;
  std::vector<spf_node> nodes_;
  std::deque<NodeText> texts_;
  spf_model model_{};
  spf_program program_{};
};

}  // namespace reference
