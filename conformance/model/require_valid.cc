#include "conformance/model/require_valid.h"

#include <set>
#include <stdexcept>

#include "conformance/model/network.h"

namespace shardproof {
namespace {

void RequireRange(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  throw std::invalid_argument(std::string("model ") + field + " = " + std::to_string(value) +
                              ": use " + std::to_string(low) + " to " + std::to_string(high));
}

void RequireWord(const char* field, const std::string& value, const std::set<std::string>& words) {
  if (words.count(value) != 0) return;
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "'" : ", '") + word + "'";
  throw std::invalid_argument(std::string("model ") + field + " = '" + value + "': use one of " +
                              list);
}

void Require(bool holds, const std::string& why) {
  if (!holds) throw std::invalid_argument("model " + why);
}

void RequireDivides(const char* part, int64_t n, const char* whole, int64_t of) {
  if (n > 0 && of % n == 0) return;
  throw std::invalid_argument(std::string("model ") + part + " = " + std::to_string(n) +
                              " does not divide " + whole + " = " + std::to_string(of));
}

// Choices that a skew forbids must leave enough experts to choose from.
void RequireSkew(const MoeConfig& moe) {
  const int64_t group = moe.experts / moe.groups;
  if (moe.skew == "empty") {
    Require(moe.top_groups * group > moe.top_k,
            "moe.skew = empty: moe.top_k = " + std::to_string(moe.top_k) + " needs all " +
                std::to_string(moe.top_groups * group) + " experts of the chosen groups");
  }
  if (moe.skew != "rank") return;
  RequireDivides("moe.skew = rank: 2", 2, "moe.experts", moe.experts);
  Require(moe.top_k * 2 <= moe.experts,
          "moe.skew = rank leaves half of moe.experts = " + std::to_string(moe.experts) +
              ": too few for moe.top_k = " + std::to_string(moe.top_k));
  Require(moe.groups == 1 || (moe.groups % 2 == 0 && moe.top_groups * 2 <= moe.groups),
          "moe.skew = rank leaves half of moe.groups = " + std::to_string(moe.groups) +
              ": too few for moe.top_groups = " + std::to_string(moe.top_groups));
}

void RequireMoe(const ModelConfig& config) {
  const MoeConfig& moe = config.moe;
  RequireRange("moe.experts", moe.experts, 1, 4096);
  Require(!config.experts, "experts and moe.experts: either the dense kind or the routed one");
  RequireDivides("ep", config.ep, "moe.experts", moe.experts);
  RequireRange("moe.top_k", moe.top_k, 1, moe.experts);
  RequireWord("moe.layers", moe.layers, {"all", "odd", "even", "last", "first"});
  RequireWord("moe.score", moe.score, {"softmax", "presoftmax", "sigmoid"});
  RequireWord("moe.skew", moe.skew, {"", "one", "empty", "rank"});
  RequireRange("moe.groups", moe.groups, 1, moe.experts);
  RequireRange("moe.top_groups", moe.top_groups, 1, moe.groups);
  RequireDivides("moe.groups", moe.groups, "moe.experts", moe.experts);
  RequireDivides("moe.top_groups", moe.top_groups, "moe.top_k", moe.top_k);
  Require(moe.top_k / moe.top_groups <= moe.experts / moe.groups,
          "moe.top_k = " + std::to_string(moe.top_k) +
              " over moe.top_groups = " + std::to_string(moe.top_groups) + ": a group has only " +
              std::to_string(moe.experts / moe.groups) + " experts");
  RequireRange("moe.parts", moe.parts, 1, 1 << 16);
  RequireDivides("moe.parts", moe.parts, "sequence", config.sequence);
  RequireRange("moe.capacity_percent", moe.capacity_percent, 0, 100 * moe.experts);
  Require(!moe.pad || moe.capacity_percent > 0,
          "moe.pad without moe.capacity_percent: there is nothing to pad to");
  RequireSkew(moe);
  Require(config.unused != "rank" || !HasMoe(config, AbsentLayer(config)),
          "unused = rank: the absent layer has an exchange, which all ranks of ep take part in");
}

void RequireTensorParallel(const ModelConfig& config) {
  RequireRange("tp", config.tp, 1, 1024);
  Require(config.tp == 1 || config.tensor_parallel,
          "tp = " + std::to_string(config.tp) + " without tensor_parallel: nothing is split");
  Require(!config.sequence_parallel || config.tensor_parallel,
          "sequence_parallel without tensor_parallel: nothing is split");
  Require(!config.vocab_parallel || config.tensor_parallel,
          "vocab_parallel without tensor_parallel: nothing is split");
  if (!config.tensor_parallel) return;
  const Dims dims = DimsOf(config);
  RequireDivides("tp", config.tp, "heads", dims.heads);
  RequireDivides("tp", config.tp, "ffn", dims.ffn);
  if (config.vocab_parallel) {
    RequireDivides("tp", config.tp, "vocab", dims.vocab);
    Require(!config.mtp, "vocab_parallel with mtp: its second loss has a head in one piece");
    Require(config.loss_chunks == 1,
            "vocab_parallel with loss_chunks: a chunk is one head and one loss");
  }
  if (!config.sequence_parallel) return;
  RequireDivides("tp", config.tp, "sequence", dims.sequence);
  Require(!config.experts,
          "sequence_parallel with experts: those without routing read the whole sequence");
  Require(!config.mtp,
          "sequence_parallel with mtp: its layer reads the tokens of the whole sequence");
}

void RequireContextParallel(const ModelConfig& config) {
  RequireRange("cp", config.cp, 1, 1024);
  Require(config.cp == 1 || config.context_parallel,
          "cp = " + std::to_string(config.cp) + " without context_parallel: samples are whole");
  if (!config.context_parallel) return;
  Require(!config.experts,
          "context_parallel with experts: those without routing read whole samples");
  Require(!config.mtp, "context_parallel with mtp: the token after the next is in another part");
  Require(config.unused != "rank" || config.samples_together % config.cp == 0,
          "context_parallel with unused = rank: all ranks of cp gather keys and values");
}

void RequireLossChunks(const ModelConfig& config) {
  RequireDivides("loss_chunks", config.loss_chunks, "sequence", config.sequence);
  Require(config.loss_chunks == 1 || !config.mtp,
          "loss_chunks with mtp: the second loss has a head of its own, which is in one piece");
}

void RequirePipeline(const ModelConfig& config) {
  RequireRange("pp", config.pp, 1, 1024);
  RequireRange("chunks", config.chunks, 1, 1024);
  Require(config.chunks == 1 || config.pp > 1,
          "chunks = " + std::to_string(config.chunks) + " with pp = 1: there is no pipeline");
  if (config.pp == 1) return;
  const int64_t stages = int64_t{config.pp} * config.chunks;
  RequireDivides("pp * chunks", stages, "layers", config.layers);
  Require(!config.tied, "tied with pp > 1: embedding and head are on different stages");
  Require(!config.mtp, "mtp with pp > 1: embedding and head are on different stages");
  Require(config.unused.empty(), "unused with pp > 1: a stage may have no layer left");
}

}  // namespace

void RequireValid(const ModelConfig& config, int64_t max_tokens) {
  RequireRange("layers", config.layers, 1, 1024);
  RequireRange("vocab", config.vocab, 2, 1 << 20);
  RequireRange("width", config.width, 1, 1 << 16);
  RequireRange("heads", config.heads, 1, config.width);
  RequireRange("ffn", config.ffn, 1, 1 << 18);
  RequireRange("samples_together", config.samples_together, 1, 1 << 16);
  RequireRange("sequence", config.sequence, 1, 1 << 16);
  RequireRange("ep", config.ep, 1, 1024);
  RequireRange("vocab_multiple", config.vocab_multiple, 1, config.vocab);
  RequireRange("d_odd", config.d_odd, 1, 1 << 20);
  RequireRange("tokens per step", max_tokens, 1, int64_t{1} << 40);
  if (config.d_odd % 2 == 0)
    throw std::invalid_argument("model d_odd = " + std::to_string(config.d_odd) + " is even");
  if (!config.odd_sizes && config.width % config.heads != 0) {
    throw std::invalid_argument("model width = " + std::to_string(config.width) +
                                " is no multiple of heads = " + std::to_string(config.heads));
  }
  RequireWord("frozen", config.frozen, {"", "embedding", "layer", "middle", "last", "norms"});
  RequireWord("unused", config.unused, {"", "step", "rank"});
  if (config.moe.experts != 0) RequireMoe(config);
  Require(!config.mtp || config.moe.experts > 0,
          "mtp without moe.experts: its layer is a MoE layer");
  RequirePipeline(config);
  RequireTensorParallel(config);
  RequireContextParallel(config);
  RequireLossChunks(config);
}

}  // namespace shardproof
