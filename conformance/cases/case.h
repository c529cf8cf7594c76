// case.h: what is one thing that the suite asks an engine to do?
//
// A case is a world size and one or more engine instances, each with a grid of ranks, a model,
// feature knobs and a script of entry calls. Its id is short, readable and complete: Parse(Id(c))
// == c, so a case can always be run again by its id. Fields at their defaults do not appear in the
// id.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/words.h"
#include "conformance/model/model.h"

namespace shardproof {

// Options of optimizer = muon. (abi/KNOBS.md, muon_*)
struct MuonSpec {
  double momentum = 0.95;
  bool nesterov = false;
  Choice<MuonCoefficients> coefficients = {};
  int32_t ns_steps = 5;
  Choice<MuonScale> scale_mode = {};
  double extra_scale = 1;
  bool split_qkv = true;
  Choice<MuonPrecision> precision = {};
  double eps = 0.0078125;
  Choice<MuonTpMode> tp_mode = {};
  bool operator==(const MuonSpec&) const = default;
};

// Options of strategy = layer_wise. (abi/KNOBS.md, layer_wise_*)
struct LayerWiseSpec {
  Choice<LayerWiseLayout> layout = {};
  Choice<LayerWiseTransport> transport = {};
  Choice<LayerWiseBuffer> buffer = {};
  bool operator==(const LayerWiseSpec&) const = default;
};

// One engine in the world. Ranks [offset, offset + span) are its grid; others are in none of its
// groups.
struct InstanceSpec {
  std::string name = "engine";

  // --- grid (A rank's coordinates: leftmost token of order has the smallest stride.)
  int32_t tp = 1, cp = 1, ep = 1, pp = 1, etp = 1;
  // The model is split over tp, else ranks of tp hold the same.
  bool tensor_parallel = false;
  // Ranks of tp hold parts of the sequence between the layers that are split.
  bool sequence_parallel = false;
  // Embedding and head are split over tp by the vocabulary.
  bool vocab_parallel = false;
  // Samples of the ranks of cp are parts of one sequence.
  bool context_parallel = false;
  std::string order = "tp-cp-ep-dp-pp";
  int32_t offset = 0;
  int32_t span = 0;   // 0: all ranks of the world from offset on
  int32_t outer = 1;  // num_optimizer_instances: outer data-parallel size of HSDP
  // What a unit's parameters become after its forward: shards (1), nothing else until its backward
  // has ended (0), or shards of so many ranks (FSDP2's reshard_after_forward).
  int32_t reshard_after_forward = 1;
  bool grid =
      false;  // the engine builds its groups itself from "world" (else: explicit collection)
  Choice<GatherTwin> twin;

  // --- model (its ep, pp, chunks, tp, cp, tensor_parallel, sequence_parallel, vocab_parallel,
  // vocab_multiple, context_parallel, loss_chunks, d_odd, bf16_params, narrow and seed are derived
  // from the rest: see Derive)
  ModelConfig model;

  // --- engine
  Choice<ShardingStrategy> strategy;
  Choice<OuterStrategy> outer_strategy;
  int32_t microbatches = 1;
  int32_t loss_chunks = 1;  // head and loss run for one n-th of the tokens at a time
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  Choice<CommSchedule> schedule;  // who owns the order of collectives
  bool average_in_collective = false;
  bool per_token_loss = false;
  Choice<KnobDtype> param_dtype;
  Choice<KnobDtype> grad_comm_dtype;   // the wire of gradient reductions
  Choice<KnobDtype> main_grads_dtype;  // where gradients are accumulated
  int64_t bucket_size = 0;  // elements; non-unit buckets are cut at this size; 0: one bucket
  int64_t prefetch_limit_bytes =
      -1;  // gathered ahead of need, in bytes; 0: no prefetch; -1: not set (one unit)
  std::string units =
      "TransformerLayer";  // module types that are FSDP units, comma-separated; "" none
  bool recompute = false;  // layers are recomputed in backward
  bool nccl_ub = false;    // gathers and reductions use memory that is registered with their groups
  Choice<InitDevice> init_device;  // when parameters get their first values
  // --- expert parallelism and its schedule
  bool overlap_moe = false;    // 1F1B: all-to-alls of one microbatch hide behind compute of another
  bool delay_wgrad = false;    // weight gradients apart from input gradients
  bool early_release = false;  // backward of attention before the other microbatch's experts
  bool high_priority = false;  // of the stream of the all-to-alls
  int32_t fine_grained_gather = 1;  // 1: a unit is gathered module by module; 0: as a whole
  int32_t loss_scale_log2 = 0;      // the engine scales the loss by 2^this and takes it out again
  double wrong_loss_scale = 0;  // not 0: asked instead of the above, and no power of two (illegal)
  int32_t chunks = 1;           // model chunks per pipeline rank (interleaved schedule)
  std::string recompute_modules;  // "", or of norm, core_attn (legal with overlap_moe); moe
                                  // (illegal with it)
  // Never legal together with overlap_moe; engines that know nothing of them are not asked.
  bool shared_expert_overlap = false, double_buffer = false;
  bool backward_copies = false;  // of parameters of units: what backward reads is a copy of its own
  Choice<GraphCapture> cuda_graph;
  Choice<Optimizer> optimizer;
  MuonSpec muon;             // only with muon
  LayerWiseSpec layer_wise;  // only with strategy layer_wise
  double lr = 0.015625, weight_decay = 0;
  double clip_grad = 0;     // maximal global norm; 0: no clipping
  bool grad_norm = false;   // publish GRAD_NORM every step (implied by clip_grad)
  bool zero_count = false;  // publish ZERO_COUNT every step
  double skip_norm = 0;     // a step whose global norm is above this changes nothing; 0: off
  bool check_for_nan = false;
  int64_t device_memory_bytes = 0;  // 0: no limit
  // Entry calls in order: t train_step, e eval_step, s save, l load (the latest folder), r destroy
  // and create again. Steps count the t's. No barrier stands between calls.
  std::string script = "ttt";
  // Derived, of a leg after the first (Case::before): train steps before the checkpoint that the
  // legs before it leave, -1: there is none; and how often they saved.
  int64_t resumed = -1;
  int32_t saves_before = 0;

  bool operator==(const InstanceSpec&) const = default;
};

// Whether parameters of the kind have an all-gather twin, and whether it is wrong.
inline bool HasTwin(const InstanceSpec& spec, bool expert) {
  return spec.twin != GatherTwin::kNone &&
         spec.twin != (expert ? GatherTwin::kDenseOnly : GatherTwin::kExpertsOnly);
}
inline bool HasWrongTwin(const InstanceSpec& spec) {
  return spec.twin != GatherTwin::kNone && spec.twin != GatherTwin::kGiven &&
         spec.twin != GatherTwin::kDenseOnly && spec.twin != GatherTwin::kExpertsOnly;
}
inline bool HasExperts(const InstanceSpec& spec) {
  return spec.model.experts || spec.model.moe.experts > 0;
}

// Dense parameters are shared out over fewer ranks between a unit's forward and its backward.
inline bool ReshardsToFewer(const InstanceSpec& spec) { return spec.reshard_after_forward > 1; }

// A train step of it has to fail: gradients are NaN, and check_for_nan_in_grad is set.
inline bool MustFail(const InstanceSpec& spec) { return spec.check_for_nan && spec.model.nan_loss; }

// create gives parameters no values: the first call after it does.
inline bool InitsLater(const InstanceSpec& spec) { return spec.init_device == InitDevice::kMeta; }

// What the strategy shards besides optimizer state.
inline bool ShardsParams(const InstanceSpec& spec) {
  return spec.strategy == ShardingStrategy::kOptimGradsParams;
}
inline bool ShardsGrads(const InstanceSpec& spec) {
  return spec.strategy == ShardingStrategy::kOptimGrads || ShardsParams(spec);
}

struct Case {
  int32_t world = 8;
  uint64_t seed = 1;
  std::vector<InstanceSpec> instances{InstanceSpec{}};
  // Not empty: the case has several legs, each a run with engines of its own, maybe of another
  // world size, strategy or grid. These run before it, in this order; a leg after the first loads
  // what the one before it saved last. Each has nothing before it here (LegsOf() says it in full).
  std::vector<Case> before = {};
  // Of a leg: its last entry call is a save that is cut short, again and again, after another
  // number of operations on files each time. What is left is loaded by the next leg, the last one.
  bool killed = false;
  // The case is run again and again, and another allocation of device memory on another rank is
  // answered SPF_NO_MEMORY each time.
  bool starved = false;
  // Not empty: the combination is illegal for this reason and every rank must answer SPF_REJECTED
  // from create, before any collective. Computed by Derive, not part of the id.
  std::string illegal;

  bool operator==(const Case&) const = default;
};

// The legs of a case, the last of them the case itself: legs[i] as it is asked, with those before
// it.
std::vector<Case> LegsOf(const Case& c);
// How many ranks its largest leg has.
int32_t MostRanks(const Case& c);
// Hardware queues that all streams of a device share: 1 with schedule = one_queue; 0: each stream
// has its own. Instances agree on it (Derive).
int32_t QueuesOf(const Case& c);

// Fills what follows from other fields (model.ep, model.pp, model.chunks, model.tp, model.cp,
// model.tensor_parallel, model.sequence_parallel, model.vocab_parallel, model.vocab_multiple,
// model.context_parallel, model.loss_chunks, model.d_odd, model.bf16_params, model.narrow,
// model.seed, span, illegal). Throws std::invalid_argument, naming field and value, for what no
// engine could be asked (a span larger than the world, an exactness bound that does not hold, a
// script with unknown letters).
void Derive(Case& c);

std::string Id(const Case& c);
// Throws std::invalid_argument that names the token. The result is derived.
Case ParseId(const std::string& id);

// ---- what an instance's grid says, in closed form (requirements PG-*); ranks are world ranks

int32_t DpCpSize(const InstanceSpec& spec);  // dp * cp
// Named groups of this instance: every list of every family, in canonical order of creation.
// Families: dp_cp, dp, cp, tp, pp, ep, expt_dp, expt_tp; with outer > 1 also intra_dp_cp,
// inter_dp_cp, intra_expt_dp, inter_expt_dp; with a twin also dp_cp_ag and (experts) expt_dp_ag, as
// spec.twin says (right or wrong); with reshard_after_forward > 1 dp_cp_reshard.
struct GroupFamily {
  std::string name;
  std::vector<std::vector<int32_t>> lists;
};
std::vector<GroupFamily> GroupFamilies(const InstanceSpec& spec, int32_t world);
// Position of a world rank in its list of the family, or -1; and the list.
int32_t IndexIn(const GroupFamily& family, int32_t world_rank, const std::vector<int32_t>** list);

// ---- what the engine sees

// Knobs that are set for this instance, by name: the two contract knobs (microbatches, lr) always,
// every other only when it differs from its default. abi/KNOBS.md lists them with their meaning. A
// grid over all of the world needs no rank_span; with world = 0 it is always set.
std::map<std::string, std::string> Knobs(const InstanceSpec& spec, int32_t world = 0);

// The script as entry calls, create first. Steps count train steps; load restores the count that
// was saved, create sets it to 0. eval's step is the number of train steps so far. saved: the count
// in a checkpoint that is there before the first call; -1: there is none.
struct ScriptCall {
  char letter = 'c';  // c t e s l ; r becomes two calls: d (destroy) and c
  int64_t step = -1;
};
std::vector<ScriptCall> ExpandScript(const std::string& script, int64_t saved = -1);
inline std::vector<ScriptCall> ExpandScript(const InstanceSpec& spec) {
  return ExpandScript(spec.script, spec.resumed);
}

// Divisor of the summed gradient: dp_cp * microbatches, or with per_token_loss the number of tokens
// of the step.
int64_t GradDivisor(const InstanceSpec& spec);
int64_t TokensPerStep(const InstanceSpec& spec);

}  // namespace shardproof
