// network.h: which modules, parameters, values and nodes does a model have, seen from one ep rank?
//
// Built once, constant afterwards. The spf_ tables point into the network's own storage.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/model.h"

namespace shardproof {

// Sizes after odd_sizes has been applied.
struct Dims {
  int64_t layers = 0, vocab = 0, width = 0, heads = 0, head_dim = 0, ffn = 0, sequence = 0;
  int64_t inner() const { return heads * head_dim; }
};
Dims DimsOf(const ModelConfig& config);

// How a parameter is initialised: uniformly around center, on a grid.
struct ParamInfo {
  float center = 0, spread = 0;
  bool norm = false;  // on the grid of norm weights
};

enum class Op {
  kInput,
  kEmbed,
  kNorm,
  kLinear,
  kLinearResidual,
  kAttention,
  kSwiglu,
  kGain,
  kLoss
};

// One node: what it computes on which values and parameters. Unused entries are -1.
struct NodeSpec {
  Op op = Op::kInput;
  std::string name;
  int32_t module = 0, layer = -1;
  int32_t in = -1;                 // main input value
  int32_t in2 = -1;                // residual stream of kLinearResidual; labels of kLoss
  int32_t out = -1;                // value written; tokens of kInput
  int32_t out2 = -1;               // labels of kInput
  int32_t weight = -1, bias = -1;  // parameters; kEmbed: bias is the position embedding
  bool head = false;               // belongs to the head: its gradients lie on the head's grids
  // Filled when the program is complete:
  bool grad_in = false, grad_in2 = false;       // DGRAD writes the gradient of in, in2
  bool add_in = false, add_in2 = false;         // ... by adding: it has other readers
  bool grad_weight = false, grad_bias = false;  // WGRAD adds to them
  bool operator==(const NodeSpec&) const = default;
};

class Network {
 public:
  Network(const ModelConfig& config, int32_t ep_rank);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Dims& dims() const { return dims_; }
  const spf_model& tables() const { return tables_; }
  // All layers, or one of them absent (ModelConfig.unused).
  const spf_program& program(bool absent) const { return programs_[absent ? 1 : 0]; }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  const spf_node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  const NodeSpec& spec(int32_t id) const { return specs_[static_cast<size_t>(id)]; }
  const ParamInfo& info(int32_t param) const { return infos_[static_cast<size_t>(param)]; }
  // In how many nodes of the longest program a parameter is used.
  int32_t most_uses() const { return most_uses_; }

 private:
  friend class TableBuilder;
  friend class ProgramBuilder;
  const char* Keep(std::string text);
  int32_t FindParam(const std::string& name) const;  // -1: there is none
  int32_t FindModule(const std::string& name) const;

  ModelConfig config_;
  Dims dims_;
  int32_t ep_rank_ = 0, most_uses_ = 1;
  std::deque<std::string> names_;
  std::vector<spf_module> modules_;
  std::vector<spf_param> params_;
  std::vector<ParamInfo> infos_;
  std::vector<spf_value> values_;
  std::vector<NodeSpec> specs_;
  std::vector<spf_node> nodes_;
  std::deque<std::vector<spf_use>> uses_;
  std::vector<spf_node> in_program_[2];
  spf_model tables_{};
  spf_program programs_[2]{};
};

// Whether this layer's MLP is an expert; the layer that ModelConfig.unused leaves out.
bool HasExpert(const ModelConfig& config, int64_t layer);
int64_t AbsentLayer(const ModelConfig& config);

// network.h's two halves.
void BuildTables(Network& network);    // modules and parameters (tables.cc)
void BuildPrograms(Network& network);  // values, nodes, programs (program.cc)

}  // namespace shardproof
