// program_builder.h: for program.cc and moe_program.cc: how does a forward program grow, node by
// node?
#pragma once
#include <string>
#include <vector>

#include "conformance/model/network.h"

namespace shardproof {

// One forward program at a time. Values are shared by name between programs; nodes that are equal
// in both, too.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Network& network) : n_(network), c_(network.config_), d_(network.dims_) {}

  void Build(bool absent);

 private:
  // --- program.cc
  void Forward(const Stage& stage, bool absent);
  int32_t Begin(const Stage& stage);  // the residual stream that enters the stage's layers
  int32_t DecoderLayer(int64_t layer, int32_t h, const std::string& suffix);
  int32_t Attention(const std::string& name, int32_t h, const std::string& suffix);
  // Context parallelism: keys and values of the whole sequence, of this rank's qkv.
  int32_t GatherKeysValues(const std::string& attention, int32_t qkv, const std::string& suffix);
  int32_t Mlp(const std::string& mlp, int32_t x, int32_t h, const std::string& suffix);
  int32_t SplitMlp(const std::string& mlp, int32_t x, int32_t h, const std::string& suffix);
  void Head(int32_t h, int32_t labels);
  void HeadAndLoss(int32_t x, int32_t labels, int32_t chunk);  // of one chunk of the loss
  void SetLayer(size_t first, int64_t layer);
  std::string StreamName(int64_t layer) const;  // the value that leaves a layer
  void Register(const NodeSpec& spec, bool absent);
  spf_uses Store(std::vector<spf_use> uses);

  // Node `name` + suffix of a module, which reads in and writes a value.
  NodeSpec& Add(Op op, const std::string& name, const std::string& module, int32_t in, int32_t out);
  void Weights(NodeSpec& spec, const std::string& module);  // those that the module owns
  int32_t Norm(const std::string& module, int32_t h, const std::string& suffix);
  int32_t Linear(const std::string& module, int32_t x, int64_t out, const std::string& suffix);
  int32_t LinearResidual(const std::string& module, int32_t x, int32_t h,
                         const std::string& suffix);
  // Split over tp: by output, of so many columns here; by input, with the sum over tp and the way
  // back to the residual stream.
  int32_t ColumnLinear(const std::string& module, int32_t x, int64_t out,
                       const std::string& suffix);
  int32_t RowLinear(const std::string& module, int32_t x, int32_t h, const std::string& suffix);
  void AllReduce(const std::string& name, const std::string& module, int32_t value, bool backward);
  // Between this rank's part of the sequence and the whole of it.
  int32_t AllGather(const std::string& name, const std::string& module, int32_t x);
  int32_t ReduceScatter(const std::string& name, const std::string& module, int32_t sum);

  int32_t AddValue(const std::string& name, spf_value value);
  int32_t Value(const std::string& name, int64_t width);
  int32_t StreamValue(const std::string& name);  // of the residual stream, or its norm
  int32_t Integers(const std::string& name);
  int32_t Loss(const std::string& name, uint32_t flags);

  // --- vocab_program.cc
  int32_t SplitEmbedding();  // returns the residual stream
  void SplitHeadAndLoss(int32_t x, int32_t labels);

  // --- moe_program.cc
  // x: the layer's normalised input, h: its residual stream. Returns the stream behind the experts.
  int32_t Moe(const std::string& moe, int32_t x, int32_t h, const std::string& suffix);
  int32_t Mtp(int32_t h, int32_t labels);  // returns what enters head.mtp
  void MtpHead(int32_t x, int32_t labels);
  struct Routed {
    int32_t probs = -1, index = -1, expert_counts = -1, send_counts = -1;
    int32_t recv_expert_counts = -1, recv_counts = -1;
  };
  struct Rows {
    int32_t rows = -1, probs = -1;
  };
  int32_t SharedExpert(const std::string& moe, int32_t x, const std::string& suffix);
  Routed Router(const std::string& moe, int32_t x, const std::string& suffix);
  Rows Permute(const std::string& moe, int32_t x, const Routed& routed, const std::string& suffix);
  void Counts(const std::string& moe, const std::string& suffix, Routed& routed);
  int32_t Exchange(const std::string& name, const std::string& module, int32_t in, int32_t out,
                   int32_t send_counts, int32_t recv_counts);
  int32_t Experts(const std::string& moe, const Rows& rows, const Routed& routed,
                  const std::string& suffix);
  int32_t Grouped(const std::string& moe, const char* fc, int32_t in, int64_t out,
                  const Routed& routed, const std::string& suffix);
  // A value of routed rows: dynamic if counts govern it.
  int32_t RowValue(const std::string& name, int64_t max_rows, int64_t width, int32_t rows_from);

  Network& n_;
  const ModelConfig& c_;
  const Dims& d_;
  int32_t chunk_ = 0;
  bool part_ = false;  // what is added has the tokens of this rank's part of the sequence
  std::vector<NodeSpec> program_;
};

}  // namespace shardproof
