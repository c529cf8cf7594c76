// config.h: what was this engine asked to do?
//
// Every knob of conformance/abi/KNOBS.md, read in one place and checked against every other before
// a stream, a block or a collective exists. A configuration that no engine could run is Rejected;
// one that this engine does not implement is Unsupported. Both name the knob and its value.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "reference/groups/training_grid.h"
#include "reference/muon/muon.h"

namespace reference {

struct Rejected : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What is sharded: each level adds to the one before (ZeRO 0 to 3); or whole parameters are dealt
// to ranks, which step what they own (layerwise/).
enum class ShardingStrategy { kNoShard, kOptim, kOptimGrads, kOptimGradsParams, kLayerWise };
// Layer-wise: how owners' values travel.
enum class Transport { kAllGatherV, kBroadcast, kPadded };
// Who owns the order of collectives: each communicator its own, the engine, or one hardware queue.
enum class CommSchedule { kCommunicators, kOneCommunicator, kOneQueue };
enum class OptimizerKind { kSgd, kAdamW, kMuon };
enum class CudaGraphs { kNone, kFullIteration, kPerLayer };

struct Config {
  int32_t microbatches = 1;
  int32_t loss_chunks = 1;  // of a microbatch: the model's tables say which nodes they are

  ShardingStrategy strategy = ShardingStrategy::kNoShard;
  bool outer_shards = false;        // outer_strategy = optim: outer ranks subdivide the shard
  int32_t optimizer_instances = 1;  // outer data-parallel size
  bool dense_twins = false;         // create_all_gather_group, all_gather_group_of
  bool expert_twins = false;

  // What a unit's parameters become after its forward: shards again (1), nothing else until its
  // backward has ended (0), or shards of so many ranks, which backward gathers from.
  int32_t reshard_after_forward = 1;

  bool context_parallel = false;  // the samples of the ranks of cp are parts of one sequence
  bool own_groups = false;        // groups = grid
  GridSizes grid;                 // only with own_groups; span 0: the whole world

  std::vector<std::string> unit_types{"TransformerLayer"};
  // Layer-wise, and nothing without it.
  bool aligned_layout = false;  // equal shards that no parameter crosses
  Transport transport = Transport::kAllGatherV;
  bool gather_into_grads = false;  // values arrive in the storage of the gradients

  int64_t bucket_size = 0;                      // elements, of buckets outside units; 0: not cut
  std::optional<int64_t> prefetch_limit_bytes;  // not set: one unit ahead
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  CommSchedule schedule = CommSchedule::kCommunicators;

  bool average_in_collective = false;
  bool per_token_loss = false;
  double loss_scale = 1;  // a power of two: in every gradient until its reduction
  int64_t tokens_per_step = 0;
  spf_dtype param_dtype = SPF_F32, grad_comm_dtype = SPF_F32, main_grads_dtype = SPF_F32;
  bool nccl_ub = false;                     // gathers and reductions in registered memory
  bool double_buffer = false;               // two buffers for all units that are alike
  bool backward_copies = false;             // of units: backward reads another copy than forward
  bool meta_init = false;                   // init_device: values come with the next call
  bool recompute = false;                   // whole layers
  std::set<std::string> recompute_modules;  // of norm, core_attn, moe

  // Expert parallelism: the schedule that runs one microbatch's forward between another's backward.
  bool overlap_moe = false;         // overlap_moe_expert_parallel_comm
  bool delay_wgrad = false;         // weight gradients after input gradients
  bool early_attn_release = false;  // ep_overlap_early_attn_memory_release
  bool high_priority_a2a = false;   // of the stream of the all-to-alls; nothing without overlap_moe
  bool fine_grained_gather = true;  // under it: of a unit each bucket group when it is needed
  int32_t chunks = 1;               // virtual_pipeline_model_parallel_size: per pipeline rank
  bool shared_expert_overlap = false;
  CudaGraphs cuda_graphs = CudaGraphs::kNone;

  OptimizerKind optimizer = OptimizerKind::kSgd;
  double lr = 0, weight_decay = 0, adam_beta1 = 0.5, adam_beta2 = 0.75, adam_eps = 0.0078125;
  MuonOptions muon;        // only with kMuon; its eps is not adam_eps
  double clip_grad = 0;    // 0: off
  bool grad_norm = false;  // implied by clip_grad
  bool zero_count = false;
  double skip_norm = 0;  // a step with a larger norm changes nothing; 0: off
  bool check_for_nan_in_grad = false;

  bool LayerWise() const { return strategy == ShardingStrategy::kLayerWise; }
  bool Shards() const { return strategy != ShardingStrategy::kNoShard; }
  bool ShardsGrads() const { return strategy == ShardingStrategy::kOptimGrads || ShardsParams(); }
  bool ShardsParams() const { return strategy == ShardingStrategy::kOptimGradsParams; }
  // Bucket groups of a unit are gathered each when it is needed, not all with the unit.
  bool GathersByModule() const { return overlap_moe && fine_grained_gather; }
  // An install gathers the new weights at once, and not when they are needed.
  bool GathersAtInstall() const { return LayerWise() && !overlap_param_gather; }
  // A backward adds to an fp32 gradient of its own, not to the main gradient.
  bool HasLocalGrad() const { return ShardsGrads() || main_grads_dtype != SPF_F32; }
  // What double buffers are for: gradients, and with sharded parameters these, live for a time.
  bool HasDoubleBuffers() const { return double_buffer && ShardsGrads(); }
  // Main gradients kept whole have another dtype than the wire.
  bool CastsFullGrads() const { return !ShardsGrads() && main_grads_dtype != grad_comm_dtype; }
};

// The text of a knob, or NULL where it is not set.
using KnobReader = std::function<const char*(const char* name)>;

// Throws Rejected.
Config ReadConfig(const KnobReader& knob);

// What groups say and knobs may not: sizes of the axes "ep" and "pp". Throws Rejected.
void CheckAxes(const Config& config, int32_t ep, int32_t pp);

// Throws Unsupported for what is legal and not implemented here.
void CheckImplemented(const Config& config);

// What is legal and yet probably not meant; a sentence each.
std::vector<std::string> Warnings(const Config& config);

}  // namespace reference
