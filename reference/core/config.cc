#include "reference/core/config.h"

#include <utility>

#include "reference/core/config_rules.h"
#include "reference/core/knob_reader.h"

namespace reference {
namespace {

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
  c.strategy = knobs.OneOf<ShardingStrategy>(
      "strategy", {{"no_shard", ShardingStrategy::kNoShard},
                   {"optim", ShardingStrategy::kOptim},
                   {"optim_grads", ShardingStrategy::kOptimGrads},
                   {"optim_grads_params", ShardingStrategy::kOptimGradsParams},
                   {"layer_wise", ShardingStrategy::kLayerWise}});
  c.outer_shards = knobs.OneOf<bool>("outer_strategy", {{"no_shard", false}, {"optim", true}});
  c.optimizer_instances = knobs.Size("num_optimizer_instances");
  const bool twins = knobs.Flag("create_all_gather_group");
  const int of =
      twins ? knobs.OneOf<int>("all_gather_group_of", {{"all", 0}, {"dense", 1}, {"experts", 2}})
            : 0;
  c.dense_twins = twins && of != 2;
  c.expert_twins = twins && of != 1;
  c.reshard_after_forward = knobs.Integer32("reshard_after_forward", 0).value_or(1);
}

void ReadLayerWise(const Knobs& knobs, Config& c) {
  c.aligned_layout = knobs.OneOf<bool>("layer_wise_layout", {{"dealt", false}, {"aligned", true}});
  c.transport =
      knobs.OneOf<Transport>("layer_wise_transport", {{"all_gather_v", Transport::kAllGatherV},
                                                      {"broadcast", Transport::kBroadcast},
                                                      {"padded", Transport::kPadded}});
  c.gather_into_grads = knobs.OneOf<bool>("layer_wise_buffer", {{"own", false}, {"grads", true}});
}

void ReadGrid(const Knobs& knobs, Config& c) {
  // The model's tables say what is split.
  const bool split = knobs.Flag("tensor_parallel");
  if (split) knobs.Flag("sequence_parallel");
  if (knobs.Flag("vocab_parallel") && !split)
    Reject("vocab_parallel", "1", "needs tensor_parallel = 1, which splits the model at all");
  c.context_parallel = knobs.Flag("context_parallel");
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
  c.schedule =
      knobs.OneOf<CommSchedule>("schedule", {{"communicators", CommSchedule::kCommunicators},
                                             {"one_communicator", CommSchedule::kOneCommunicator},
                                             {"one_queue", CommSchedule::kOneQueue}});
  c.average_in_collective = knobs.Flag("average_in_collective");
  c.per_token_loss = knobs.Flag("calculate_per_token_loss");
  c.loss_scale = knobs.PowerOfTwo("loss_scale", 1);
  c.tokens_per_step = knobs.Integer("tokens_per_step", 1).value_or(0);
  c.param_dtype = knobs.Dtype("param_dtype");
  c.grad_comm_dtype = knobs.Dtype("grad_comm_dtype");
  c.main_grads_dtype = knobs.Dtype("main_grads_dtype");
  c.nccl_ub = knobs.Flag("nccl_ub");
  c.double_buffer = knobs.Flag("fsdp_double_buffer");
  c.backward_copies = knobs.Flag("backward_param_copies");
  c.meta_init = knobs.OneOf<bool>("init_device", {{"host", false}, {"meta", true}});
  c.recompute = knobs.Flag("recompute");
}

void ReadSchedule(const Knobs& knobs, Config& c) {
  c.overlap_moe = knobs.Flag(kOverlap);
  c.delay_wgrad = knobs.Flag("delay_wgrad_compute");
  c.early_attn_release = knobs.Flag("ep_overlap_early_attn_memory_release");
  c.high_priority_a2a = knobs.Flag("high_priority_a2a_comm_stream");
  c.fine_grained_gather = knobs.OneOf<int>("fine_grained_param_gather", {{"1", 1}, {"0", 0}}) == 1;
  c.chunks = knobs.Size("virtual_pipeline_model_parallel_size");
  c.shared_expert_overlap = knobs.Flag("moe_shared_expert_overlap");
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
  knobs.Integer("device_memory_bytes", 0);  // enforced by the host
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

}  // namespace

Config ReadConfig(const KnobReader& read) {
  const Knobs knobs(read);
  Config config;
  if (!knobs.Text("microbatches")) throw Rejected("microbatches is not set: it is a contract knob");
  config.microbatches = knobs.Size("microbatches");
  config.loss_chunks = knobs.Size("loss_chunks");
  ReadSharding(knobs, config);
  ReadLayerWise(knobs, config);
  ReadGrid(knobs, config);
  ReadCommunication(knobs, config);
  ReadSchedule(knobs, config);
  ReadOptimizer(knobs, config);
  ReadMuon(knobs, config.muon);
  if (config.optimizer == OptimizerKind::kMuon)
    config.muon.heads = knobs.Integer("num_attention_heads", 1).value_or(0);
  knobs.Text("plugin_args");  // this engine has none of its own
  CheckRules(knobs, config);
  return config;
}

}  // namespace reference
