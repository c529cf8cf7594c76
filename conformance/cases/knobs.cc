// case.h's Knobs: abi/KNOBS.md in code.
#include <cmath>

#include "conformance/cases/case.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

class KnobWriter {
 public:
  void Always(const std::string& name, const std::string& value) { knobs_[name] = value; }
  void Text(const std::string& name, const std::string& value, const std::string& usual) {
    if (value != usual) knobs_[name] = value;
  }
  void Integer(const std::string& name, int64_t value, int64_t usual) {
    if (value != usual) knobs_[name] = std::to_string(value);
  }
  void Real(const std::string& name, double value) {
    if (value != 0) knobs_[name] = RealText(value);
  }
  void Flag(const std::string& name, bool value) { Integer(name, value ? 1 : 0, 0); }

  std::map<std::string, std::string> Take() { return std::move(knobs_); }

 private:
  std::map<std::string, std::string> knobs_;
};

void WriteGrid(const InstanceSpec& spec, int32_t world, KnobWriter& knobs) {
  knobs.Text("groups", spec.grid ? "grid" : "explicit", "explicit");
  if (!spec.grid) return;
  knobs.Integer("tp", spec.tp, 1);
  knobs.Integer("cp", spec.cp, 1);
  knobs.Integer("ep", spec.ep, 1);
  knobs.Integer("pp", spec.pp, 1);
  knobs.Integer("etp", spec.etp, 1);
  knobs.Text("order", spec.order, InstanceSpec{}.order);
  knobs.Integer("rank_offset", spec.offset, 0);
  knobs.Integer("rank_span", spec.span, world);
}

void WriteOptimizer(const InstanceSpec& spec, KnobWriter& knobs) {
  knobs.Text("optimizer", spec.optimizer, "sgd");
  knobs.Real("weight_decay", spec.weight_decay);
  knobs.Real("clip_grad", spec.clip_grad);
  knobs.Flag("grad_norm", spec.grad_norm);
  knobs.Flag("log_num_zeros_in_grad", spec.zero_count);
  knobs.Real("grad_norm_skip_threshold", spec.skip_norm);
  knobs.Flag("check_for_nan_in_grad", spec.check_for_nan);
}

void WriteMuon(const MuonSpec& muon, KnobWriter& knobs) {
  const MuonSpec usual;
  const auto real = [&](const std::string& name, double value, double otherwise) {
    knobs.Text(name, RealText(value), RealText(otherwise));
  };
  real("muon_momentum", muon.momentum, usual.momentum);
  knobs.Flag("muon_nesterov", muon.nesterov);
  knobs.Text("muon_coefficient_type", muon.coefficients, usual.coefficients);
  knobs.Integer("muon_num_ns_steps", muon.ns_steps, usual.ns_steps);
  knobs.Text("muon_scale_mode", muon.scale_mode, usual.scale_mode);
  real("muon_extra_scale_factor", muon.extra_scale, usual.extra_scale);
  knobs.Integer("muon_split_qkv", muon.split_qkv ? 1 : 0, 1);
  knobs.Text("muon_fp32_matmul_prec", muon.precision, usual.precision);
  real("muon_eps", muon.eps, usual.eps);
}

void WriteLayerWise(const LayerWiseSpec& spec, KnobWriter& knobs) {
  const LayerWiseSpec usual;
  knobs.Text("layer_wise_layout", spec.layout, usual.layout);
  knobs.Text("layer_wise_transport", spec.transport, usual.transport);
  knobs.Text("layer_wise_buffer", spec.buffer, usual.buffer);
}

void WriteSchedule(const InstanceSpec& spec, KnobWriter& knobs) {
  knobs.Flag("overlap_moe_expert_parallel_comm", spec.overlap_moe);
  knobs.Flag("delay_wgrad_compute", spec.delay_wgrad);
  knobs.Flag("ep_overlap_early_attn_memory_release", spec.early_release);
  knobs.Flag("high_priority_a2a_comm_stream", spec.high_priority);
  const double scale =
      spec.wrong_loss_scale != 0 ? spec.wrong_loss_scale : std::ldexp(1.0, spec.loss_scale_log2);
  knobs.Text("loss_scale", RealText(scale), "1");
  knobs.Integer("virtual_pipeline_model_parallel_size", spec.chunks, 1);
  knobs.Text("recompute_modules", spec.recompute_modules, "");
  knobs.Flag("moe_shared_expert_overlap", spec.shared_expert_overlap);
  knobs.Flag("fsdp_double_buffer", spec.double_buffer);
  knobs.Text("cuda_graph_impl", spec.cuda_graph, "");
}

}  // namespace

std::map<std::string, std::string> Knobs(const InstanceSpec& spec, int32_t world) {
  KnobWriter knobs;
  knobs.Always("microbatches", std::to_string(spec.microbatches));
  knobs.Always("lr", RealText(spec.lr));
  knobs.Text("strategy", spec.strategy, "no_shard");
  knobs.Text("outer_strategy", spec.outer_strategy, "no_shard");
  knobs.Integer("num_optimizer_instances", spec.outer, 1);
  knobs.Flag("create_all_gather_group", spec.twin != "none");
  WriteGrid(spec, world, knobs);
  knobs.Text("units", spec.units.empty() ? "none" : spec.units, InstanceSpec{}.units);
  knobs.Integer("bucket_size", spec.bucket_size, 0);
  knobs.Integer("prefetch_limit_bytes", spec.prefetch_limit_bytes, -1);
  knobs.Flag("overlap_grad_reduce", spec.overlap_grad_reduce);
  knobs.Flag("overlap_param_gather", spec.overlap_param_gather);
  knobs.Flag("average_in_collective", spec.average_in_collective);
  knobs.Flag("calculate_per_token_loss", spec.per_token_loss);
  if (spec.per_token_loss) knobs.Always("tokens_per_step", std::to_string(TokensPerStep(spec)));
  knobs.Text("param_dtype", spec.param_dtype, "fp32");
  knobs.Text("grad_comm_dtype", spec.grad_comm_dtype, "fp32");
  knobs.Text("main_grads_dtype", spec.main_grads_dtype, "fp32");
  knobs.Flag("recompute", spec.recompute);
  knobs.Flag("nccl_ub", spec.nccl_ub);
  WriteSchedule(spec, knobs);
  WriteOptimizer(spec, knobs);
  WriteMuon(spec.muon, knobs);
  WriteLayerWise(spec.layer_wise, knobs);
  knobs.Integer("device_memory_bytes", spec.device_memory_bytes, 0);
  return knobs.Take();
}

int64_t TokensPerStep(const InstanceSpec& spec) {
  return int64_t{DpCpSize(spec)} * std::max(1, spec.microbatches) *
         std::max(1, spec.model.sequence);
}

int64_t GradDivisor(const InstanceSpec& spec) {
  return spec.per_token_loss ? TokensPerStep(spec)
                             : int64_t{DpCpSize(spec)} * std::max(1, spec.microbatches);
}

}  // namespace shardproof
