// Rules of illegal.h about pipelines and about schedules that hide all-to-alls.
#include "conformance/cases/illegal.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

const std::string kOverlap = "overlap_moe_expert_parallel_comm";
const char kChunks[] = "virtual_pipeline_model_parallel_size";

bool Sharded(const InstanceSpec& spec) { return spec.strategy != ShardingStrategy::kNoShard; }

std::string LossScale(const InstanceSpec& spec, int32_t) {
  if (spec.wrong_loss_scale == 0) return "";
  return "loss_scale = " + RealText(spec.wrong_loss_scale) + ": a power of two";
}

std::string DelayNeedsOverlap(const InstanceSpec& spec, int32_t) {
  if (!spec.delay_wgrad || spec.overlap_moe) return "";
  return std::string("delay_wgrad_compute = 1 with ") + kOverlap + " = 0: it needs the overlap";
}

std::string ReleaseNeedsOverlap(const InstanceSpec& spec, int32_t) {
  if (!spec.early_release || spec.overlap_moe) return "";
  return std::string("ep_overlap_early_attn_memory_release = 1 with ") + kOverlap +
         " = 0: it needs the overlap";
}

std::string OverlapNeedsExpertRanks(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.ep > 1) return "";
  return kOverlap + " = 1 with ep = " + std::to_string(spec.ep) +
         ": there is nobody to exchange tokens with";
}

std::string OverlapNeedsChunks(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.pp <= 1 || spec.chunks > 1) return "";
  return kOverlap + " = 1 with pp = " + std::to_string(spec.pp) + " and " + kChunks + " = " +
         std::to_string(spec.chunks) + ": a pipeline needs two model chunks a rank";
}

// Megatron-Core refuses Megatron-FSDP here (combined_1f1b.py). Who keeps gradients whole has no
// need of it.
std::string OverlappedPipelineOfFsdp(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.pp <= 1 || spec.chunks <= 1 || !ShardsGrads(spec)) return "";
  return "strategy = " + spec.strategy.Text() + " with " + kOverlap +
         " = 1, pp = " + std::to_string(spec.pp) + " and " + kChunks + " = " +
         std::to_string(spec.chunks) + ": an interleaved pipeline needs whole gradients then";
}

std::string OverlapOfSharedExpert(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || !spec.shared_expert_overlap) return "";
  return std::string("moe_shared_expert_overlap = 1 with ") + kOverlap +
         " = 1: the shared expert has its place in the schedule";
}

std::string DoubleBuffer(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || !spec.double_buffer || !Sharded(spec)) return "";
  return std::string("fsdp_double_buffer = 1 with ") + kOverlap +
         " = 1 and strategy = " + spec.strategy.Text() +
         ": two buffers are too few for two microbatches";
}

// Registered memory is not allocated and freed with each unit: it needs double buffers.
std::string UserBuffers(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || !spec.nccl_ub) return "";
  return std::string("nccl_ub = 1 with ") + kOverlap +
         " = 1: it needs two buffers for all units, too few for two microbatches";
}

std::string GraphPerLayer(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.cuda_graph != GraphCapture::kPerLayer || !Sharded(spec)) return "";
  return std::string("cuda_graph_impl = per_layer with ") + kOverlap +
         " = 1 and strategy = " + spec.strategy.Text() + ": use none or full_iteration";
}

std::string OverlapOfRecompute(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || !spec.recompute) return "";
  return std::string("recompute = 1 with ") + kOverlap +
         " = 1: whole layers cannot be recomputed, use recompute_modules";
}

std::string OverlapOfRecomputedMoe(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || ("," + spec.recompute_modules + ",").find(",moe,") == std::string::npos)
    return "";
  return "recompute_modules = " + spec.recompute_modules + " with " + kOverlap +
         " = 1: moe cannot be recomputed";
}

std::string OverlapOfReshard(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.reshard_after_forward == 1) return "";
  return "reshard_after_forward = " + std::to_string(spec.reshard_after_forward) + " with " +
         kOverlap + " = 1: a layer's parameters go after its last forward node";
}

std::string OverlapOfLossChunks(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || spec.loss_chunks <= 1) return "";
  return "loss_chunks = " + std::to_string(spec.loss_chunks) + " with " + kOverlap +
         " = 1: the loss is one node between two microbatches";
}

std::string OverlapUnits(const InstanceSpec& spec, int32_t) {
  if (!spec.overlap_moe || !ShardsParams(spec) || spec.units == InstanceSpec{}.units) return "";
  return "units = " + (spec.units.empty() ? std::string("none") : spec.units) + " with " +
         kOverlap + " = 1 and strategy = optim_grads_params: units are TransformerLayer";
}

// A twin is there for a gather that overtakes a reduction (GE-14).
std::string TwinInTurn(const InstanceSpec& spec, int32_t) {
  if (spec.schedule != CommSchedule::kOneCommunicator || spec.twin == GatherTwin::kNone) return "";
  return "schedule = one_communicator with create_all_gather_group = 1: a second communicator is "
         "for gathers that are in flight beside reductions";
}

// A device starts kernels of streams with a higher priority first, out of the order of issue.
std::string PriorityInOneQueue(const InstanceSpec& spec, int32_t) {
  if (spec.schedule != CommSchedule::kOneQueue || !spec.high_priority || !spec.overlap_moe)
    return "";
  return "high_priority_a2a_comm_stream = 1 with schedule = one_queue: nothing overtakes in one "
         "queue";
}

}  // namespace

std::string CommScheduleProblem(const InstanceSpec& spec) {
  const std::string twin = TwinInTurn(spec, 0);
  return twin.empty() ? PriorityInOneQueue(spec, 0) : twin;
}

std::vector<IllegalRule> IllegalScheduleRules() {
  return {
      {"loss-scale",
       LossScale,
       {"w4.zero3.badscale3", "w4.zero3.ep2.moe4.1f1b.badscale0p75", "w2.ddp.badscale-2"}},
      {"delay-needs-overlap", DelayNeedsOverlap, {"w4.zero3.dw", "w4.zero2.ep2.moe4.dw"}},
      {"early-release-needs-overlap", ReleaseNeedsOverlap, {"w4.zero3.ep2.moe4.er", "w8.zero3.er"}},
      {"overlap-needs-ep",
       OverlapNeedsExpertRanks,
       {"w4.zero3.moe4.1f1b", "w8.zero2.moe4.1f1b.dw.grid"}},
      {"overlap-needs-chunks",
       OverlapNeedsChunks,
       {"w8.ddp.ep2.pp2.k2.layers4.moe4.1f1b", "w8.ddp.grid.ep2.pp2.k2.layers4.moe4.1f1b"}},
      {"overlapped-pipeline-of-fsdp",
       OverlappedPipelineOfFsdp,
       {"w8.zero3.ep2.pp2.k2.layers4.moe4.vpp2.1f1b",
        "w8.zero2.ep2.pp2.k2.layers4.moe4.vpp2.1f1b"}},
      {"overlap-of-shared-expert",
       OverlapOfSharedExpert,
       {"w4.zero3.ep2.k2.moe4.shared.1f1b.sharedoverlap",
        "w4.ddp.ep2.k2.moe4.shared.1f1b.sharedoverlap"}},
      {"overlap-double-buffer",
       DoubleBuffer,
       {"w4.zero3.ep2.k2.moe4.1f1b.doublebuffer", "w4.zero2.ep2.k2.moe4.1f1b.doublebuffer"}},
      {"overlap-user-buffers",
       UserBuffers,
       {"w4.zero3.ep2.k2.ub.moe4.1f1b", "w4.ddp.ep2.k2.ub.moe4.1f1b.dw"}},
      {"overlap-graph-per-layer",
       GraphPerLayer,
       {"w4.zero3.ep2.k2.moe4.1f1b.graph=per_layer",
        "w4.zero2.ep2.k2.moe4.1f1b.dw.graph=per_layer"}},
      {"overlap-of-recompute",
       OverlapOfRecompute,
       {"w4.zero3.ep2.k2.recompute.moe4.1f1b", "w4.ddp.ep2.k2.recompute.moe4.1f1b"}},
      {"overlap-of-reshard",
       OverlapOfReshard,
       {"w4.zero3.reshard0.ep2.k2.moe4.1f1b", "w8.zero3.reshard2.ep2.k2.moe4.1f1b"}},
      {"overlap-of-recomputed-moe",
       OverlapOfRecomputedMoe,
       {"w4.zero3.ep2.k2.moe4.1f1b.recompute=moe", "w4.zero2.ep2.k2.moe4.1f1b.recompute=norm,moe"}},
      {"overlap-of-loss-chunks",
       OverlapOfLossChunks,
       {"w4.zero3.ep2.k2.loss2.moe4.1f1b", "w4.ddp.ep2.k2.loss4.moe4.1f1b.dw"}},
      {"overlap-units",
       OverlapUnits,
       {"w4.zero3.ep2.k2.units=none.moe4.1f1b",
        "w4.zero3.ep2.k2.units=TransformerLayer,Embedding.moe4.1f1b",
        "w4.zero3.ep2.k2.units=Embedding.moe4.1f1b.dw"}},
      WordRule("schedule-word", "schedule", {"w4.zero3.schedule=one_stream", "w2.ddp.schedule=0"}),
      {"twin-in-turn",
       TwinInTurn,
       {"w4.zero3.twin.onecomm", "w8.zero1.twin.grid.ep2.onecomm.experts", "w4.lw.twin.onecomm"}},
      {"priority-in-one-queue",
       PriorityInOneQueue,
       {"w4.zero3.ep2.k2.onequeue.moe4.1f1b.hp", "w4.lw.ep2.k2.onequeue.moe4.1f1b.hp"}},
  };
}

}  // namespace shardproof
