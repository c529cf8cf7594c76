#include "conformance/cases/illegal.h"

#include <algorithm>
#include <stdexcept>

#include "conformance/cases/grid.h"
#include "conformance/cases/real_text.h"

namespace shardproof {

namespace {

std::string Microbatches(const InstanceSpec& spec, int32_t) {
  if (spec.microbatches >= 1) return "";
  return "microbatches = " + std::to_string(spec.microbatches) + ": a step has at least one";
}

std::string LossChunks(const InstanceSpec& spec, int32_t) {
  if (spec.loss_chunks >= 1) return "";
  return "loss_chunks = " + std::to_string(spec.loss_chunks) + ": a loss has at least one";
}

std::string VocabularyAlone(const InstanceSpec& spec, int32_t) {
  if (!spec.vocab_parallel || spec.tensor_parallel) return "";
  return "vocab_parallel = 1 without tensor_parallel: ranks of tp hold the same whole model";
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
  if (spec.outer <= 1) return "";
  const int32_t length = Length(spec, world, family);
  if (length % spec.outer == 0) return "";
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
  if (spec.outer_strategy != OuterStrategy::kOptim || ShardsParams(spec)) return "";
  return "outer_strategy = optim with strategy = " + spec.strategy.Text() +
         ": it needs optim_grads_params";
}

std::string OuterNeedsInstances(const InstanceSpec& spec, int32_t) {
  if (spec.outer_strategy != OuterStrategy::kOptim || spec.outer > 1) return "";
  return "outer_strategy = optim with num_optimizer_instances = 1: there is no outer group to "
         "shard over";
}

std::string ReshardNeedsShards(const InstanceSpec& spec, int32_t) {
  if (spec.reshard_after_forward == 1 || ShardsParams(spec)) return "";
  return "reshard_after_forward = " + std::to_string(spec.reshard_after_forward) +
         " with strategy = " + spec.strategy.Text() + ": it needs optim_grads_params";
}

std::string ReshardDivides(const InstanceSpec& spec, int32_t) { return ReshardProblem(spec); }

std::string DoubleBufferOfKept(const InstanceSpec& spec, int32_t) {
  if (!spec.double_buffer || spec.reshard_after_forward != 0) return "";
  return "fsdp_double_buffer = 1 with reshard_after_forward = 0: units that stay gathered need "
         "more than two buffers";
}

std::string CopiesNeedShards(const InstanceSpec& spec, int32_t) {
  if (!spec.backward_copies || ShardsParams(spec)) return "";
  return "backward_param_copies = 1 with strategy = " + spec.strategy.Text() +
         ": it needs optim_grads_params, which gathers parameters for forward and for backward";
}

std::string CopiesOfKept(const InstanceSpec& spec, int32_t) {
  if (!spec.backward_copies || spec.reshard_after_forward == 1) return "";
  return "backward_param_copies = 1 with reshard_after_forward = " +
         std::to_string(spec.reshard_after_forward) +
         ": backward does not read what would be kept of forward's copy";
}

// Derive refuses to ask for wrong twins that some rank cannot tell from right ones.
std::string Twin(const InstanceSpec& spec, int32_t) {
  if (!HasWrongTwin(spec)) return "";
  return WrongTwin(spec) + " (" + spec.twin.Text() +
         ") has not the same ordered members as the group that reduces the same buffers";
}

// Words of knobs that every engine has.
std::vector<IllegalRule> WordRules() {
  return {
      WordRule("strategy-word", "strategy", {"w8.strategy=zero9", "w3.strategy=ddp"}),
      WordRule("outer-strategy-word", "outer_strategy", {"w8.zero3.n2.outer=full"}),
      WordRule("optimizer-word", "optimizer", {"w8.zero3.optimizer=lion", "w2.ddp.optimizer=adam"}),
      WordRule("param-dtype-word", "param_dtype", {"w8.zero3.param=fp8"}),
      WordRule("grad-comm-dtype-word", "grad_comm_dtype", {"w8.zero2.wire=fp16"}),
      WordRule("main-grads-dtype-word", "main_grads_dtype", {"w8.zero1.acc=int8"}),
      WordRule("init-device-word", "init_device", {"w4.zero3.init=cuda", "w2.ddp.init=cpu"}),
  };
}

// Numbers out of range, and what excludes each other.
std::vector<IllegalRule> NumberRules() {
  return {
      {"microbatches", Microbatches, {"w8.zero3.k0", "w5.ddp.k-1"}},
      {"loss-chunks", LossChunks, {"w8.zero3.loss0", "w3.lw.loss-2"}},
      {"vocab-parallel-needs-tensor-parallel",
       VocabularyAlone,
       {"w4.zero3.tp2.etp2.splitvocab", "w2.lw.splitvocab"}},
      {"bucket-size", BucketSize, {"w8.zero3.bs-1"}},
      {"prefetch-limit", PrefetchLimit, {"w8.zero3.pf-2"}},
      {"clip-grad", ClipGrad, {"w8.ddp.clip-1"}},
      {"skip-norm", SkipNorm, {"w4.zero2.skip-1", "w3.lw.skip-0p5"}},
      {"average-of-tokens",
       AverageOfTokens,
       {"w8.ddp.avg.pertoken", "w6.zero3.avg.pertoken", "w8.zero3.n2.avg.pertoken"}},
  };
}

// Grids that are none (sizes, divisibility, order, pp lists of the dense and the expert grid),
// outer groups, and twins that are not the reducing group.
std::vector<IllegalRule> GroupRules() {
  return {
      {"grid",
       Axes,
       {"w8.zero3.grid.tp3", "w6.ddp.grid.cp4", "w8.zero2.grid.ep3", "w8.zero3.grid.tp0",
        "w8.zero1.grid.pp-1", "w8.zero3.grid.tp2.etp2.order=cp-ep-dp-pp",
        "w8.zero2.grid.cp2.order=tp-dp-pp", "w8.zero3.grid.order=tp-cp-ep-pp",
        "w8.zero3.grid.order=tp-tp-dp-pp", "w8.zero3.grid.order=tp-cp-ep-dp-xp",
        "w8.zero3.grid.tp2.pp2.order=tp-pp-dp", "w8.zero3.grid.ep2.pp2.order=ep-pp-dp"}},
      {"outer-positive", OuterPositive, {"w8.zero3.n0", "w8.zero3.n-2"}},
      {"outer-divides-dp-cp",
       OuterDivides,
       {"w8.ddp.n3", "w3.zero3.n2", "w6.zero2.n4", "w8.zero3.n8.tp2.etp2", "w8.zero3.n3.grid"}},
      {"outer-divides-expt-dp",
       OuterDividesExperts,
       {"w8.zero3.n4.ep4.experts", "w6.zero3.n3.ep3.experts"}},
      {"outer-optim-needs-params",
       OuterNeedsParams,
       {"w8.ddp.n2.hfsdp", "w8.zero1.n2.hfsdp", "w8.zero2.n2.hfsdp"}},
      {"outer-optim-needs-instances",
       OuterNeedsInstances,
       {"w8.zero3.hfsdp", "w4.zero3.hfsdp.grid"}},
      {"reshard-needs-shards",
       ReshardNeedsShards,
       {"w8.zero2.reshard0", "w4.ddp.reshard2", "w4.zero1.reshard0.grid"}},
      {"reshard-divides",
       ReshardDivides,
       {"w8.zero3.reshard3", "w4.zero3.reshard4", "w8.zero3.n4.reshard2.grid",
        "w2.zero3.reshard-1"}},
      {"double-buffer-of-kept-units",
       DoubleBufferOfKept,
       {"w4.zero3.reshard0.doublebuffer", "w8.zero3.n2.reshard0.grid.ub.doublebuffer"}},
      {"backward-copies-need-shards",
       CopiesNeedShards,
       {"w4.zero2.copies", "w2.ddp.copies", "w8.zero1.grid.copies", "w3.lw.copies"}},
      {"backward-copies-of-kept-units",
       CopiesOfKept,
       {"w4.zero3.reshard0.copies", "w8.zero3.reshard2.grid.copies"}},
      {"twin",
       Twin,
       {"w8.zero3.twin=permuted", "w2.zero1.twin=permuted", "w8.zero3.twin=short",
        "w3.zero3.twin=short", "w8.zero3.n2.twin=full_span", "w6.zero3.n3.hfsdp.twin=full_span",
        "w8.zero3.twin=default_order.tp2.pp2.etp2.order=tp-pp-dp",
        "w8.zero2.twin=default_order.tp2.etp2.order=dp-tp", "w8.zero3.twin=permuted.ep2.experts",
        "w8.zero3.n2.twin=full_span.ep2.experts", "w4.zero3.twin=expert_permuted.ep2.experts",
        "w8.zero3.twin=expert_dense.ep2.experts"}},
  };
}

std::vector<IllegalRule> AllRules() {
  std::vector<IllegalRule> rules;
  for (const std::vector<IllegalRule>& more :
       {WordRules(), IllegalMuonRules(), NumberRules(), GroupRules(), IllegalLayerWiseRules(),
        IllegalScheduleRules()}) {
    rules.insert(rules.end(), more.begin(), more.end());
  }
  return rules;
}

}  // namespace

bool IsFor(For only, const InstanceSpec& spec) {
  switch (only) {
    case For::kAll:
      return true;
    case For::kMuon:
      return spec.optimizer == Optimizer::kMuon;
    case For::kLayerWise:
      return spec.strategy == ShardingStrategy::kLayerWise;
  }
  throw std::logic_error("a kind of engine that no knob is for");
}

IllegalRule WordRule(const std::string& name, const std::string& knob,
                     const std::vector<std::string>& asked) {
  const auto broken = [&row = KnobNamed(knob)](const InstanceSpec& spec, int32_t) -> std::string {
    const std::string word = row.text(spec);
    if (!IsFor(row.only, spec) || std::count(row.words.begin(), row.words.end(), word) != 0)
      return "";
    std::string text = row.name + " = " + word + ": unknown; use";
    for (const std::string& known : row.words) text += " " + known;
    return text;
  };
  return {name, broken, asked};
}

const std::vector<IllegalRule>& IllegalRules() {
  static const std::vector<IllegalRule> kRules = AllRules();  // never written again
  return kRules;
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
