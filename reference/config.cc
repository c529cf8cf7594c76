#include "reference/config.h"

#include <utility>

#include "reference/knob_reader.h"

namespace reference {
namespace {

constexpr const char* kOverlap = "overlap_moe_expert_parallel_comm";

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

void ReadSharding(const Knobs& knobs, Config& c) {
  c.strategy =
      knobs.OneOf<Strategy>("strategy", {{"no_shard", Strategy::kNoShard},
                                         {"optim", Strategy::kOptim},
                                         {"optim_grads", Strategy::kOptimGrads},
                                         {"optim_grads_params", Strategy::kOptimGradsParams},
                                         {"layer_wise", Strategy::kLayerWise}});
  c.outer_shards = knobs.OneOf<bool>("outer_strategy", {{"no_shard", false}, {"optim", true}});
  c.optimizer_instances = knobs.Size("num_optimizer_instances");
  c.twins = knobs.Flag("create_all_gather_group");
}

void ReadLayerWise(const Knobs& knobs, Config& c) {
  c.aligned_layout =
      knobs.OneOf<bool>("layer_wise_layout", {{"dealt", false}, {"aligned", true}});
  c.transport =
      knobs.OneOf<Transport>("layer_wise_transport", {{"all_gather_v", Transport::kAllGatherV},
                                                      {"broadcast", Transport::kBroadcast},
                                                      {"padded", Transport::kPadded}});
  c.gather_into_grads = knobs.OneOf<bool>("layer_wise_buffer", {{"own", false}, {"grads", true}});
}

void ReadGrid(const Knobs& knobs, Config& c) {
  c.own_groups = knobs.OneOf<bool>("groups", {{"explicit", false}, {"grid", true}});
  c.grid.tp = knobs.Size("tp");
  c.grid.cp = knobs.Size("cp");
  c.grid.ep = knobs.Size("ep");
  c.grid.pp = knobs.Size("pp");
  c.grid.etp = knobs.Size("etp");
  c.grid.order = knobs.Text("order").value_or(c.grid.order);
  c.grid.offset = static_cast<int32_t>(knobs.Integer("rank_offset", 0).value_or(0));
  c.grid.span = static_cast<int32_t>(knobs.Integer("rank_span", 1).value_or(0));
  c.grid.optimizer_instances = c.optimizer_instances;
}

void ReadCommunication(const Knobs& knobs, Config& c) {
  if (const auto units = knobs.Text("units")) {
    c.unit_types = *units == "none" ? std::vector<std::string>{} : SplitCommas(*units);
    for (const std::string& type : c.unit_types) {
      if (type.empty())
        Reject("units", *units, "has an empty module type; write \"none\" for no units");
    }
  }
  c.bucket_size = knobs.Integer("bucket_size", 0).value_or(0);
  c.prefetch_limit_bytes = knobs.Integer("prefetch_limit_bytes", 0);
  // Sharded gradients leave no room to postpone a reduction, and sharded parameters none to gather
  // all at once.
  c.overlap_grad_reduce = knobs.Flag("overlap_grad_reduce") || c.ShardsGrads();
  c.overlap_param_gather = knobs.Flag("overlap_param_gather") || c.ShardsParams();
  c.average_in_collective = knobs.Flag("average_in_collective");
  c.per_token_loss = knobs.Flag("calculate_per_token_loss");
  c.loss_scale = knobs.PowerOfTwo("loss_scale", 1);
  c.tokens_per_step = knobs.Integer("tokens_per_step", 1).value_or(0);
  c.param_dtype = knobs.Dtype("param_dtype");
  c.grad_comm_dtype = knobs.Dtype("grad_comm_dtype");
  c.main_grads_dtype = knobs.Dtype("main_grads_dtype");
  c.recompute = knobs.Flag("recompute");
}

void ReadSchedule(const Knobs& knobs, Config& c) {
  c.overlap_moe = knobs.Flag(kOverlap);
  c.delay_wgrad = knobs.Flag("delay_wgrad_compute");
  c.early_attn_release = knobs.Flag("ep_overlap_early_attn_memory_release");
  c.high_priority_a2a = knobs.Flag("high_priority_a2a_comm_stream");
  c.chunks = knobs.Size("virtual_pipeline_model_parallel_size");
  c.shared_expert_overlap = knobs.Flag("moe_shared_expert_overlap");
  c.double_buffer = knobs.Flag("fsdp_double_buffer");
  c.cuda_graphs =
      knobs.OneOf<CudaGraphs>("cuda_graph_impl", {{"none", CudaGraphs::kNone},
                                                  {"full_iteration", CudaGraphs::kFullIteration},
                                                  {"per_layer", CudaGraphs::kPerLayer}});
  const std::string modules = knobs.Text("recompute_modules").value_or("");
  for (const std::string& module : SplitCommas(modules)) {
    if (modules.empty()) continue;
    if (module != "norm" && module != "core_attn" && module != "moe")
      Reject("recompute_modules", modules, "\"" + module + "\" is none of norm, core_attn, moe");
    c.recompute_modules.insert(module);
  }
}

// The schedule takes layers apart into nodes, so whatever treats a layer as one piece is illegal
// with it.
void CheckSchedule(const Knobs& knobs, const Config& c) {
  const std::string with_overlap = "is illegal with " + std::string(kOverlap) + " = 1: ";
  if (!c.overlap_moe) {
    for (const char* name : {"delay_wgrad_compute", "ep_overlap_early_attn_memory_release"}) {
      if (knobs.Flag(name)) Reject(name, "1", "needs " + std::string(kOverlap) + " = 1");
    }
    return;
  }
  if (c.recompute) Reject("recompute", "1", with_overlap + "whole layers would run again");
  if (c.recompute_modules.contains("moe"))
    Reject("recompute_modules", knobs.Text("recompute_modules").value(),
           with_overlap + "moe would exchange its tokens again");
  if (c.shared_expert_overlap)
    Reject("moe_shared_expert_overlap", "1",
           with_overlap + "the shared expert belongs to the nodes before the dispatch");
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

void ReadOptimizer(const Knobs& knobs, Config& c) {
  c.optimizer = knobs.OneOf<OptimizerKind>("optimizer", {{"sgd", OptimizerKind::kSgd},
                                                         {"adamw", OptimizerKind::kAdamW},
                                                         {"muon", OptimizerKind::kMuon}});
  if (!knobs.Text("lr")) throw Rejected("lr is not set: it is a contract knob");
  c.lr = knobs.Real("lr", 0);
  c.weight_decay = knobs.Real("weight_decay", 0);
  c.adam_beta1 = knobs.Real("adam_beta1", c.adam_beta1);
  c.adam_beta2 = knobs.Real("adam_beta2", c.adam_beta2);
  c.adam_eps = knobs.Real("adam_eps", c.adam_eps);
  c.clip_grad = knobs.Real("clip_grad", 0);
  c.zero_count = knobs.Flag("log_num_zeros_in_grad");
  c.skip_norm = knobs.Real("grad_norm_skip_threshold", 0);
  c.grad_norm = knobs.Flag("grad_norm") || c.clip_grad > 0 || c.skip_norm > 0;
  c.check_for_nan_in_grad = knobs.Flag("check_for_nan_in_grad");
  c.device_memory_bytes = knobs.Integer("device_memory_bytes", 0).value_or(0);
}

void ReadMuon(const Knobs& knobs, MuonOptions& muon) {
  muon.momentum = knobs.Real("muon_momentum", muon.momentum);
  if (muon.momentum >= 1) Reject("muon_momentum", *knobs.Text("muon_momentum"), "must be below 1");
  muon.nesterov = knobs.Flag("muon_nesterov");
  muon.coefficients = knobs.OneOf<Coefficients>("muon_coefficient_type",
                                                {{"quintic", Coefficients::kQuintic},
                                                 {"simple", Coefficients::kSimple},
                                                 {"polar_express", Coefficients::kPolarExpress},
                                                 {"cans", Coefficients::kCans},
                                                 {"deepseekv4", Coefficients::kDeepSeekV4},
                                                 {"cubic5", Coefficients::kCubic5},
                                                 {"aol", Coefficients::kAol}});
  const int64_t steps = knobs.Integer("muon_num_ns_steps", 1).value_or(muon.steps);
  if (steps > 100) Reject("muon_num_ns_steps", std::to_string(steps), "must be at most 100");
  muon.steps = static_cast<int32_t>(steps);
  muon.scale =
      knobs.OneOf<MuonScale>("muon_scale_mode", {{"spectral", MuonScale::kSpectral},
                                                 {"unit_rms_norm", MuonScale::kUnitRmsNorm},
                                                 {"shape_scaling", MuonScale::kShapeScaling}});
  muon.extra_scale = knobs.Real("muon_extra_scale_factor", muon.extra_scale);
  muon.split_qkv = knobs.Flag("muon_split_qkv", true);
  muon.bf16_iteration =
      knobs.OneOf<bool>("muon_fp32_matmul_prec", {{"highest", false}, {"medium", true}});
  muon.eps = knobs.Real("muon_eps", muon.eps);
  muon.tp_mode = knobs.OneOf<MuonTpMode>("muon_tp_mode", {{"duplicated", MuonTpMode::kDuplicated},
                                                          {"distributed", MuonTpMode::kDistributed},
                                                          {"blockwise", MuonTpMode::kBlockwise}});
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
    refuse("num_optimizer_instances", "is illegal with strategy = layer_wise: owners are dealt over "
                                      "all data-parallel ranks");
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
    refuse("layer_wise_buffer", "an element of the gradients (main_grads_dtype = bf16) is smaller "
                                "than one of the parameters (param_dtype = fp32)");
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

}  // namespace

Config ReadConfig(const KnobReader& read) {
  const Knobs knobs(read);
  Config config;
  if (!knobs.Text("microbatches")) throw Rejected("microbatches is not set: it is a contract knob");
  config.microbatches = knobs.Size("microbatches");
  ReadSharding(knobs, config);
  ReadLayerWise(knobs, config);
  ReadGrid(knobs, config);
  ReadCommunication(knobs, config);
  ReadSchedule(knobs, config);
  ReadOptimizer(knobs, config);
  ReadMuon(knobs, config.muon);
  knobs.Text("plugin_args");  // this engine has none of its own
  CheckCombinations(knobs, config);
  CheckLayerWise(knobs, config);
  CheckSchedule(knobs, config);
  CheckMuon(knobs, config);
  return config;
}

void CheckAxes(const Config& c, int32_t ep, int32_t pp) {
  if (c.overlap_moe && ep == 1)
    Reject(kOverlap, "1", "there are no all-to-alls to hide: the group ep has one member");
  const std::string stages = std::to_string(pp);
  if (c.overlap_moe && pp > 1 && c.chunks == 1) {
    Reject(kOverlap, "1",
           "with pp = " + stages + " it needs virtual_pipeline_model_parallel_size > 1, not 1");
  }
  if (c.chunks > 1 && pp > 1 && c.Shards()) {
    Reject("virtual_pipeline_model_parallel_size", std::to_string(c.chunks),
           "interleaved stages (pp = " + stages + ") need strategy = no_shard");
  }
  if (c.chunks > 1 && pp == 1)
    Reject("virtual_pipeline_model_parallel_size", std::to_string(c.chunks), "there is no pipeline");
  if (c.chunks > 1 && c.microbatches % pp != 0) {
    Reject("microbatches", std::to_string(c.microbatches),
           "interleaved stages need a multiple of pp = " + stages);
  }
  if (c.chunks > 1 && (c.recompute || c.recompute_modules.contains("moe"))) {
    throw Unsupported(
        "recompute = 1 and recompute_modules = moe are not implemented for interleaved stages");
  }
}

void CheckImplemented(const Config& c) {
  if (c.shared_expert_overlap)
    throw Unsupported("moe_shared_expert_overlap = 1 is not implemented");
  if (c.double_buffer) throw Unsupported("fsdp_double_buffer = 1 is not implemented");
  if (c.cuda_graphs != CudaGraphs::kNone) throw Unsupported("cuda_graph_impl is not implemented");
  if (c.optimizer == OptimizerKind::kMuon && c.Shards() && !c.LayerWise()) {
    throw Unsupported(
        "optimizer = muon is implemented with strategy = no_shard and layer_wise only: it "
        "orthogonalises whole matrices, and shards hold rows of them");
  }
  if (c.LayerWise() && c.overlap_moe)
    throw Unsupported(std::string(kOverlap) + " = 1 is not implemented with strategy = layer_wise");
}

std::vector<std::string> Warnings(const Config& c) {
  std::vector<std::string> warnings;
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
