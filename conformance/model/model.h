// model.h: which network do engines train here, and what does each of its nodes compute?
//
// A small quantised transformer: every operand of every sum lies on a dyadic grid, so sums are
// exact in any order and any engine can be compared with the unsharded oracle bit for bit.
// NUMERICS.md in this folder explains the grids. A Model is immutable after construction and shared
// by all ranks of a process; all functions are thread-safe.
#pragma once
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/quant.h"

namespace shardproof {

struct Probe;   // conformance/model/probe.h
class Network;  // conformance/model/network.h

// Mixture-of-experts layers with token dispatch over the group "ep". Routing of what a rank has of
// a sample depends on that alone (capacity and both auxiliary losses included), so it is the same
// for every ep size.
struct MoeConfig {
  // E, over all ep ranks; 0: no such layers. ep divides it: contiguous E/ep experts a rank.
  int32_t experts = 0;
  int32_t top_k = 2;
  std::string layers = "all";  // which layers: all, odd, even, last, first
  // softmax: top-k of logits, softmax over the k. presoftmax: softmax over E, top-k of it, not
  // renormalised. sigmoid: selection by score + frozen bias, weights normalised over the k.
  std::string score = "softmax";
  int32_t groups = 1, top_groups = 1;  // experts are chosen within the best top_groups of groups
  bool z_loss = false;                 // per token, on the logits
  bool aux_loss = false;               // load balancing, per sample
  bool shared = false;                 // a shared expert beside the routed ones
  // Rows per expert and sample = ceil(T k / E * percent / 100); 0: dropless.
  int32_t capacity_percent = 0;
  bool pad = false;  // each expert gets exactly its capacity; equal pieces, nothing dynamic
  // "", one: everybody chooses experts 0..k-1; empty: nobody the last expert; rank: nobody the
  // second half, so with any ep > 1 the last rank has no rows.
  std::string skew = "";
  // Of a model in one piece: equal parts of a sample that are routed each by itself, as ranks that
  // hold one each route them (sequence_parallel, context_parallel).
  int32_t parts = 1;
  bool operator==(const MoeConfig&) const = default;
};

// Which rank's part of the model: experts by ep rank, pipeline stages by pp rank, shards by tp
// rank, tokens of a sequence by cp rank.
struct ModelRank {
  // NOLINTNEXTLINE: an ep rank alone is the usual case.
  ModelRank(int32_t ep_rank = 0, int32_t pp_rank = 0, int32_t tp_rank = 0, int32_t cp_rank = 0)
      : ep(ep_rank), pp(pp_rank), tp(tp_rank), cp(cp_rank) {}
  int32_t ep, pp, tp, cp;
  auto operator<=>(const ModelRank&) const = default;
};

// Everything that shapes the network and its data. Equal configs give equal models on every rank
// and machine.
struct ModelConfig {
  // Initial values depend on it: a run that goes on from a checkpoint of another one, the start-th,
  // begins with others, so that what a load leaves out shows, frozen parameters too.
  int32_t start = 0;
  int32_t layers = 2;
  // Tokens per microbatch = sequence.
  int32_t vocab = 32, width = 16, heads = 2, ffn = 24, sequence = 8;
  bool tied = false;    // head shares the embedding's weight
  bool biases = false;  // on linear modules
  // Widths and vocab that no world size divides; a parameter smaller than the world.
  bool odd_sizes = false;
  bool root_param = false;  // a parameter owned by the root module itself (position embedding)
  bool reused = false;      // the last layer's module runs twice in the program
  std::string frozen;       // "", "embedding", "layer" (all of layer 0), "middle", "last", "norms"
  // "", "step" (a layer is absent from odd steps), "rank" (absent on odd samples; where samples of
  // several ranks are computed together, in every second microbatch, from step to step another one:
  // samples_together is then how many samples a microbatch has over all ranks).
  std::string unused;
  int32_t samples_together = 1;
  // Sample 1 of step 1 has a label that is no token: its loss is not a number, nor is its gradient.
  bool nan_loss = false;
  // > 1: layers have an expert MLP that is flagged SPF_PARAM_EXPERT, one expert per ep rank.
  int32_t ep = 1;
  bool experts = false;  // the dense kind: no dispatch
  MoeConfig moe;
  bool mtp = false;  // one multi-token-prediction layer after the last one; a MoE layer
  // Pipeline ranks, model chunks per rank; layers divide into pp * chunks stages, stage v = chunk *
  // pp + pp rank. Needs untied weights.
  int32_t pp = 1, chunks = 1;
  // Attention and dense MLPs are split over tp ranks: linear layers by column, then by row, whose
  // outputs are summed over them; everything else is the same on all. The rows of qkv then lie head
  // by head and those of fc1 in pairs of gate and up, so that each rank's are next to each other,
  // also with tp = 1.
  bool tensor_parallel = false;
  // Between the split layers each tp rank holds its part of the sequence: what these layers read is
  // gathered, what they compute is reduce-scattered. Routers and experts have the tokens of the
  // part.
  bool sequence_parallel = false;
  // Embedding and head are split over tp by rows, the vocabulary: rows that a rank lacks are zeros
  // where they are looked up, until summed over tp; each rank has the logits of its range, and the
  // loss needs maxima and sums of all ranks.
  bool vocab_parallel = false;
  int32_t vocab_multiple = 1;  // odd_sizes make the vocabulary this times a prime
  int32_t tp = 1;
  // The samples of cp ranks are parts of one sequence, in their order: attention reads keys and
  // values of all of it, which are gathered. `sequence` is what each has.
  bool context_parallel = false;
  int32_t cp = 1;
  // The head and the loss are so many nodes each, of equal parts of the tokens, and the loss is a
  // value that they add to.
  int32_t loss_chunks = 1;
  bool bf16_params = false;  // nodes read bf16 parameters
  bool narrow = false;       // ternary operands of weight gradients: exact on a bf16 wire
  // Weight gradients are multiplied by this odd integer (odd part of the divisor).
  int32_t d_odd = 1;
  bool quantised = true;  // off: for finite-difference tests and performance runs
  uint64_t seed = 1;      // of initial values and data

  bool operator==(const ModelConfig&) const = default;
};

// Host pointers of one compute call; tables by id as in spf_compute, null where an entry is not
// used.
struct NodeArgs {
  int32_t node = 0, phase = 0;
  int64_t step = 0;
  int64_t sample = 0;  // INPUT nodes: sample within the step's global batch
  // The loss scale of this microbatch, a power of two: in all backward phases, because grids of
  // gradients are relative to it (a host that sees it at the loss node only passes it on to the
  // nodes before).
  double scale = 1;
  // Of the auxiliary losses' gradient, at router nodes; right if equal to scale.
  double aux_scale = 1;
  int32_t grad_dtype = SPF_F32;
  const int64_t* rows = nullptr;  // by value id, of dynamic values
  const void* const* param = nullptr;
  void* const* grad = nullptr;
  void* const* act = nullptr;
  void* const* dact = nullptr;
  Probe* probe = nullptr;  // of a sequential run: counts clamped values, checks that sums are exact
};

// What the shard of a parameter is called where all ranks' are told apart: "NAME [tp 1 of 2]".
std::string ShardName(const std::string& param, int32_t tp_rank, int32_t tp);

class Model {
 public:
  // Throws std::invalid_argument with the offending field and value when the config is out of range
  // or the static exactness bound (sum over n products: n Qa Qb < 2^24) fails for max_tokens tokens
  // per step over all ranks and microbatches.
  Model(const ModelConfig& config, int64_t max_tokens);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelConfig& config() const;
  // The tables as this rank sees them: expert parameters differ by name; with pp > 1 modules,
  // parameters, values and nodes are those of its stages, so ids differ between pp ranks; with tp >
  // 1 shapes are those of its shards.
  const spf_model& Tables(ModelRank rank) const;
  // Nodes that run for this sample of this step. Node ids are indices into one list shared by all
  // programs of a rank.
  const spf_program& Program(int64_t step, int64_t sample, ModelRank rank) const;
  // Node by id (uses, module, name), whatever program it is in.
  const spf_node& Node(int32_t id, ModelRank rank) const;
  int32_t node_count(ModelRank rank = {}) const;
  // What the tables are made of; for whoever computes nodes elsewhere than Compute does.
  const Network& Graph(ModelRank rank) const;

  // Runs one phase of one node on host memory. Reads and writes exactly what uses[phase] lists.
  // Only COMPUTE and INPUT nodes are computed; others: std::logic_error.
  void Compute(const NodeArgs& args, ModelRank rank) const;

  // Initial value of elements [offset, offset + count) of a parameter, or of the rank's shard of
  // it, fp32 on the weight grid.
  void InitialValue(int32_t param, ModelRank rank, int64_t offset, int64_t count, float* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardproof
