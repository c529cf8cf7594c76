// node_bench.h: where is everything that the nodes of a model touch? For tests: buffers for all of
// it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/model/model.h"

namespace shardproof {

using Block = std::vector<std::byte>;

struct Blocks {
  std::vector<Block> param, grad, act, dact;
  std::vector<int64_t> rows;  // by value id: of dynamic values, as counts that were computed say
  bool operator==(const Blocks&) const = default;

  std::vector<Block>& Table(int32_t table);  // by spf_table
  float* Floats(int32_t table, int32_t id) {
    return reinterpret_cast<float*>(Table(table)[static_cast<size_t>(id)].data());
  }
};

class NodeBench {
 public:
  explicit NodeBench(const ModelConfig& config, int64_t max_tokens = 32, ModelRank rank = {});
  virtual ~NodeBench() = default;

  const Model& model() const { return model_; }
  ModelRank rank() const { return rank_; }
  const spf_model& tables() const { return model_.Tables(rank_); }
  const spf_program& program(int64_t step = 0, int64_t sample = 0) const {
    return model_.Program(step, sample, rank_);
  }
  // Initial parameters, everything else zero.
  Blocks Start() const;
  // What is not computed does what it does with one rank of ep, tp and cp: nothing leaves the rank.
  void Run(Blocks& blocks, const spf_node& node, spf_phase phase, double scale = 1,
           int32_t grad_dtype = SPF_F32, int64_t step = 0, int64_t sample = 0) const;
  // Forward and backward of a sample; split: DGRAD of all nodes, then WGRAD of all nodes.
  void RunSample(Blocks& blocks, int64_t step, int64_t sample, bool split = false, double scale = 1,
                 int32_t grad_dtype = SPF_F32) const;

  // Bytes of a value that mean something: all, or its dynamic rows.
  size_t LiveBytes(const Blocks& blocks, int32_t value) const;

 protected:
  // Whoever is tested: the model on the host, or device kernels.
  virtual void Compute(const NodeArgs& args) const { model_.Compute(args, rank_); }

 private:
  void ClearLoss(Blocks& blocks) const;
  void Move(Blocks& blocks, const spf_node& node, spf_phase phase) const;

  Model model_;
  ModelRank rank_;
};

// By name; throws std::logic_error if there is none.
int32_t FindParam(const spf_model& tables, const std::string& name);
int32_t FindValue(const spf_model& tables, const std::string& name);

// By value id: the rows of dynamic values that this node's counts govern are set, if it wrote some.
void CountRows(const spf_model& tables, const spf_node& node, Blocks& blocks);

// Configs that together have every node, table entry and profile.
std::vector<ModelConfig> VariedConfigs();

// Its layers are split over tp.
ModelConfig Split(int32_t tp, const ModelConfig& from = {});

}  // namespace shardproof
