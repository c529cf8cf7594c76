#include "conformance/cases/illegal.h"

#include <algorithm>

#include "conformance/cases/grid.h"
#include "conformance/cases/real_text.h"

namespace shardproof {

std::string UnknownWord(const std::string& knob, const std::string& word,
                        const std::vector<std::string>& known) {
  if (std::count(known.begin(), known.end(), word) != 0) return "";
  std::string text = knob + " = " + word + ": unknown; use";
  for (const std::string& one : known) text += " " + one;
  return text;
}

namespace {

std::string Strategy(const InstanceSpec& spec, int32_t) {
  return UnknownWord("strategy", spec.strategy,
                     {"no_shard", "optim", "optim_grads", "optim_grads_params", "layer_wise"});
}

std::string OuterStrategy(const InstanceSpec& spec, int32_t) {
  return UnknownWord("outer_strategy", spec.outer_strategy, {"no_shard", "optim"});
}

std::string Optimizer(const InstanceSpec& spec, int32_t) {
  return UnknownWord("optimizer", spec.optimizer, {"sgd", "adamw", "muon"});
}

std::string ParamDtype(const InstanceSpec& spec, int32_t) {
  return UnknownWord("param_dtype", spec.param_dtype, {"fp32", "bf16"});
}

std::string GradCommDtype(const InstanceSpec& spec, int32_t) {
  return UnknownWord("grad_comm_dtype", spec.grad_comm_dtype, {"fp32", "bf16"});
}

std::string MainGradsDtype(const InstanceSpec& spec, int32_t) {
  return UnknownWord("main_grads_dtype", spec.main_grads_dtype, {"fp32", "bf16"});
}

std::string Microbatches(const InstanceSpec& spec, int32_t) {
  if (spec.microbatches >= 1) return "";
  return "microbatches = " + std::to_string(spec.microbatches) + ": a step has at least one";
}

std::string BucketSize(const InstanceSpec& spec, int32_t) {
  if (spec.bucket_size >= 0) return "";
  return "bucket_size = " + std::to_string(spec.bucket_size) +
         ": a number of elements, or 0 for no cut";
}

std::string PrefetchLimit(const InstanceSpec& spec, int32_t) {
  if (spec.prefetch_limit_bytes >= -1) return "";
  return "prefetch_limit_bytes = " + std::to_string(spec.prefetch_limit_bytes) +
         ": a number of bytes, or not set";
}

std::string ClipGrad(const InstanceSpec& spec, int32_t) {
  if (spec.clip_grad >= 0) return "";
  return "clip_grad = " + RealText(spec.clip_grad) + ": a maximal norm, or 0 for no clipping";
}

std::string SkipNorm(const InstanceSpec& spec, int32_t) {
  if (spec.skip_norm >= 0) return "";
  return "grad_norm_skip_threshold = " + RealText(spec.skip_norm) +
         ": the largest norm of a step that counts, or 0 for all";
}

std::string AverageOfTokens(const InstanceSpec& spec, int32_t) {
  if (!spec.average_in_collective || !spec.per_token_loss) return "";
  return "average_in_collective with calculate_per_token_loss: the collective would divide what "
         "tokens divide";
}

std::string Axes(const InstanceSpec& spec, int32_t) { return spec.grid ? GridProblem(spec) : ""; }

// Length of the lists of a family, 0 when there is no grid.
int32_t Length(const InstanceSpec& spec, int32_t world, const std::string& family) {
  for (const GroupFamily& candidate : GroupFamilies(spec, world)) {
    if (candidate.name == family) return static_cast<int32_t>(candidate.lists.front().size());
  }
  return 0;
}

std::string OuterCuts(const InstanceSpec& spec, int32_t world, const std::string& family) {
  const int32_t length = Length(spec, world, family);
  if (spec.outer < 1 || length % spec.outer == 0) return "";
  return "num_optimizer_instances = " + std::to_string(spec.outer) + " does not divide the " +
         std::to_string(length) + " ranks of " + family;
}

std::string OuterPositive(const InstanceSpec& spec, int32_t) {
  if (spec.outer >= 1) return "";
  return "num_optimizer_instances = " + std::to_string(spec.outer) + ": there is at least one";
}

std::string OuterDivides(const InstanceSpec& spec, int32_t world) {
  return OuterCuts(spec, world, "dp_cp");
}

std::string OuterDividesExperts(const InstanceSpec& spec, int32_t world) {
  return OuterCuts(spec, world, "expt_dp");
}

std::string OuterNeedsParams(const InstanceSpec& spec, int32_t) {
  if (spec.outer_strategy != "optim" || spec.strategy == "optim_grads_params") return "";
  return "outer_strategy = optim with strategy = " + spec.strategy +
         ": it needs optim_grads_params";
}

std::string OuterNeedsInstances(const InstanceSpec& spec, int32_t) {
  if (spec.outer_strategy != "optim" || spec.outer > 1) return "";
  return "outer_strategy = optim with num_optimizer_instances = 1: there is no outer group to "
         "shard over";
}

// Derive refuses to ask for wrong twins that some rank cannot tell from right ones.
std::string Twin(const InstanceSpec& spec, int32_t) {
  if (spec.twin == "none" || spec.twin == "given") return "";
  return "dp_cp_ag (" + spec.twin +
         ") has not the same ordered members as the group that reduces the same buffers";
}

}  // namespace

std::vector<IllegalRule> IllegalRules() {
  std::vector<IllegalRule> rules{
      {"strategy-word", Strategy},
      {"outer-strategy-word", OuterStrategy},
      {"optimizer-word", Optimizer},
      {"param-dtype-word", ParamDtype},
      {"grad-comm-dtype-word", GradCommDtype},
      {"main-grads-dtype-word", MainGradsDtype},
      {"microbatches", Microbatches},
      {"bucket-size", BucketSize},
      {"prefetch-limit", PrefetchLimit},
      {"clip-grad", ClipGrad},
      {"skip-norm", SkipNorm},
      {"average-of-tokens", AverageOfTokens},
      {"grid", Axes},
      {"outer-positive", OuterPositive},
      {"outer-divides-dp-cp", OuterDivides},
      {"outer-divides-expt-dp", OuterDividesExperts},
      {"outer-optim-needs-params", OuterNeedsParams},
      {"outer-optim-needs-instances", OuterNeedsInstances},
      {"twin", Twin},
  };
  for (const std::vector<IllegalRule>& more :
       {IllegalMuonRules(), IllegalLayerWiseRules(), IllegalScheduleRules()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return rules;
}

std::string IllegalText(const InstanceSpec& spec, int32_t world, std::string* rule) {
  for (const IllegalRule& candidate : IllegalRules()) {
    std::string text = candidate.broken(spec, world);
    if (text.empty()) continue;
    if (rule != nullptr) *rule = candidate.name;
    return text;
  }
  if (rule != nullptr) rule->clear();
  return "";
}

}  // namespace shardproof
