#include "conformance/cases/id_fields.h"

namespace shardproof::ids {
namespace {

std::vector<Field> GridFields() {
  return {
      Word("strategy", &InstanceSpec::strategy,
           {{"no_shard", "ddp"},
            {"optim", "zero1"},
            {"optim_grads", "zero2"},
            {"optim_grads_params", "zero3"},
            {"layer_wise", "lw"}},
           true),
      Word("name", &InstanceSpec::name, {}),
      Integer("n", &InstanceSpec::outer),
      Word("outer", &InstanceSpec::outer_strategy, {{"optim", "hfsdp"}}),
      Word("twin", &InstanceSpec::twin, {{"given", "twin"}}),
      Flag("grid", &InstanceSpec::grid),
      Integer("tp", &InstanceSpec::tp),
      Integer("cp", &InstanceSpec::cp),
      Integer("ep", &InstanceSpec::ep),
      Integer("pp", &InstanceSpec::pp),
      Integer("etp", &InstanceSpec::etp),
      Word("order", &InstanceSpec::order, {}),
      Integer("at", &InstanceSpec::offset),
      Integer("span", &InstanceSpec::span),
  };
}

std::vector<Field> EngineFields() {
  return {
      Integer("k", &InstanceSpec::microbatches),
      Flag("ogr", &InstanceSpec::overlap_grad_reduce),
      Flag("opg", &InstanceSpec::overlap_param_gather),
      Flag("avg", &InstanceSpec::average_in_collective),
      Flag("pertoken", &InstanceSpec::per_token_loss),
      Word("param", &InstanceSpec::param_dtype, {{"bf16", "bf16"}}),
      Word("wire", &InstanceSpec::grad_comm_dtype, {{"bf16", "wire16"}}),
      Word("acc", &InstanceSpec::main_grads_dtype, {{"bf16", "acc16"}}),
      Integer("bs", &InstanceSpec::bucket_size),
      Integer("pf", &InstanceSpec::prefetch_limit_bytes),
      Word("units", &InstanceSpec::units, {}),
      Flag("recompute", &InstanceSpec::recompute),
      Flag("ub", &InstanceSpec::nccl_ub),
      Word("optimizer", &InstanceSpec::optimizer, {{"adamw", "adamw"}, {"muon", "muon"}}),
      Real("lr", &InstanceSpec::lr),
      Real("wd", &InstanceSpec::weight_decay),
      Real("clip", &InstanceSpec::clip_grad),
      Flag("norm", &InstanceSpec::grad_norm),
      Flag("zeros", &InstanceSpec::zero_count),
      Real("skip", &InstanceSpec::skip_norm),
      Flag("nan", &InstanceSpec::check_for_nan),
      Integer("mem", &InstanceSpec::device_memory_bytes),
      Word("do", &InstanceSpec::script, {}),
  };
}

std::vector<Field> ModelFields() {
  return {
      Integer("layers", &ModelConfig::layers),  Integer("vocab", &ModelConfig::vocab),
      Integer("width", &ModelConfig::width),    Integer("heads", &ModelConfig::heads),
      Integer("ffn", &ModelConfig::ffn),        Integer("seq", &ModelConfig::sequence),
      Flag("tied", &ModelConfig::tied),         Flag("bias", &ModelConfig::biases),
      Flag("odd", &ModelConfig::odd_sizes),     Flag("root", &ModelConfig::root_param),
      Flag("reused", &ModelConfig::reused),     Word("frozen", &ModelConfig::frozen, {}),
      Word("unused", &ModelConfig::unused, {}), Flag("experts", &ModelConfig::experts),
      Flag("raw", &ModelConfig::quantised),
  };
}

std::vector<Field> MoeFields() {
  return {
      Integer("moe", &MoeConfig::experts),
      Integer("top", &MoeConfig::top_k),
      Word("moelayers", &MoeConfig::layers, {}),
      Word("score", &MoeConfig::score, {{"presoftmax", "presoftmax"}, {"sigmoid", "sigmoid"}}),
      Integer("groups", &MoeConfig::groups),
      Integer("topgroups", &MoeConfig::top_groups),
      Flag("zloss", &MoeConfig::z_loss),
      Flag("aux", &MoeConfig::aux_loss),
      Flag("shared", &MoeConfig::shared),
      Integer("cap", &MoeConfig::capacity_percent),
      Flag("pad", &MoeConfig::pad),
      Word("skew", &MoeConfig::skew, {}),
      Flag("mtp", &ModelConfig::mtp),
  };
}

std::vector<Field> ScheduleFields() {
  return {
      Integer("vpp", &InstanceSpec::chunks),
      Flag("1f1b", &InstanceSpec::overlap_moe),
      Flag("dw", &InstanceSpec::delay_wgrad),
      Flag("er", &InstanceSpec::early_release),
      Flag("hp", &InstanceSpec::high_priority),
      Integer("ls", &InstanceSpec::loss_scale_log2),
      Real("badscale", &InstanceSpec::wrong_loss_scale),
      Word("recompute", &InstanceSpec::recompute_modules, {}),
      Flag("sharedoverlap", &InstanceSpec::shared_expert_overlap),
      Flag("doublebuffer", &InstanceSpec::double_buffer),
      Word("graph", &InstanceSpec::cuda_graph, {}),
  };
}

std::vector<Field> MuonFields() {
  return {
      Real("mom", &MuonSpec::momentum),
      Flag("nesterov", &MuonSpec::nesterov),
      Word("coef", &MuonSpec::coefficients, {}),
      Integer("ns", &MuonSpec::ns_steps),
      Word("scale", &MuonSpec::scale_mode, {}),
      Real("extra", &MuonSpec::extra_scale),
      Flag("wholeqkv", &MuonSpec::split_qkv),
      Word("prec", &MuonSpec::precision, {}),
      Real("nseps", &MuonSpec::eps),
  };
}

std::vector<Field> LayerWiseFields() {
  return {
      Word("layout", &LayerWiseSpec::layout, {{"aligned", "aligned"}}),
      Word("transport", &LayerWiseSpec::transport, {{"broadcast", "bcast"}, {"padded", "padded"}}),
      Word("buffer", &LayerWiseSpec::buffer, {{"grads", "gradbuf"}}),
  };
}

}  // namespace

std::vector<Field> Fields() {
  std::vector<Field> fields = GridFields();
  for (const std::vector<Field>& more : {EngineFields(), ModelFields(), MoeFields(),
                                         ScheduleFields(), MuonFields(), LayerWiseFields()}) {
    fields.insert(fields.end(), more.begin(), more.end());
  }
  return fields;
}

}  // namespace shardproof::ids
