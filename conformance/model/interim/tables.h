// tables.h: which modules, parameters, values and nodes does a config have?
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/model.h"

namespace shardproof {

enum class Op : uint8_t { kInput, kEmbed, kNorm, kLinear, kAttention, kSilu, kResidualLinear, kHead, kLoss };

// One node as the kernels need it. Ids of values and parameters, -1 where there is none.
struct NodeDef {
  Op op = Op::kInput;
  std::string name;
  int32_t module = 0, layer = -1;
  int32_t in = -1, residual = -1, out = -1;
  int32_t weight = -1, bias = -1, position = -1, shift = -1;
  int64_t k = 0, n = 0;  // linear: inputs and outputs
  int32_t site = -1;     // nodes of one name share the grids of their gradients
};

struct ParamDef {
  std::string name;
  int32_t module = 0;
  std::vector<int64_t> shape;
  enum class Kind : uint8_t { kMatrix, kNorm, kBias } kind = Kind::kMatrix;
  bool frozen = false, expert = false;
};

// The network as one ep rank sees it. Ids do not depend on the ep rank, names of expert parameters do.
class TableSet {
 public:
  TableSet(const ModelConfig& config, int32_t ep_rank);
  TableSet(const TableSet&) = delete;
  TableSet& operator=(const TableSet&) = delete;

  const spf_model& model() const { return model_; }
  const spf_program& program(bool short_one) const { return short_one ? short_program_ : program_; }
  const std::vector<NodeDef>& defs() const { return defs_; }
  const std::vector<ParamDef>& params() const { return params_; }
  const spf_node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t sites() const { return static_cast<int32_t>(site_names_.size()); }

 private:
  struct LayerIds {
    int32_t attn_norm_w, qkv_w, qkv_b, proj_w, proj_b, mlp_norm_w, fc1_w, fc1_b, fc2_w, fc2_b;
    int32_t attn_norm, attention, mlp_norm, mlp;
  };
  struct Invocation {
    int32_t layer, x1, qkv, a, mid, x2, u, g, out;
  };
  int32_t AddModule(int32_t parent, const std::string& name, const std::string& type);
  int32_t AddParam(int32_t module, const std::string& name, std::vector<int64_t> shape, ParamDef::Kind kind,
                   bool expert = false);
  int32_t AddValue(const std::string& name, spf_dtype dtype, int64_t rows, int64_t elems, uint32_t flags = 0);
  void AddLayer(int32_t index, int32_t ep_rank);
  void AddInvocation(int32_t layer);
  NodeDef& AddNode(Op op, const std::string& name, int32_t module, int32_t layer);
  void AddLayerNodes(const Invocation& at, int32_t in, const std::string& prefix);
  void BuildProgram(size_t invocations);
  void FinishNodes(size_t first);
  bool Frozen(const std::string& name) const;

  const ModelConfig& config_;
  std::deque<std::string> names_;
  std::vector<spf_module> modules_;
  std::vector<ParamDef> params_;
  std::vector<spf_param> param_rows_;
  std::vector<spf_value> values_;
  std::vector<LayerIds> layers_;
  std::vector<Invocation> invocations_;
  std::vector<NodeDef> defs_;
  std::vector<spf_node> nodes_;
  std::deque<std::vector<spf_use>> uses_;
  std::vector<std::string> site_names_;
  int32_t embedding_ = 0, final_norm_ = 0, head_ = 0;
  int32_t embed_w_ = -1, position_ = -1, shift_ = -1, final_norm_w_ = -1, head_w_ = -1;
  int32_t tokens_ = -1, labels_ = -1, h0_ = -1, xf_ = -1, logits_ = -1, loss_ = -1;
  spf_model model_{};
  spf_program program_{}, short_program_{};
};

struct Dims {
  int64_t vocab, width, heads, ffn, sequence;
};
Dims DimsOf(const ModelConfig& config);

}  // namespace shardproof
