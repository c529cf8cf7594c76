// dispatch.h: how does a node reach its kernel? Loads parameters, calls, writes values.
#pragma once
#include "conformance/model/attention.h"
#include "conformance/model/embedding.h"
#include "conformance/model/moe_kernels.h"
#include "conformance/model/moe_rules.h"
#include "conformance/model/network.h"
#include "conformance/model/node_grids.h"
#include "conformance/model/numerics.h"
#include "conformance/model/split_loss.h"
#include "conformance/model/swiglu.h"

namespace shardproof {

class Dispatch {
 public:
  Dispatch(const ModelConfig& config, const Network& network, const NodeArgs& args);
  void Run();

 private:
  void Forward();
  void Dgrad();
  void Wgrad();
  void Input();
  void ForwardLinear();
  void ForwardLoss();
  void DgradLinear();
  void ForwardResidualAdd();
  void DgradResidualAdd();
  void DgradStream();  // of what a node adds to the residual stream: in[1]
  void WgradLinear();

  std::vector<int32_t> Labels() const;  // of a loss
  AttentionShape Heads() const;
  EmbeddingShape Embedding(int64_t tokens, int64_t first) const;
  SwigluShape Gates() const;
  SplitLossShape LogitsOfRange() const;

  // A split vocabulary (vocab_dispatch.cc).
  void ForwardSplitVocabulary();
  void DgradSplitLoss();

  // Experts and multi-token prediction (moe_dispatch.cc).
  void MoeForward();
  void MoeDgrad();
  void MoeWgrad();
  void RouterFwd();
  void GroupedFwd();
  void GroupedDgradNode();
  void GroupedWgradNode();
  void ConcatDgrad();
  RouterRule Rule() const { return RouterRuleOf(config_); }
  ExpertRows Received() const;
  std::vector<float> Concatenated() const;
  void SumPerRank(const int64_t* expert_counts, int64_t* rank_counts) const;
  int64_t Rows(int32_t value) const { return RowsOf(network_, args_, value); }
  std::vector<std::vector<float>> Params(const std::vector<int32_t>& ids) const;
  std::vector<GradTarget> Targets(bool wanted, const std::vector<int32_t>& ids) const;
  int64_t* Counts(int32_t value) const { return static_cast<int64_t*>(args_.act[value]); }

  std::vector<float> Param(int32_t id) const;  // widened to fp32, on the grid on which nodes use it
  const float* In(int32_t value) const { return static_cast<const float*>(args_.act[value]); }
  const float* InOrNull(int32_t value) const { return value < 0 ? nullptr : In(value); }
  float* Out(int32_t value) const { return static_cast<float*>(args_.act[value]); }
  const int32_t* Integers(int32_t value) const {
    return static_cast<const int32_t*>(args_.act[value]);
  }
  float* Grad(int32_t value) const { return static_cast<float*>(args_.dact[value]); }
  GradTarget Target(int32_t param) const;
  int64_t Width(int32_t value) const { return network_.tables().values[value].row_elems; }
  int64_t Tokens() const { return network_.TokensOf(spec_); }
  // Where what it reads and what it gives back begin in the value in[0].
  int64_t Begin() const { return network_.FirstRowOf(spec_) * Width(spec_.in[0]); }
  // The gradient of a node's output as operand; of the residual stream, and where several readers
  // added to it, it is requantised.
  Grid OutGradGrid() const { return OutGradGridOf(network_, spec_); }
  std::vector<float> OutGrad() const;
  Grid InGradGrid() const { return InGradGridOf(network_, spec_); }

  const ModelConfig& config_;
  const Network& network_;
  const NodeArgs& args_;
  const NodeSpec& spec_;
  const Dims& d_;
  Numerics n_;
};

}  // namespace shardproof
