// trainer.h: what is the state of a run that shards nothing, and what does one sample add to it?
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/model/model.h"
#include "conformance/model/probe.h"
#include "conformance/oracle/muon.h"

namespace shardproof {

// One logical parameter: an expert of each ep rank is its own.
struct OracleParam {
  std::string name;
  bool frozen = false;
  MuonShape shape;  // as Muon sees it
  std::vector<float> weight, grad, first_moment, second_moment;
};

struct OracleState {
  std::vector<OracleParam> params;
  int64_t updates = 0;
};

class Trainer {
 public:
  // REQUIRES: model and probe outlive the trainer; the model has one pipeline stage and, with
  // routed experts, ep = 1.
  // bf16_node_grads: as OracleOptions says.
  Trainer(const Model& model, Probe& probe, bool bf16_node_grads = false);

  OracleState InitialState() const;
  void ZeroGrads(OracleState& state) const;
  // Forward of one sample, or of several that are the parts of one sequence: of each the sum of its
  // token losses. With backward: adds their gradient to state's.
  std::vector<float> RunSequence(OracleState& state, int64_t step,
                                 const std::vector<int64_t>& samples, int32_t ep_rank,
                                 bool backward);
  float RunSample(OracleState& state, int64_t step, int64_t sample, int32_t ep_rank,
                  bool backward) {
    return RunSequence(state, step, {sample}, ep_rank, backward).front();
  }
  // Rows that each part (MoeConfig::parts) of the last sample sent to each expert, [parts, E], by
  // the name of the value that counts them.
  const std::map<std::string, std::vector<int64_t>>& expert_rows() const { return expert_rows_; }

 private:
  void RunNode(const spf_node& node, spf_phase phase, NodeArgs args, int32_t ep_rank);
  void Move(const spf_node& node, spf_phase phase);
  void CountRows(const spf_node& node, int32_t ep_rank);
  std::vector<int64_t> RowsOfParts(const spf_uses& router, const std::vector<int64_t>& each) const;
  // Tokens and labels of the parts, in place of those that the INPUT node has written.
  void FillParts(const spf_node& input, int64_t step, const std::vector<int64_t>& samples);
  std::vector<float> LossesOf(const spf_program& program, size_t parts, int32_t ep_rank) const;

  const Model& model_;
  Probe& probe_;
  const bool bf16_node_grads_;
  // [ep rank][parameter id] -> index of OracleState::params.
  std::vector<std::vector<size_t>> slot_;
  std::vector<std::vector<std::byte>> act_, dact_;
  std::vector<int64_t> rows_;  // by value id: of dynamic ones, in this sample
  std::map<std::string, std::vector<int64_t>> expert_rows_;
};

}  // namespace shardproof
