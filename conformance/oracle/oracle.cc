#include "conformance/oracle/oracle.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/model/network.h"
#include "conformance/oracle/shards.h"
#include "conformance/oracle/trainer.h"
#include "conformance/oracle/update.h"

namespace shardproof {
namespace {

// ep rank by index in dp_cp. Ranks that differ in tp or pp only are replicas: any one stands for
// them.
std::vector<int32_t> EpRanks(const InstanceSpec& spec, int32_t world) {
  std::vector<int32_t> ep_ranks(static_cast<size_t>(DpCpSize(spec)), 0);
  if (!spec.model.experts) return ep_ranks;
  const std::vector<GroupFamily> families = GroupFamilies(spec, world);
  const GroupFamily *data = nullptr, *experts = nullptr;
  for (const GroupFamily& family : families) {
    if (family.name == "dp_cp") data = &family;
    if (family.name == "ep") experts = &family;
  }
  if (data == nullptr || experts == nullptr)
    throw std::logic_error("the grid has no groups dp_cp and ep");
  for (int32_t rank = spec.offset; rank < spec.offset + spec.span; ++rank) {
    const int32_t index = IndexIn(*data, rank, nullptr), ep = IndexIn(*experts, rank, nullptr);
    if (index >= 0 && ep >= 0) At(ep_ranks, index) = ep;
  }
  return ep_ranks;
}

// Samples that are computed together, by index in dp_cp: each by itself, or the parts of a sequence
// on the ranks of a group cp, in their order.
std::vector<std::vector<int64_t>> SequencesOf(const InstanceSpec& spec, int32_t world) {
  std::vector<std::vector<int64_t>> sequences;
  if (!spec.model.context_parallel) {
    for (int64_t sample = 0; sample < DpCpSize(spec); ++sample) sequences.push_back({sample});
    return sequences;
  }
  const std::vector<GroupFamily> families = GroupFamilies(spec, world);
  const auto named = [&](const char* name) {
    return std::find_if(families.begin(), families.end(),
                        [&](const GroupFamily& family) { return family.name == name; });
  };
  const auto data = named("dp_cp"), parts = named("cp");
  if (data == families.end() || parts == families.end())
    throw std::logic_error("the grid has no groups dp_cp and cp");
  std::set<int64_t> seen;  // groups that differ in tp or pp only have the same samples
  for (const std::vector<int32_t>& list : parts->lists) {
    std::vector<int64_t> sequence;
    for (const int32_t rank : list) sequence.push_back(IndexIn(*data, rank, nullptr));
    if (seen.insert(sequence.front()).second) sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// One process: no pipeline, no shards, whole sequences, and all routed experts together. (Experts
// without dispatch differ by ep rank; they stay.)
ModelConfig Undivided(ModelConfig config) {
  if (config.moe.experts > 0) config.ep = 1;
  config.moe.parts = (config.sequence_parallel ? config.tp : 1) * config.cp;
  config.pp = config.chunks = 1;
  config.tp = config.loss_chunks = 1;
  config.vocab_parallel = false;
  config.sequence *= config.cp;
  config.cp = 1;
  config.context_parallel = false;
  return config;
}

// The same with tables that say all that ranks of tp split: the oracle's own vocabulary is whole.
ModelConfig SplitLayout(const ModelConfig& config) {
  ModelConfig layout = Undivided(config);
  layout.vocab_parallel = config.vocab_parallel;
  return layout;
}

UpdateRule RuleOf(const InstanceSpec& spec) {
  UpdateRule rule;
  rule.adamw = spec.optimizer != Optimizer::kSgd;
  if (spec.optimizer == Optimizer::kMuon) {
    const MuonSpec& muon = spec.muon;
    rule.muon = MuonRule{spec.lr,
                         spec.weight_decay,
                         muon.momentum,
                         muon.nesterov,
                         muon.coefficients.Text(),
                         muon.ns_steps,
                         muon.scale_mode.Text(),
                         muon.extra_scale,
                         muon.split_qkv,
                         muon.precision == MuonPrecision::kMedium,
                         muon.eps,
                         spec.model.tp,
                         muon.tp_mode.Text()};
  }
  rule.lr = static_cast<float>(spec.lr);
  rule.weight_decay = static_cast<float>(spec.weight_decay);
  rule.clip_grad = spec.clip_grad;
  rule.skip_norm = spec.skip_norm;
  return rule;
}

std::map<std::string, std::vector<float>> WeightsOf(const OracleState& state) {
  std::map<std::string, std::vector<float>> weights;
  for (const OracleParam& param : state.params) weights[param.name] = param.weight;
  return weights;
}

class Oracle {
 public:
  // saved: what the leg before it left.
  Oracle(const Case& c, size_t instance, const OracleOptions& options, OracleState saved)
      : spec_(c.instances.at(instance)),
        model_(Undivided(spec_.model), TokensPerStep(spec_)),
        layout_(SplitLayout(spec_.model), {}),
        trainer_(model_, probe_, options.bf16_node_grads),
        ep_ranks_(EpRanks(spec_, c.world)),
        sequences_(SequencesOf(spec_, c.world)),
        rule_(RuleOf(spec_)),
        options_(options),
        saved_(std::move(saved)) {
    probe_.check_bounds = options.check_bounds;
  }

  OracleRun Run() {
    OracleRun run;
    for (const ScriptCall& call : ExpandScript(spec_)) {
      OracleCall& out = run.calls.emplace_back();
      out.letter = call.letter;
      out.step = call.step;
      Play(call, out);
      if (spec_.model.tp > 1) CutIntoShards(layout_.tables(), spec_.model.tp, out);
      if (Length(run.calls) > options_.last_call) break;
      ++call_;
    }
    if (probe_.quantised > 0) {
      run.saturated_fraction =
          static_cast<double>(probe_.saturated) / static_cast<double>(probe_.quantised);
    }
    if (grad_elements_ > 0) run.zero_grad_fraction = grad_zeros_ / grad_elements_;
    return run;
  }

  // What its last save, or a leg before it, left.
  OracleState TakeSaved() { return std::move(saved_); }

 private:
  void Play(const ScriptCall& call, OracleCall& out) {
    switch (call.letter) {
      case 'c':
        state_ = trainer_.InitialState();
        out.weights = WeightsOf(state_);
        break;
      case 't':
        Train(call.step, out);
        break;
      case 'e':
        RunBatch(call.step, false, out);
        if (options_.evals_count) ++state_.updates;
        break;
      case 's':
        saved_ = state_;
        break;
      case 'l':
        state_ = saved_;
        out.weights = WeightsOf(state_);
        break;
      default:
        break;  // destroy
    }
  }

  // All samples of the step's global batch: sample = microbatch * dp_cp + rank in dp_cp.
  void RunBatch(int64_t step, bool backward, OracleCall& out) {
    const auto ranks = static_cast<int64_t>(ep_ranks_.size());
    for (int64_t first = 0; first < ranks * spec_.microbatches; first += ranks) {
      for (const std::vector<int64_t>& sequence : sequences_) {
        std::vector<int64_t> samples;
        for (const int64_t index : sequence) samples.push_back(first + index);
        const int32_t ep_rank = At(ep_ranks_, sequence.front());
        const auto losses = trainer_.RunSequence(state_, step, samples, ep_rank, backward);
        for (size_t i = 0; i < samples.size(); ++i) out.losses[samples[i]] = losses[i];
        if (backward && options_.keep_samples) SetApart(out);
        for (const auto& [value, rows] : trainer_.expert_rows()) {
          const int64_t each = Length(rows) / Length(samples);  // those of a sample's parts
          for (int64_t i = 0; i < Length(samples); ++i) {
            out.expert_rows[{At(samples, i), value}] = {rows.begin() + i * each,
                                                        rows.begin() + (i + 1) * each};
          }
        }
      }
    }
  }

  // Takes the sample's gradient out of the state.
  void SetApart(OracleCall& out) {
    const auto divisor = static_cast<float>(GradDivisor(spec_));
    auto& grads = out.sample_grads.emplace_back();
    for (OracleParam& param : state_.params) {
      std::vector<float>& apart = grads[param.name];
      for (float& value : param.grad) apart.push_back(value / divisor);
      std::vector<float>& sum = sums_[param.name];
      sum.resize(param.grad.size());
      std::transform(sum.begin(), sum.end(), param.grad.begin(), sum.begin(), std::plus<>());
      std::fill(param.grad.begin(), param.grad.end(), 0.0f);
    }
  }

  void Train(int64_t step, OracleCall& out) {
    trainer_.ZeroGrads(state_);
    sums_.clear();
    RunBatch(step, true, out);
    for (OracleParam& param : state_.params) {
      if (options_.keep_samples) param.grad = sums_[param.name];
    }
    const auto divisor = static_cast<float>(GradDivisor(spec_));
    for (OracleParam& param : state_.params) {
      if (param.frozen) continue;
      for (float& value : param.grad) value = value / divisor;
      out.grads[param.name] = param.grad;
    }
    const GradFacts facts = Measure(state_);
    out.grad_norm = facts.norm;
    out.zero_count = facts.zeros;
    grad_zeros_ += facts.zeros;
    grad_elements_ += facts.elements;
    out.updated = !SkipsStep(rule_, facts.norm);
    const double norm = call_ == options_.clip_call ? options_.clip_norm : facts.norm;
    if (out.updated) Update(rule_, norm, state_);
    out.weights = WeightsOf(state_);
  }

  const InstanceSpec spec_;
  const Model model_;
  const Network layout_;
  Probe probe_;
  Trainer trainer_;
  const std::vector<int32_t> ep_ranks_;
  const std::vector<std::vector<int64_t>> sequences_;
  const UpdateRule rule_;
  const OracleOptions options_;
  int32_t call_ = 0;
  std::map<std::string, std::vector<float>> sums_;  // of the samples that were set apart
  OracleState state_, saved_;
  double grad_zeros_ = 0, grad_elements_ = 0;
};

}  // namespace

OracleRun RunOracle(const Case& c, size_t instance, const OracleOptions& options) {
  if (!c.illegal.empty()) throw std::invalid_argument("no engine runs this case: " + c.illegal);
  OracleOptions of_leg;  // what else is asked is asked of the last leg
  of_leg.check_bounds = options.check_bounds;
  of_leg.bf16_node_grads = options.bf16_node_grads;
  OracleState saved;
  for (const Case& leg : c.before) {
    Oracle oracle(leg, instance, of_leg, std::move(saved));
    oracle.Run();
    saved = oracle.TakeSaved();
  }
  return Oracle(c, instance, options, std::move(saved)).Run();
}

}  // namespace shardproof
