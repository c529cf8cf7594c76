// network.h: values, nodes, programs.
#include <algorithm>
#include <map>

#include "conformance/model/network.h"

namespace shardproof {

// One forward program at a time. Values are shared by name between programs; nodes that are equal
// in both, too.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Network& network) : n_(network), c_(network.config_), d_(network.dims_) {}

  void Build(bool absent) {
    program_.clear();
    Forward(absent);
    DecideGradients();
    for (NodeSpec& spec : program_) Register(spec, absent);
  }

 private:
  void Forward(bool absent) {
    const int32_t tokens = Integers("tokens"), labels = Integers("labels");
    NodeSpec input{Op::kInput, "input"};
    input.out = tokens;
    input.out2 = labels;
    program_.push_back(input);
    NodeSpec& embed =
        Add(Op::kEmbed, "embedding", "embedding", tokens, Value("embedding", d_.width));
    embed.weight = n_.FindParam("embedding.weight");
    embed.bias = n_.FindParam("position");
    int32_t h = embed.out;
    for (int64_t layer = 0; layer < d_.layers; ++layer) {
      if (absent && layer == AbsentLayer(c_)) continue;
      const bool twice = c_.reused && layer == d_.layers - 1;
      h = Layer(layer, h, "");
      if (twice) h = Layer(layer, h, ".again");
    }
    Head(h, labels);
  }

  int32_t Layer(int64_t layer, int32_t h, const std::string& suffix) {
    const size_t first = program_.size();
    const std::string name = "layers." + std::to_string(layer);
    const std::string attention = name + ".attention";
    int32_t x = Norm(name + ".attn_norm", h, suffix);
    x = Linear(attention + ".qkv", x, 3 * d_.inner(), suffix);
    x = Add(Op::kAttention, attention + ".core" + suffix, attention, x,
            Value(attention + ".core" + suffix, d_.inner()))
            .out;
    h = LinearResidual(attention + ".proj", x, h, suffix);
    x = Norm(name + ".mlp_norm", h, suffix);
    const std::string mlp =
        name + (HasExpert(c_, layer) ? ".experts." + std::to_string(n_.ep_rank_) : ".mlp");
    x = Linear(mlp + ".fc1", x, 2 * d_.ffn, suffix);
    x = Add(Op::kSwiglu, mlp + ".swiglu" + suffix, mlp, x, Value(mlp + ".swiglu" + suffix, d_.ffn))
            .out;
    h = LinearResidual(mlp + ".fc2", x, h, suffix);
    for (size_t i = first; i < program_.size(); ++i)
      program_[i].layer = static_cast<int32_t>(layer);
    return h;
  }

  void Head(int32_t h, int32_t labels) {
    int32_t x = Norm("final_norm", h, "");
    program_.back().head = true;
    if (c_.odd_sizes) {
      NodeSpec& gain = Add(Op::kGain, "gain", "gain", x, Value("gain", d_.width));
      gain.weight = n_.FindParam("gain.weight");
      x = gain.out;
    }
    x = Linear("head", x, d_.vocab, "");
    program_.back().head = true;
    if (c_.tied) program_.back().weight = n_.FindParam("embedding.weight");
    NodeSpec& loss = Add(Op::kLoss, "loss", "model", x, Loss());
    loss.in2 = labels;
  }

  NodeSpec& Add(Op op, const std::string& name, const std::string& module, int32_t in,
                int32_t out) {
    NodeSpec spec;
    spec.op = op;
    spec.name = name;
    spec.module = n_.FindModule(module);
    spec.in = in;
    spec.out = out;
    program_.push_back(spec);
    return program_.back();
  }
  int32_t Norm(const std::string& module, int32_t h, const std::string& suffix) {
    NodeSpec& spec = Add(Op::kNorm, module + suffix, module, h, Value(module + suffix, d_.width));
    spec.weight = n_.FindParam(module + ".weight");
    return spec.out;
  }
  int32_t Linear(const std::string& module, int32_t x, int64_t out, const std::string& suffix) {
    NodeSpec& spec = Add(Op::kLinear, module + suffix, module, x, Value(module + suffix, out));
    spec.weight = n_.FindParam(module + ".weight");
    spec.bias = n_.FindParam(module + ".bias");
    return spec.out;
  }
  int32_t LinearResidual(const std::string& module, int32_t x, int32_t h,
                         const std::string& suffix) {
    const int32_t out = Linear(module, x, d_.width, suffix);
    program_.back().op = Op::kLinearResidual;
    program_.back().in2 = h;
    return out;
  }

  int32_t AddValue(const std::string& name, spf_value value) {
    for (size_t i = 0; i < n_.values_.size(); ++i) {
      if (name == n_.values_[i].name) return static_cast<int32_t>(i);
    }
    value.name = n_.Keep(name);
    value.rows_from = -1;
    n_.values_.push_back(value);
    return static_cast<int32_t>(n_.values_.size()) - 1;
  }
  int32_t Value(const std::string& name, int64_t width) {
    return AddValue(name, {nullptr, 0, SPF_F32, d_.sequence, width, -1});
  }
  int32_t Integers(const std::string& name) {
    return AddValue(name, {nullptr, 0, SPF_I32, d_.sequence, 1, -1});
  }
  int32_t Loss() { return AddValue("loss", {nullptr, SPF_VALUE_LOSS, SPF_F32, 1, 1, -1}); }

  bool Trainable(int32_t param) const {
    return param >= 0 && (n_.params_[static_cast<size_t>(param)].flags & SPF_PARAM_FROZEN) == 0;
  }

  // A value needs a gradient if a trainable parameter lies upstream; it is added to if several
  // nodes write it.
  void DecideGradients() {
    std::vector<bool> wanted(n_.values_.size());
    std::vector<int32_t> writers(n_.values_.size());
    std::map<int32_t, int32_t> uses;
    auto wants = [&](int32_t value) { return value >= 0 && wanted[static_cast<size_t>(value)]; };
    for (NodeSpec& spec : program_) {
      if (spec.op == Op::kInput) continue;
      spec.grad_weight = Trainable(spec.weight);
      spec.grad_bias = Trainable(spec.bias);
      spec.grad_in = wants(spec.in);
      spec.grad_in2 = wants(spec.in2);
      if (spec.op != Op::kLoss) {
        wanted[static_cast<size_t>(spec.out)] =
            spec.grad_weight || spec.grad_bias || spec.grad_in || spec.grad_in2;
      }
      if (spec.grad_in) ++writers[static_cast<size_t>(spec.in)];
      if (spec.grad_in2) ++writers[static_cast<size_t>(spec.in2)];
      if (spec.weight >= 0) n_.most_uses_ = std::max(n_.most_uses_, ++uses[spec.weight]);
    }
    for (NodeSpec& spec : program_) {
      spec.add_in = spec.grad_in && writers[static_cast<size_t>(spec.in)] > 1;
      spec.add_in2 = spec.grad_in2 && writers[static_cast<size_t>(spec.in2)] > 1;
    }
  }

  using Uses = std::vector<spf_use>;
  static void Use(Uses& uses, spf_table table, spf_access access, int32_t id) {
    if (id >= 0) uses.push_back({static_cast<uint8_t>(table), static_cast<uint8_t>(access), 0, id});
  }

  static Uses ForwardUses(const NodeSpec& s) {
    Uses uses;
    Use(uses, SPF_IN_PARAM, SPF_READ, s.weight);
    Use(uses, SPF_IN_PARAM, SPF_READ, s.bias);
    Use(uses, SPF_IN_ACT, SPF_READ, s.in);
    Use(uses, SPF_IN_ACT, SPF_READ, s.in2);
    Use(uses, SPF_IN_ACT, SPF_WRITE, s.out);
    Use(uses, SPF_IN_ACT, SPF_WRITE, s.out2);
    return uses;
  }

  static Uses DgradUses(const NodeSpec& s) {
    Uses uses;
    if (!s.grad_in && !s.grad_in2) return uses;
    if (s.grad_in && s.op != Op::kLoss) Use(uses, SPF_IN_PARAM, SPF_READ, s.weight);
    const bool reads_input =
        s.op == Op::kNorm || s.op == Op::kAttention || s.op == Op::kSwiglu || s.op == Op::kLoss;
    if (reads_input) Use(uses, SPF_IN_ACT, SPF_READ, s.in);
    if (s.op == Op::kLoss) Use(uses, SPF_IN_ACT, SPF_READ, s.in2);
    if (s.op != Op::kLoss) Use(uses, SPF_IN_DACT, SPF_READ, s.out);
    if (s.grad_in) Use(uses, SPF_IN_DACT, s.add_in ? SPF_ADD : SPF_WRITE, s.in);
    if (s.grad_in2) Use(uses, SPF_IN_DACT, s.add_in2 ? SPF_ADD : SPF_WRITE, s.in2);
    return uses;
  }

  static Uses WgradUses(const NodeSpec& s) {
    Uses uses;
    if (!s.grad_weight && !s.grad_bias) return uses;
    if (s.grad_weight) Use(uses, SPF_IN_ACT, SPF_READ, s.in);
    Use(uses, SPF_IN_DACT, SPF_READ, s.out);
    if (s.grad_weight) Use(uses, SPF_IN_GRAD, SPF_ADD, s.weight);
    if (s.grad_bias) Use(uses, SPF_IN_GRAD, SPF_ADD, s.bias);
    return uses;
  }

  static Uses Union(const Uses& a, const Uses& b) {
    Uses uses = a;
    for (const spf_use& use : b) {
      auto same = std::find_if(uses.begin(), uses.end(), [&](const spf_use& u) {
        return u.table == use.table && u.id == use.id;
      });
      if (same == uses.end()) {
        uses.push_back(use);
      } else {
        same->access = static_cast<uint8_t>(same->access | use.access);
      }
    }
    return uses;
  }

  spf_uses Store(Uses uses) {
    n_.uses_.push_back(std::move(uses));
    return {static_cast<int32_t>(n_.uses_.back().size()), n_.uses_.back().data()};
  }

  void Register(const NodeSpec& spec, bool absent) {
    const auto known = std::find(n_.specs_.begin(), n_.specs_.end(), spec);
    const auto id = static_cast<size_t>(known - n_.specs_.begin());
    if (known == n_.specs_.end()) {
      n_.specs_.push_back(spec);
      spf_node node{};
      node.id = static_cast<int32_t>(id);
      node.module = spec.module;
      node.kind = spec.op == Op::kInput ? SPF_NODE_INPUT : SPF_NODE_COMPUTE;
      node.layer = spec.layer;
      node.name = n_.Keep(spec.name);
      node.uses[SPF_FWD] = Store(ForwardUses(spec));
      node.uses[SPF_DGRAD] = Store(DgradUses(spec));
      node.uses[SPF_WGRAD] = Store(WgradUses(spec));
      node.uses[SPF_BWD] = Store(Union(DgradUses(spec), WgradUses(spec)));
      node.send_counts = node.recv_counts = -1;
      n_.nodes_.push_back(node);
    }
    n_.in_program_[absent ? 1 : 0].push_back(n_.nodes_[id]);
  }

  Network& n_;
  const ModelConfig& c_;
  const Dims& d_;
  std::vector<NodeSpec> program_;
};

void BuildPrograms(Network& network) {
  ProgramBuilder builder(network);
  builder.Build(false);
  builder.Build(true);
}

const char* Network::Keep(std::string text) { return names_.emplace_back(std::move(text)).c_str(); }

int32_t Network::FindParam(const std::string& name) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (name == params_[i].name) return static_cast<int32_t>(i);
  }
  return -1;
}

int32_t Network::FindModule(const std::string& name) const {
  for (size_t i = 0; i < modules_.size(); ++i) {
    if (name == modules_[i].name) return static_cast<int32_t>(i);
  }
  return -1;
}

Network::Network(const ModelConfig& config, int32_t ep_rank)
    : config_(config), dims_(DimsOf(config)), ep_rank_(ep_rank) {
  BuildTables(*this);
  BuildPrograms(*this);
  tables_ = {sizeof(spf_model),
             static_cast<int32_t>(modules_.size()),
             static_cast<int32_t>(params_.size()),
             static_cast<int32_t>(values_.size()),
             modules_.data(),
             params_.data(),
             values_.data()};
  for (int i = 0; i < 2; ++i) {
    programs_[i] = {sizeof(spf_program), static_cast<int32_t>(in_program_[i].size()),
                    in_program_[i].data()};
  }
}

}  // namespace shardproof
