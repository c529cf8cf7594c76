// network.h: which modules, parameters, values and nodes does a model have, seen from one rank?
//
// Built once, constant afterwards. The spf_ tables point into the network's own storage.
#pragma once
#include <array>
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
  int64_t tp = 1;  // ranks that share heads, and ffn of dense MLPs
  int64_t cp = 1;  // ranks that have parts, of `sequence` tokens, of one sequence
  int64_t inner() const { return heads * head_dim; }
  int64_t local_heads() const { return heads / tp; }
  int64_t local_ffn() const { return ffn / tp; }
  int64_t local_sequence() const { return sequence / tp; }
  int64_t local_vocab = 0;  // rows of embedding and head that a rank has
  int64_t whole_sequence() const { return sequence * cp; }
};
Dims DimsOf(const ModelConfig& config);

// How a parameter is initialised: uniformly around center, on a grid.
struct ParamInfo {
  float center = 0, spread = 0;
  bool norm = false;  // on the grid of norm weights
};

// Where element `at` of a shard is in the tensor that it is a shard of; at itself if param is
// whole. tp: ranks, rank: this one.
int64_t ElementOfWhole(const spf_param& param, int64_t tp, int64_t rank, int64_t at);

// in and out: what the values of a node are. Where nothing is said: in {x}, out {y}, weight and
// bias as usual.
enum class Op {
  kInput,        // out {tokens, labels}; -1: not needed on this stage
  kEmbed,        // in {tokens}; bias is the position embedding. split: rows of the own range of the
                 // vocabulary, else zeros: a summand over tp, on no grid yet
  kEmbedStream,  // in {sum of a split kEmbed}; bias is the position embedding
  kNorm,
  kLinear,
  kLinearResidual,  // in {x, residual stream}
  kColumnLinear,    // split by output: its input's gradient is a summand over tp, on no grid yet
  kRowLinear,       // split by input: its output is a summand over tp, on no grid yet; no bias
  kResidualAdd,     // in {sum of a kRowLinear, residual stream}; adds the bias that that one lacks
  kAllReduce,       // not computed: the engine sums in[0], or in backward its gradient, over tp
  kAllGather,  // not computed: out is in of all tp or cp ranks; its gradient is reduce-scattered
  kReduceScatter,  // not computed: out is the own rows of the sum of in; its gradient is gathered
  kConcatLinear,   // in {left, right}: of their concatenation, onto the residual stream
  kAttention,      // in {qkv, keys and values of the whole sequence, or -1}
  kKeysValues,     // out: the keys and values of in, which is a kLinear's qkv
  kSwiglu,
  kGain,
  kLoss,           // in {logits, labels}
  kLossMax,        // in {logits of a range of the vocabulary}: the largest of each token
  kLossSums,       // in {logits, labels, maxima of all ranges}, out: of each token the sum of
                   // exponentials of the own range, and its label's logit or 0: summands over tp
  kSplitLoss,      // in {logits, labels, maxima, sums of all ranges}; forward reads the last two
  kNextLoss,       // the same as kLoss with the labels of the next token: multi-token prediction
  kRouter,         // out {probs, index, expert_counts, send_counts}
  kPermute,        // in {x, probs, index}, out {rows, row_probs}
  kExchange,       // not computed: the engine moves in to out
  kSplits,         // in {recv_expert_counts}, out {recv_counts}
  kGroupedLinear,  // in {rows, recv_expert_counts or -1}; weights and biases: of each local expert
  kGatedSwiglu,    // in {rows, row_probs}
  kUnpermute       // in {rows, index, shared or -1, residual stream}
};

// One node: what it computes on which values and parameters. Unused entries are -1.
struct NodeSpec {
  Op op = Op::kInput;
  std::string name;
  int32_t module = 0, layer = -1, chunk = 0;
  std::array<int32_t, 4> in{-1, -1, -1, -1}, out{-1, -1, -1, -1};
  std::vector<int32_t> weights, biases;  // parameters
  bool head = false;   // belongs to the head: its gradients lie on the head's grids
  bool split = false;  // its heads, part of ffn or of the vocabulary are those of one tp rank
  bool backward =
      false;  // kAllReduce: sums gradients, else values; kReduceScatter: of gradients alone
  bool forward = false;  // no gradient goes through it; kAllGather: of values alone
  bool over_cp = false;  // kAllGather: over cp, else over tp
  bool part = false;     // its tokens are those of this tp rank's part of the sequence
  int32_t loss_chunk = 0, loss_chunks = 1;  // head, loss: which part of the tokens they compute
  int32_t grad_from = -1;  // whose gradient it reads instead of out[0]'s: of the whole sequence
  int32_t send_counts = -1, recv_counts = -1;  // kExchange: as in spf_node
  // Filled when the program is complete:
  std::array<bool, 4> grad_in{};  // DGRAD writes the gradient of that input
  std::array<bool, 4> add_in{};   // ... by adding: it has other readers
  bool many_readers = false;  // out[0]'s gradient is a sum, of readers or over tp: requantise it
  bool grad_weight = false, grad_bias = false;  // WGRAD adds to them
  bool operator==(const NodeSpec&) const = default;

  int32_t weight() const { return weights.empty() ? -1 : weights[0]; }
  int32_t bias() const { return biases.empty() ? -1 : biases[0]; }
  int32_t grad_out() const { return grad_from < 0 ? out[0] : grad_from; }
  bool AddsToLoss() const { return op == Op::kLoss && loss_chunks > 1; }
  bool any_grad_in() const { return grad_in != std::array<bool, 4>{}; }
};

// Some consecutive layers of the model, on one pipeline rank.
struct Stage {
  int32_t chunk = 0;
  int64_t begin = 0, end = 0;  // layers
  bool first = false, last = false;
};

class Network {
 public:
  Network(const ModelConfig& config, ModelRank rank);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Dims& dims() const { return dims_; }
  ModelRank rank() const { return rank_; }
  std::vector<Stage> Stages() const;
  const spf_model& tables() const { return tables_; }
  // All layers, or one of them absent (ModelConfig.unused).
  const spf_program& program(bool absent) const { return programs_[absent ? 1 : 0]; }
  int32_t node_count() const { return static_cast<int32_t>(nodes_.size()); }
  const spf_node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  const NodeSpec& spec(int32_t id) const { return specs_[static_cast<size_t>(id)]; }
  const ParamInfo& info(int32_t param) const { return infos_[static_cast<size_t>(param)]; }
  // How many tokens a node computes, and which is the first of them among the rank's.
  int64_t TokensOf(const NodeSpec& spec) const;
  int64_t FirstTokenOf(const NodeSpec& spec) const;
  // Where the rank's tokens begin in the sequence.
  int64_t first_position() const { return rank_.cp * dims_.sequence; }
  // The first row of embedding and head that the rank has.
  int64_t first_word() const {
    return dims_.local_vocab == dims_.vocab ? 0 : rank_.tp * dims_.local_vocab;
  }
  // The first row that it takes of the values it reads; of a loss in chunks not always 0.
  int64_t FirstRowOf(const NodeSpec& spec) const;
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
  ModelRank rank_;
  int32_t most_uses_ = 1;
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

// Whether this layer's MLP is an expert without dispatch; whether it has routed experts; the layer
// that ModelConfig.unused leaves out.
bool HasExpert(const ModelConfig& config, int64_t layer);
bool HasMoe(const ModelConfig& config, int64_t layer);
bool SplitsMlp(const ModelConfig& config, int64_t layer);  // over tp
int64_t AbsentLayer(const ModelConfig& config);
std::string LayerName(int64_t layer);

// network.h's parts. DecideGradients fills what a NodeSpec says about gradients.
void BuildTables(Network& network);    // modules and parameters (tables.cc)
void BuildPrograms(Network& network);  // values, nodes, programs (program.cc)
// ... and returns in how many nodes the most used parameter is used (node_uses.cc).
int32_t DecideGradients(std::vector<NodeSpec>& program, const spf_model& tables);
std::vector<spf_use> UsesOf(const NodeSpec& spec, spf_phase phase, const spf_value* values);

// Sizes of routed experts (tables.cc).
struct MoeSizes {
  int64_t experts = 0, local = 0, top_k = 0;
  int64_t tokens = 0;    // that a rank routes
  int64_t capacity = 0;  // rows per expert and part of a sample; 0: dropless
  int64_t sent = 0;      // rows that they have at most, after permutation
  int64_t received = 0;  // rows that a rank receives at most
};
MoeSizes MoeSizesOf(const ModelConfig& config);

}  // namespace shardproof
