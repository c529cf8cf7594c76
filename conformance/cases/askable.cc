#include "conformance/cases/askable.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "conformance/cases/grid.h"
#include "conformance/cases/real_text.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

std::string Says(const std::string& field, const std::string& value, const std::string& why) {
  return field + " = " + value + ": " + why;
}
std::string Says(const std::string& field, int64_t value, const std::string& why) {
  return Says(field, std::to_string(value), why);
}

bool Among(const std::string& word, const std::set<std::string>& words) {
  return words.count(word) != 0;
}

std::string WordProblem(const MoeConfig& moe) {
  if (!Among(moe.layers, {"all", "odd", "even", "last", "first"}))
    return Says("moelayers", moe.layers, "use all, odd, even, last or first");
  if (!Among(moe.score, {"softmax", "presoftmax", "sigmoid"}))
    return Says("score", moe.score, "use softmax, presoftmax or sigmoid");
  if (!Among(moe.skew, {"", "one", "empty", "rank"}))
    return Says("skew", moe.skew, "use one, empty or rank");
  return "";
}

// Choices within groups of experts: there are enough to choose from.
std::string ChoiceProblem(const MoeConfig& moe) {
  if (moe.top_k < 1 || moe.top_k > moe.experts)
    return Says("top", moe.top_k, "1 to " + std::to_string(moe.experts) + " experts can be chosen");
  if (moe.groups < 1 || moe.experts % moe.groups != 0)
    return Says("groups", moe.groups, "does not divide moe = " + std::to_string(moe.experts));
  if (moe.top_groups < 1 || moe.top_groups > moe.groups || moe.top_k % moe.top_groups != 0)
    return Says("topgroups", moe.top_groups,
                "at most groups = " + std::to_string(moe.groups) +
                    ", and a divisor of top = " + std::to_string(moe.top_k));
  if (moe.top_groups * (moe.experts / moe.groups) < moe.top_k)
    return Says(
        "top", moe.top_k,
        "more than the experts of topgroups = " + std::to_string(moe.top_groups) + " groups");
  return "";
}

// Experts that nobody may choose leave enough of the others: one of them, or, so that routing is
// the same for every ep, the last half of them.
std::string SkewProblem(const MoeConfig& moe, int32_t ep) {
  const int32_t choices = moe.top_groups * (moe.experts / moe.groups);
  if (moe.skew == "empty" && choices <= moe.top_k)
    return Says("skew", moe.skew, "leaves fewer experts than top = " + std::to_string(moe.top_k));
  if (moe.skew != "rank") return "";
  if (ep < 2) return Says("skew", moe.skew, "leaves no rank, ep is " + std::to_string(ep));
  const bool groups_left =
      moe.groups == 1 || (moe.groups % 2 == 0 && 2 * moe.top_groups <= moe.groups);
  if (moe.experts % 2 == 0 && 2 * moe.top_k <= moe.experts && groups_left) return "";
  return Says("skew", moe.skew,
              "half of moe = " + std::to_string(moe.experts) + " experts in " +
                  std::to_string(moe.groups) + " groups are too few");
}

std::string OptionProblem(const ModelConfig& model) {
  if (model.moe.capacity_percent < 0 || model.moe.capacity_percent > 100 * model.moe.experts)
    return Says("cap", model.moe.capacity_percent,
                "a percentage of at most 100 * moe, or 0 for no capacity");
  if (model.moe.pad && model.moe.capacity_percent == 0)
    return "pad without cap: there is no capacity to pad to";
  if (model.moe.layers == "odd" && model.layers < 2 && !model.mtp)
    return Says("moelayers", model.moe.layers,
                "layers = " + std::to_string(model.layers) + " has no such layer");
  if (model.experts) return "moe with experts: a layer has experts of one kind";
  if (model.reused) return "moe with reused: a layer that runs twice has no experts";
  if (!model.unused.empty()) return "moe with unused = " + model.unused + ": no layer is left out";
  if (model.odd_sizes) return "moe with odd: sizes are the usual ones";
  return "";
}

bool PowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

const GroupFamily* Find(const std::vector<GroupFamily>& families, const std::string& name) {
  const auto at = std::find_if(families.begin(), families.end(),
                               [&](const GroupFamily& family) { return family.name == name; });
  return at == families.end() ? nullptr : &*at;
}

// Samples (indices in dp_cp), or with sp their parts (dp_cp index * tp + tp index), that the ranks
// of this expt_dp list hold together with their ep lists.
std::vector<int32_t> SamplesOf(const RankList& list, const FamilyIndex& ep,
                               const FamilyIndex& dp_cp, const FamilyIndex* tp, int32_t parts) {
  std::vector<int32_t> samples;
  for (int32_t rank : list) {
    if (ep.List(rank) == nullptr) continue;
    for (int32_t peer : *ep.List(rank)) {
      const int32_t part = tp == nullptr ? 0 : tp->Index(peer);
      samples.push_back(dp_cp.Index(peer) * parts + part);
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

}  // namespace

std::string MoeProblem(const InstanceSpec& spec) {
  const MoeConfig& moe = spec.model.moe;
  if (moe.experts == 0) {
    if (spec.model.mtp) return "mtp without moe: the layer that predicts further has experts";
    if (!(moe == MoeConfig{})) return "options of experts without moe: there are none";
    if (spec.overlap_moe) return "1f1b without moe: there is no all-to-all to hide";
    return "";
  }
  if (moe.experts < 1 || moe.experts > 1024) return Says("moe", moe.experts, "1 to 1024 experts");
  if (spec.ep < 1 || moe.experts % spec.ep != 0)
    return Says("ep", spec.ep, "does not divide moe = " + std::to_string(moe.experts));
  // One after the other: each divides by numbers that those before it have looked at.
  std::string problem = WordProblem(moe);
  if (problem.empty()) problem = ChoiceProblem(moe);
  if (problem.empty()) problem = SkewProblem(moe, spec.ep);
  return problem.empty() ? OptionProblem(spec.model) : problem;
}

std::string PipelineProblem(const InstanceSpec& spec) {
  if (spec.chunks < 1) return Says("vpp", spec.chunks, "a pipeline rank has at least one chunk");
  if (spec.chunks == 1) return "";
  const int32_t stages = spec.chunks * spec.pp;
  if (spec.pp < 2)
    return Says("vpp", spec.chunks, "needs a pipeline, pp is " + std::to_string(spec.pp));
  if (spec.model.layers % stages != 0)
    return Says("layers", spec.model.layers,
                "not divisible by pp * vpp = " + std::to_string(stages) + " stages");
  if (spec.microbatches % spec.pp != 0)
    return Says("k", spec.microbatches, "not divisible by pp = " + std::to_string(spec.pp));
  // One bucket would be of several chunks; parts would be kept for several microbatches.
  if (ShardsGrads(spec) && spec.units.empty())
    return Says("vpp", spec.chunks, "units = none with strategy = " + spec.strategy.Text());
  if (ReshardsToFewer(spec)) {
    return Says("vpp", spec.chunks,
                "reshard_after_forward = " + std::to_string(spec.reshard_after_forward));
  }
  for (const auto& [set, name] : {std::pair{spec.model.tied, "tied"},
                                  {spec.model.mtp, "mtp"},
                                  {spec.model.reused, "reused"},
                                  {spec.model.experts, "experts"},
                                  {!spec.model.unused.empty(), "unused"}}) {
    if (set) return Says("vpp", spec.chunks, std::string("a model in stages is not ") + name);
  }
  return "";
}

int32_t VocabMultiple(const InstanceSpec& spec) {
  return spec.vocab_parallel && spec.model.odd_sizes ? std::max(1, spec.tp) : 1;
}

// vocab: its size, as odd makes it.
std::string VocabularyProblem(const InstanceSpec& spec, int64_t vocab) {
  if (!spec.vocab_parallel) return "";
  if (vocab % spec.tp != 0)
    return Says("tp", spec.tp,
                "does not divide vocab = " + std::to_string(vocab) + ", which splitvocab cuts");
  if (spec.model.mtp) return "splitvocab with mtp: its second loss has a head in one piece";
  if (spec.loss_chunks > 1)
    return Says("loss", spec.loss_chunks, "with splitvocab: a chunk is one head and one loss");
  return "";
}

std::string TensorParallelProblem(const InstanceSpec& spec) {
  if (spec.sequence_parallel && !spec.tensor_parallel)
    return "sp without split: no layer is split over tp, so that there is nothing to gather for";
  if (!spec.tensor_parallel || spec.tp < 1) return "";
  ModelConfig model = spec.model;
  model.tensor_parallel = true;
  model.vocab_multiple = VocabMultiple(spec);
  const Dims dims = DimsOf(model);
  for (const auto& [name, size] : {std::pair{"heads", dims.heads}, {"ffn", dims.ffn}}) {
    if (size % spec.tp != 0)
      return Says("tp", spec.tp,
                  "does not divide " + std::string(name) + " = " + std::to_string(size) +
                      ", which split cuts");
  }
  if (const std::string problem = VocabularyProblem(spec, dims.vocab); !problem.empty())
    return problem;
  if (!spec.sequence_parallel) return "";
  if (model.sequence % spec.tp != 0)
    return Says("tp", spec.tp,
                "does not divide the sequence of " + std::to_string(model.sequence) +
                    " tokens, which sp cuts");
  if (model.experts) return "sp with experts: those without routing read the whole sequence";
  if (model.mtp) return "sp with mtp: its layer reads the whole sequence";
  if (model.moe.experts > 0 && spec.etp != 1)
    return Says("etp", spec.etp, "with sp and moe: experts are whole, so etp is 1");
  return "";
}

std::string ContextParallelProblem(const InstanceSpec& spec) {
  if (!spec.context_parallel) return "";
  if (spec.model.experts) return "ctx with experts: those without routing read whole samples";
  if (spec.model.mtp) return "ctx with mtp: the token after the next is in another part";
  return "";
}

std::string LossChunksProblem(const InstanceSpec& spec) {
  if (spec.loss_chunks <= 1) return "";
  if (spec.model.sequence % spec.loss_chunks != 0)
    return Says("loss", spec.loss_chunks,
                "does not divide the sequence of " + std::to_string(spec.model.sequence) +
                    " tokens: chunks are equal");
  if (spec.chunks > 1)
    return Says("loss", spec.loss_chunks, "with vpp: the loss of a stage is one node");
  if (spec.model.mtp)
    return Says("loss", spec.loss_chunks, "with mtp: its second loss has a head of its own");
  return "";
}

std::string ScheduleProblem(const InstanceSpec& spec) {
  if (spec.fine_grained_gather != 0 && spec.fine_grained_gather != 1)
    return Says("fine", spec.fine_grained_gather, "0 or 1");
  if (std::abs(spec.loss_scale_log2) > 24) return Says("ls", spec.loss_scale_log2, "-24 to 24");
  if (spec.wrong_loss_scale != 0) {
    const std::string text = RealText(spec.wrong_loss_scale);
    if (!std::isfinite(spec.wrong_loss_scale)) return Says("badscale", text, "a finite number");
    if (PowerOfTwo(spec.wrong_loss_scale)) return Says("badscale", text, "a power of two; use ls");
    if (spec.loss_scale_log2 != 0) return Says("badscale", text, "ls is given too");
  }
  if (!spec.cuda_graph.known())
    return Says("graph", spec.cuda_graph.Text(), "use full_iteration or per_layer");
  if (spec.recompute_modules.empty()) return "";
  if (spec.recompute) return "recompute = " + spec.recompute_modules + ": recompute is all of it";
  std::set<std::string> seen;
  std::string rest = spec.recompute_modules + ",";
  for (size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
    const std::string word = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    if (!Among(word, {"norm", "core_attn", "moe"}) || !seen.insert(word).second)
      return Says("recompute", spec.recompute_modules, "use norm, core_attn and moe, each once");
  }
  return "";
}

std::string NanLossProblem(const InstanceSpec& spec) {
  if (!spec.model.nan_loss) return "";
  const std::vector<ScriptCall> calls = ExpandScript(spec);
  const bool trained = std::any_of(calls.begin(), calls.end(), [](const ScriptCall& call) {
    return call.letter == 't' && call.step == 1;
  });
  if (!trained) return Says("do", spec.script, "has no train step 1, in which nanloss is seen");
  if (DpCpSize(spec) * spec.microbatches < 2)
    return "nanloss: a step has one sample, and it is the second one that is not a number";
  if (spec.skip_norm <= 0 && !spec.check_for_nan)
    return "nanloss without skip and without nan: the weights would be NaN from then on";
  if (spec.check_for_nan && !spec.model.unused.empty())
    return "nanloss with unused = " + spec.model.unused + ": some gradients are numbers";
  return "";
}

std::string TokensProblem(const InstanceSpec& spec, int32_t world) {
  if (spec.model.moe.experts == 0) return "";
  const std::vector<GroupFamily> families = GroupFamilies(spec, world);
  const GroupFamily *dp_cp = Find(families, "dp_cp"), *ep = Find(families, "ep"),
                    *expt_dp = Find(families, "expt_dp"), *tp = Find(families, "tp");
  if (dp_cp == nullptr || ep == nullptr || expt_dp == nullptr || tp == nullptr)
    return "there is no grid";
  const int32_t parts = spec.sequence_parallel ? spec.tp : 1;
  std::vector<int32_t> all;
  for (int32_t index = 0; index < DpCpSize(spec) * parts; ++index) all.push_back(index);
  const FamilyIndex ep_of(*ep), dp_cp_of(*dp_cp), tp_of(*tp);
  for (const RankList& list : expt_dp->lists) {
    if (SamplesOf(list, ep_of, dp_cp_of, parts > 1 ? &tp_of : nullptr, parts) == all) continue;
    return "an expt_dp group and its ep groups do not hold each sample once; is etp = " +
           std::string(parts > 1 ? "1?" : "tp? Or sp, with etp = 1?");
  }
  return "";
}

}  // namespace shardproof
