// ep_emulation.h: for tests: do the tables alone say how the ranks of an expert-parallel, pipelined
// model work together?
//
// All ranks of one model in one process, node by node, driven by nothing but tables and programs,
// as an engine would be: pieces of exchanges by the COUNTS values, dynamic rows by rows_from,
// stages by FROM_PREV, TO_NEXT and chunk.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/model/node_bench.h"

namespace shardproof {

struct NamedConfig {
  std::string name;
  ModelConfig config;
};
// Configs of one rank that together have every kind of routing. experts: a multiple of 4.
std::vector<NamedConfig> RoutedConfigs(int32_t experts);

class EpEmulation {
 public:
  // What computes the nodes of a rank.
  using MakeBench =
      std::function<std::unique_ptr<NodeBench>(const ModelConfig&, int64_t max_tokens, ModelRank)>;

  explicit EpEmulation(const ModelConfig& config, int64_t max_tokens, const MakeBench& make = {});

  struct Options {
    double scale = 1;
    bool delay_wgrad = false;  // DGRAD of all nodes, then WGRAD of all nodes
    int32_t grad_dtype = SPF_F32;
  };
  // One microbatch: ep rank r runs samples[r]. Returns the losses by ep rank and adds to the
  // gradients.
  std::vector<float> Run(int64_t step, const std::vector<int64_t>& samples, const Options& options);
  std::vector<float> Run(int64_t step, const std::vector<int64_t>& samples) {
    return Run(step, samples, Options());
  }
  // Sums over all ranks, by world-unique name. Of runs in fp32.
  std::map<std::string, std::vector<float>> Gradients() const;
  // Rows that each ep rank received in the last dispatch of the last run.
  const std::vector<int64_t>& received() const { return received_; }

 private:
  struct Rank {
    ModelRank place;
    std::unique_ptr<NodeBench> bench;
    Blocks blocks;
  };
  struct Call {  // one phase of one stage, on all its ranks at once
    int32_t stage = 0;
    spf_phase phase = SPF_FWD;
    int64_t step = 0;
    const std::vector<int64_t>* samples = nullptr;
    double scale = 1;
    int32_t grad_dtype = SPF_F32;
  };

  std::vector<Rank*> RanksOf(int32_t stage);
  void RunStage(const Call& call);
  void RunNode(const Call& call, const std::vector<Rank*>& ranks, int32_t index);
  void Exchange(const std::vector<Rank*>& ranks, int32_t index, const Call& call);
  std::vector<Block> Send(const Rank& rank, int32_t index, const Call& call) const;  // by target
  void Receive(Rank& rank, int32_t index, const Call& call,
               const std::vector<std::vector<Block>>& pieces);
  // Stage boundary: activations go up, their gradients down.
  void HandOver(int32_t from, int32_t to, bool gradient);

  ModelConfig config_;
  std::vector<Rank> ranks_;  // by pp, then ep
  std::vector<int64_t> received_;
};

}  // namespace shardproof
