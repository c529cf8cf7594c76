// network.h: modules and parameters.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "conformance/model/moe_kernels.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

constexpr int32_t kOddHeads = 4;  // of odd_sizes with tensor_parallel

int64_t NextPrime(int64_t n) {
  for (++n;; ++n) {
    bool prime = n > 6;  // worlds of 2, 3, 5 and their multiples must not divide it
    for (int64_t d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
    if (prime) return n;
  }
}

bool Under(std::string_view name, std::string_view prefix) {
  return name.substr(0, prefix.size()) == prefix &&
         (name.size() == prefix.size() || name[prefix.size()] == '.');
}

}  // namespace

Dims DimsOf(const ModelConfig& config) {
  Dims dims{config.layers, config.vocab,   config.width, config.heads, 0,
            config.ffn,    config.sequence};
  dims.tp = config.tp;
  dims.cp = config.cp;
  dims.head_dim = config.width / config.heads;
  const int64_t vocab = config.vocab_multiple * NextPrime(dims.vocab / config.vocab_multiple);
  if (config.odd_sizes) dims.vocab = vocab;
  dims.local_vocab = config.vocab_parallel ? dims.vocab / dims.tp : dims.vocab;
  if (!config.odd_sizes) return dims;
  dims.width = NextPrime(dims.width);
  // Tensor-parallel ranks divide heads and ffn all the same; nobody divides what each of them has.
  dims.heads = config.tensor_parallel ? kOddHeads : 1;
  dims.head_dim = config.tensor_parallel ? NextPrime(config.width / kOddHeads) : dims.width;
  dims.ffn =
      config.tensor_parallel ? kOddHeads * NextPrime(dims.ffn / kOddHeads) : NextPrime(dims.ffn);
  return dims;
}

int64_t ElementOfWhole(const spf_param& param, int64_t tp, int64_t rank, int64_t at) {
  if (param.tp_dim < 0) return at;
  int64_t run = 1;  // elements of the shard that are next to each other in the whole
  for (int32_t i = param.tp_dim; i < param.n_dim; ++i) run *= param.shape[i];
  return at / run * run * tp + rank * run + at % run;
}

bool HasExpert(const ModelConfig& config, int64_t layer) {
  return config.experts && (layer % 2 == 1 || config.layers == 1);
}

bool HasMoe(const ModelConfig& config, int64_t layer) {
  const std::string& which = config.moe.layers;
  if (config.moe.experts == 0) return false;
  if (which == "odd") return layer % 2 == 1;
  if (which == "even") return layer % 2 == 0;
  if (which == "last") return layer == config.layers - 1;
  return which == "first" ? layer == 0 : true;
}

bool SplitsMlp(const ModelConfig& config, int64_t layer) {
  return config.tensor_parallel && !HasExpert(config, layer) && !HasMoe(config, layer);
}

std::string LayerName(int64_t layer) { return "layers." + std::to_string(layer); }

MoeSizes MoeSizesOf(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  MoeSizes sizes;
  if (moe.experts == 0) return sizes;
  sizes.experts = moe.experts;
  sizes.local = moe.experts / config.ep;
  sizes.top_k = moe.top_k;
  const int64_t tokens = config.sequence_parallel ? config.sequence / config.tp : config.sequence;
  const int64_t choices = tokens * moe.top_k;
  sizes.tokens = tokens;
  sizes.capacity = ExpertCapacity(tokens / moe.parts, moe.top_k, moe.experts, moe.capacity_percent);
  sizes.sent = choices;
  // A token's choices are different experts.
  sizes.received = config.ep * tokens * std::min<int64_t>(moe.top_k, sizes.local);
  if (sizes.capacity == 0) return sizes;
  const int64_t most = moe.experts * sizes.capacity * moe.parts;
  if (moe.pad) {
    sizes.sent = sizes.received = most;
  } else {
    sizes.sent = std::min(sizes.sent, most);
    sizes.received = std::min(sizes.received, most);
  }
  return sizes;
}

int64_t AbsentLayer(const ModelConfig& config) {
  return config.frozen == "layer" ? config.layers - 1 : 0;
}

class TableBuilder {
 public:
  explicit TableBuilder(Network& network) : n_(network), c_(network.config_), d_(network.dims_) {}

  void Build() {
    Module(-1, "model", "Model");
    for (const Stage& stage : n_.Stages()) {
      if (stage.first) First();
      for (int64_t layer = stage.begin; layer < stage.end; ++layer) Layer(layer);
      if (stage.last) Last();
    }
  }

 private:
  void First() {
    // Rows of a split vocabulary are added to positions of this rank's part of the sequence.
    const uint32_t flags = c_.vocab_parallel ? OfParts() : 0;
    if (c_.root_param) Param(0, "position", {d_.whole_sequence(), d_.width}, {0, 0.5f}, flags);
    const int32_t embedding = Module(0, "embedding", "Embedding");
    Param(embedding, "embedding.weight", {d_.vocab, d_.width}, {0, c_.tied ? 0.5f : 0.99f}, 0,
          c_.vocab_parallel ? 0 : -1);
  }

  void Last() {
    if (c_.mtp) Mtp();
    Norm(0, "final_norm");
    if (c_.odd_sizes) {
      const int32_t gain = Module(0, "gain", "Gain");
      Param(gain, "gain.weight", {1}, {0, 1, true});
    }
    Linear(0, "head", d_.width, d_.vocab, 0, !c_.tied, c_.vocab_parallel ? 0 : -1);
  }

  int32_t Module(int32_t parent, const std::string& name, const char* type) {
    n_.modules_.push_back({parent, n_.Keep(name), type});
    return static_cast<int32_t>(n_.modules_.size()) - 1;
  }

  bool Frozen(const std::string& name, bool norm) const {
    return (c_.frozen == "embedding" && Under(name, "embedding")) ||
           (c_.frozen == "layer" && Under(name, LayerName(0))) ||
           (c_.frozen == "middle" && Under(name, LayerName(c_.layers / 2))) ||
           (c_.frozen == "last" && Under(name, LayerName(c_.layers - 1))) ||
           (c_.frozen == "norms" && norm);
  }

  // shape: of the whole; split: the dimension that is split over tp, or -1.
  void Param(int32_t module, const std::string& name, const std::vector<int64_t>& shape,
             ParamInfo info, uint32_t flags = 0, int32_t split = -1) {
    spf_param param{};
    param.name = n_.Keep(name);
    param.module = module;
    const bool norm = std::string_view(n_.modules_[static_cast<size_t>(module)].type) == "RMSNorm";
    param.flags = flags | (Frozen(name, norm) ? static_cast<uint32_t>(SPF_PARAM_FROZEN) : 0u);
    param.dtype = c_.bf16_params ? SPF_BF16 : SPF_F32;
    param.n_dim = static_cast<int32_t>(shape.size());
    param.numel = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      param.shape[i] = static_cast<int32_t>(i) == split ? shape[i] / d_.tp : shape[i];
      param.numel *= param.shape[i];
    }
    param.tp_dim = split;
    n_.params_.push_back(param);
    n_.infos_.push_back(info);
  }

  void Norm(int32_t parent, const std::string& name) {
    const int32_t module = Module(parent, name, "RMSNorm");
    Param(module, name + ".weight", {d_.width}, {1, 0.25f, true}, OfParts());
  }

  // split: 0 by output, 1 by input, whose bias is whole, -1 not.
  void Linear(int32_t parent, const std::string& name, int64_t in, int64_t out, uint32_t flags = 0,
              bool weight = true, int32_t split = -1) {
    const int32_t module = Module(parent, name, "Linear");
    // Keeps the variance of its input.
    const float spread = std::sqrt(3.0f / static_cast<float>(in));
    if (weight)
      Param(module, name + ".weight", {out, in}, {0, spread < 0.99f ? spread : 0.99f}, flags,
            split);
    // The bias of a layer that is split by input is added to this rank's part of the sequence.
    if (c_.biases)
      Param(module, name + ".bias", {out}, {0, 0.25f}, split == 1 ? flags | OfParts() : flags,
            split == 0 ? 0 : -1);
  }

  uint32_t OfParts() const {
    return c_.sequence_parallel ? static_cast<uint32_t>(SPF_PARAM_SEQUENCE_PARALLEL) : 0u;
  }

  void Layer(int64_t layer) {
    const std::string name = LayerName(layer);
    const int32_t module = BeginLayer(0, name);
    if (HasMoe(c_, layer)) return Moe(module, name + ".moe");
    const bool expert = HasExpert(c_, layer);
    const std::string mlp = name + (expert ? ".experts." + std::to_string(n_.rank().ep) : ".mlp");
    Mlp(module, mlp, expert ? "Expert" : "MLP", expert ? SPF_PARAM_EXPERT : 0,
        SplitsMlp(c_, layer));
  }

  // A layer up to its MLP.
  int32_t BeginLayer(int32_t parent, const std::string& name) {
    const int32_t module = Module(parent, name, "TransformerLayer");
    Norm(module, name + ".attn_norm");
    const int32_t attention = Module(module, name + ".attention", "Attention");
    const bool split = c_.tensor_parallel;
    Linear(attention, name + ".attention.qkv", d_.width, 3 * d_.inner(), 0, true, split ? 0 : -1);
    Linear(attention, name + ".attention.proj", d_.inner(), d_.width, 0, true, split ? 1 : -1);
    Norm(module, name + ".mlp_norm");
    return module;
  }

  void Mlp(int32_t parent, const std::string& name, const char* type, uint32_t flags,
           bool split = false) {
    const int32_t module = Module(parent, name, type);
    Linear(module, name + ".fc1", d_.width, 2 * d_.ffn, flags, true, split ? 0 : -1);
    Linear(module, name + ".fc2", d_.ffn, d_.width, flags, true, split ? 1 : -1);
  }

  void Moe(int32_t parent, const std::string& name) {
    const MoeSizes sizes = MoeSizesOf(c_);
    const int32_t module = Module(parent, name, "MoE");
    const int32_t router = Module(module, name + ".router", "Router");
    const float spread = std::sqrt(3.0f / static_cast<float>(d_.width));
    Param(router, name + ".router.weight", {sizes.experts, d_.width},
          {0, spread < 0.99f ? spread : 0.99f}, OfParts());
    if (c_.moe.score == "sigmoid")
      Param(router, name + ".router.expert_bias", {sizes.experts}, {0, 0.25f}, SPF_PARAM_FROZEN);
    if (c_.moe.shared) Mlp(module, name + ".shared", "SharedExpert", OfParts());
    Module(module, name + ".dispatch", "Dispatcher");
    const int32_t experts = Module(module, name + ".experts", "Experts");
    for (int64_t i = 0; i < sizes.local; ++i) {
      const int64_t expert = n_.rank().ep * sizes.local + i;
      Mlp(experts, name + ".experts." + std::to_string(expert), "Expert", SPF_PARAM_EXPERT);
    }
    Module(module, name + ".combine", "Combiner");
  }

  // The layer that predicts the token after the next one.
  void Mtp() {
    const int32_t module = Module(0, "mtp", "MTP");
    Norm(module, "mtp.embed_norm");
    Norm(module, "mtp.hidden_norm");
    Linear(module, "mtp.eh_proj", 2 * d_.width, d_.width);
    Moe(BeginLayer(module, "mtp.layer"), "mtp.layer.moe");
    Norm(module, "mtp.final_norm");
  }

  Network& n_;
  const ModelConfig& c_;
  const Dims& d_;
};

int64_t Network::TokensOf(const NodeSpec& spec) const {
  return (spec.part ? dims_.local_sequence() : dims_.sequence) / spec.loss_chunks;
}

int64_t Network::FirstRowOf(const NodeSpec& spec) const { return spec.loss_chunk * TokensOf(spec); }

int64_t Network::FirstTokenOf(const NodeSpec& spec) const {
  return spec.part ? rank_.tp * dims_.local_sequence() : 0;
}

void BuildTables(Network& network) { TableBuilder(network).Build(); }

}  // namespace shardproof
