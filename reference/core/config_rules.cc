#include "reference/core/config_rules.h"

#include "reference/core/knob_reader.h"

namespace reference {
namespace {

// The schedule takes layers apart into nodes, so whatever treats a layer as a whole is illegal
// with it.
void CheckSchedule(const Knobs& knobs, const Config& c) {
  const std::string with_overlap = "is illegal with " + std::string(kOverlap) + " = 1: ";
  if (!c.overlap_moe) {
    for (const char* name : {"delay_wgrad_compute", "ep_overlap_early_attn_memory_release"}) {
      if (knobs.Flag(name)) Reject(name, "1", "needs " + std::string(kOverlap) + " = 1");
    }
    return;
  }
  if (c.loss_chunks > 1)
    Reject("loss_chunks", std::to_string(c.loss_chunks),
           with_overlap + "the loss is one node between two microbatches");
  if (c.recompute) Reject("recompute", "1", with_overlap + "whole layers would run again");
  if (c.recompute_modules.contains("moe"))
    Reject("recompute_modules", knobs.Text("recompute_modules").value(),
           with_overlap + "moe would exchange its tokens again");
  if (c.shared_expert_overlap)
    Reject("moe_shared_expert_overlap", "1",
           with_overlap + "the shared expert belongs to the nodes before the dispatch");
  if (c.nccl_ub)
    Reject("nccl_ub", "1", with_overlap + "registered memory is kept, as double buffers are");
  if (c.reshard_after_forward != 1)
    Reject("reshard_after_forward", std::to_string(c.reshard_after_forward),
           with_overlap + "a layer's parameters go after its last forward node");
  if (c.double_buffer && c.Shards())
    Reject("fsdp_double_buffer", "1",
           with_overlap + "units of two microbatches are gathered and released in turns");
  if (c.cuda_graphs == CudaGraphs::kPerLayer && c.Shards())
    Reject("cuda_graph_impl", "per_layer",
           with_overlap + "parameters come and go between a layer's nodes");
  if (c.ShardsParams() && c.unit_types != std::vector<std::string>{"TransformerLayer"})
    Reject("units", knobs.Text("units").value(),
           with_overlap + "only units = TransformerLayer are released by its nodes");
}

// Combinations that run and do not orthogonalise.
void CheckMuon(const Knobs& knobs, const Config& c) {
  if (c.optimizer != OptimizerKind::kMuon) return;
  const std::string steps = std::to_string(c.muon.steps);
  if (c.muon.coefficients == Coefficients::kAol) {
    Reject("muon_coefficient_type", "aol",
           "is made for another normalisation; after the Frobenius norm it flips the sign of some "
           "singular values");
  }
  if (c.muon.coefficients == Coefficients::kQuintic && c.muon.steps % 5 != 0) {
    Reject("muon_num_ns_steps", steps,
           "must be a multiple of 5 with muon_coefficient_type = quintic: its five steps belong "
           "together, and after part of them singular values are far from 1");
  }
  if (c.muon.coefficients == Coefficients::kCubic5 && c.muon.steps != 5) {
    Reject("muon_num_ns_steps", steps,
           "must be 5 with muon_coefficient_type = " + *knobs.Text("muon_coefficient_type"));
  }
}

// Whole parameters on one rank each: what splits them, and what leaves the gathers nothing to hide
// behind, is illegal with it.
void CheckLayerWise(const Knobs& knobs, const Config& c) {
  const auto refuse = [&](const char* name, const std::string& why) {
    Reject(name, *knobs.Text(name), why);
  };
  if (!c.LayerWise()) {
    for (const char* name : {"layer_wise_layout", "layer_wise_transport", "layer_wise_buffer"}) {
      if (knobs.Text(name)) refuse(name, "needs strategy = layer_wise");
    }
    return;
  }
  if (c.optimizer_instances > 1)
    refuse("num_optimizer_instances",
           "is illegal with strategy = layer_wise: owners are dealt over all data-parallel ranks");
  if (c.overlap_param_gather && !c.overlap_grad_reduce)
    refuse("overlap_param_gather", "with strategy = layer_wise needs overlap_grad_reduce = 1");
  if (c.aligned_layout && c.transport != Transport::kAllGatherV)
    refuse("layer_wise_transport", "layer_wise_layout = aligned gathers equal shards in place");
  if (c.aligned_layout && c.gather_into_grads)
    refuse("layer_wise_buffer", "layer_wise_layout = aligned gathers in place");
  if (c.gather_into_grads && c.transport == Transport::kPadded)
    refuse("layer_wise_buffer",
           "with layer_wise_transport = padded: gradients leave no room for the padding");
  if (c.gather_into_grads && c.main_grads_dtype == SPF_BF16 && c.param_dtype == SPF_F32)
    refuse("layer_wise_buffer",
           "an element of the gradients (main_grads_dtype = bf16) is smaller "
           "than one of the parameters (param_dtype = fp32)");
  if (c.nccl_ub)
    refuse("nccl_ub",
           "is illegal with strategy = layer_wise: owners send pieces of any size from any place, "
           "members use registered memory at one offset");
}

// Who owns the order of collectives, and what is there to break it.
void CheckOrder(const Config& c) {
  if (c.schedule == CommSchedule::kOneCommunicator && (c.dense_twins || c.expert_twins)) {
    Reject("schedule", "one_communicator",
           "is illegal with create_all_gather_group = 1: a twin is there for gathers that are in "
           "flight beside reductions");
  }
  if (c.schedule == CommSchedule::kOneQueue && c.overlap_moe && c.high_priority_a2a) {
    Reject("schedule", "one_queue",
           "is illegal with high_priority_a2a_comm_stream = 1: nothing overtakes in one queue");
  }
}

void CheckBackwardCopies(const Config& c) {
  if (!c.backward_copies) return;
  if (!c.ShardsParams()) {
    Reject("backward_param_copies", "1",
           "needs strategy = optim_grads_params: else parameters are not gathered for backward");
  }
  if (c.reshard_after_forward != 1) {
    Reject("backward_param_copies", "1",
           "needs reshard_after_forward = 1: backward does not read what forward has gathered");
  }
}

void CheckCombinations(const Knobs& knobs, const Config& c) {
  if (c.outer_shards && !c.ShardsParams()) {
    Reject(
        "outer_strategy", "optim",
        "needs strategy = optim_grads_params, not " + knobs.Text("strategy").value_or("no_shard"));
  }
  if (c.outer_shards && c.optimizer_instances == 1) {
    Reject("outer_strategy", "optim",
           "there is no outer group to shard over with num_optimizer_instances = 1");
  }
  if (c.reshard_after_forward != 1 && !c.ShardsParams()) {
    Reject("reshard_after_forward", std::to_string(c.reshard_after_forward),
           "needs strategy = optim_grads_params: else there are no shards to go back to");
  }
  if (c.double_buffer && c.reshard_after_forward == 0) {
    Reject("fsdp_double_buffer", "1",
           "is illegal with reshard_after_forward = 0: units that stay gathered need more than two "
           "buffers");
  }
  if (c.average_in_collective && c.per_token_loss) {
    Reject("average_in_collective", "1",
           "cannot be combined with calculate_per_token_loss = 1, whose divisor is not the number "
           "of ranks");
  }
  if (c.per_token_loss && c.tokens_per_step == 0) {
    Reject("calculate_per_token_loss", "1", "needs tokens_per_step");
  }
  for (const auto& [name, beta] :
       {std::pair("adam_beta1", c.adam_beta1), std::pair("adam_beta2", c.adam_beta2)}) {
    if (beta >= 1) Reject(name, std::to_string(beta), "must be below 1");
  }
  if (!c.own_groups) {
    for (const char* name : {"tp", "cp", "ep", "pp", "etp", "order", "rank_offset", "rank_span"}) {
      if (const auto text = knobs.Text(name))
        Reject(name, *text, "describes a grid, but groups = explicit");
    }
  }
}

void CheckOverlapIn(const Config& c, int32_t ep, int32_t pp) {
  if (ep == 1)
    Reject(kOverlap, "1", "there are no all-to-alls to hide: the group ep has one member");
  if (pp == 1) return;
  const std::string with = "with pp = " + std::to_string(pp) + " it needs ";
  if (c.chunks == 1)
    Reject(kOverlap, "1", with + "virtual_pipeline_model_parallel_size > 1, not 1");
  if (c.ShardsGrads())
    Reject(kOverlap, "1",
           with + "whole gradients: strategy = no_shard, optim or layer_wise (Megatron-FSDP)");
}

}  // namespace

void CheckRules(const Knobs& knobs, const Config& c) {
  CheckCombinations(knobs, c);
  CheckBackwardCopies(c);
  CheckOrder(c);
  CheckLayerWise(knobs, c);
  CheckSchedule(knobs, c);
  CheckMuon(knobs, c);
}

void CheckAxes(const Config& c, int32_t ep, int32_t pp) {
  if (c.overlap_moe) CheckOverlapIn(c, ep, pp);
  if (c.chunks == 1) return;
  if (pp == 1)
    Reject("virtual_pipeline_model_parallel_size", std::to_string(c.chunks),
           "there is no pipeline");
  if (c.microbatches % pp != 0) {
    Reject("microbatches", std::to_string(c.microbatches),
           "interleaved stages need a multiple of pp = " + std::to_string(pp));
  }
  if (c.recompute || c.recompute_modules.contains("moe")) {
    throw Unsupported(
        "recompute = 1 and recompute_modules = moe are not implemented for interleaved stages");
  }
  if (c.ShardsGrads() && (c.unit_types.empty() || c.reshard_after_forward > 1)) {
    throw Unsupported(
        "units = none and reshard_after_forward = n are not implemented for interleaved stages "
        "with sharded gradients");
  }
}

void CheckImplemented(const Config& c) {
  if (c.shared_expert_overlap)
    throw Unsupported("moe_shared_expert_overlap = 1 is not implemented");
  if (c.cuda_graphs != CudaGraphs::kNone) throw Unsupported("cuda_graph_impl is not implemented");
  if (c.optimizer == OptimizerKind::kMuon && c.Shards() && !c.LayerWise()) {
    throw Unsupported(
        "optimizer = muon is implemented with strategy = no_shard and layer_wise only: it "
        "orthogonalises whole matrices, and shards hold rows of them");
  }
}

std::vector<std::string> Warnings(const Config& c) {
  std::vector<std::string> warnings;
  if (c.LayerWise() && c.prefetch_limit_bytes)
    warnings.push_back("prefetch_limit_bytes = " + std::to_string(*c.prefetch_limit_bytes) +
                       " means nothing with strategy = layer_wise: one bucket is gathered ahead");
  if (c.optimizer != OptimizerKind::kMuon) return warnings;
  const SingularRange range = RangeOf(StepsOf(c.muon.coefficients, c.muon.steps));
  if (range.low < 0.5 || range.high > 1.5) {
    warnings.push_back("muon_num_ns_steps = " + std::to_string(c.muon.steps) +
                       ": singular values from 0.01 on end between " + std::to_string(range.low) +
                       " and " + std::to_string(range.high) + ", which is not near 1");
  }
  return warnings;
}

}  // namespace reference
