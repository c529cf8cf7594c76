#include "conformance/checks/numerics/as_if.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "conformance/checks/base/node_grads.h"
#include "conformance/checks/numerics/factors.h"
#include "conformance/checks/numerics/wrong_values.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

constexpr const char* kNotClipped = "not clipped";
using Tensors = std::map<std::string, std::vector<float>>;

// The published elements are those of values; only: those that this rank published first.
bool Equals(const Assembled& seen, const std::vector<float>& values, int32_t only = -1) {
  for (size_t i = 0; i < values.size() && i < seen.values.size(); ++i) {
    if (seen.from[i] == Assembled::kNobody || (only >= 0 && seen.from[i] != only)) continue;
    if (!SameValue(seen.values[i], CastTo(values[i], seen.dtype))) return false;
  }
  return true;
}

class AsIf {
 public:
  AsIf(const Analysis& a, int instance, const Published& params, const Published& grads)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        oracle_(*At(a.run().oracles, instance)),
        params_(params),
        grads_(grads) {}

  std::optional<Mistake> First() {
    const auto n = std::min(Length(oracle_.calls), Length(facts_.calls()));
    for (int32_t call = 0; call < n; ++call) {
      const OracleCall& want = At(oracle_.calls, call);
      const std::set<int32_t> grads = Wrong(grads_, call, want.grads);
      if (!grads.empty()) return OfGradients(call, grads);
      const std::set<int32_t> params = Wrong(params_, call, want.weights);
      if (!params.empty()) return want.letter == 't' ? OfUpdate(call, params) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  const InstanceSpec& spec() const { return facts_.spec(); }
  const std::string& NameOf(int32_t key) const { return facts_.ByKey(key).name; }

  std::set<int32_t> Wrong(const Published& published, int32_t call, const Tensors& want) const {
    std::set<int32_t> wrong;
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const Assembled* seen = published.Find(call, key);
      const auto expected = want.find(NameOf(key));
      if (seen == nullptr || expected == want.end()) continue;
      if (!Equals(*seen, expected->second)) wrong.insert(key);
    }
    return wrong;
  }

  OracleOptions OptionsFor(int32_t call) const {
    OracleOptions options;
    options.last_call = call;
    options.bf16_node_grads =
        NodesAddInBf16(*a_.run().spec, static_cast<size_t>(instance_), a_.traces());
    return options;
  }
  OracleRun Run(const OracleOptions& options) const {
    return RunOracle(*a_.run().spec, static_cast<size_t>(instance_), options);
  }

  // Rows of routed experts come from samples of other ranks, and samples that are parts of one
  // sequence are not computed one by one: what a rank adds up is no sample.
  bool BySample(int32_t key) const {
    if (spec().model.cp > 1) return false;
    return !facts_.ByKey(key).expert || spec().model.moe.experts == 0;
  }

  std::optional<Mistake> OfGradients(int32_t call, const std::set<int32_t>& wrong) const {
    OracleOptions options = OptionsFor(call);
    options.keep_samples = true;
    const OracleRun run = Run(options);
    const OracleCall& now = run.calls.back();
    if (Length(run.calls) != call + 1 || now.grads != At(oracle_.calls, call).grads)
      return std::nullopt;
    std::set<int32_t> dense;
    std::copy_if(wrong.begin(), wrong.end(), std::inserter(dense, dense.end()),
                 [&](int32_t key) { return BySample(key); });
    Mistake mistake;
    mistake.call = call;
    mistake.gradients = true;
    if (dense.empty() || spec().microbatches < 1) return std::nullopt;
    if (Rounded(now, dense, mistake) || Scaled(now, dense, mistake)) return mistake;
    return std::nullopt;
  }

  // By (microbatch, data-parallel rank).
  std::vector<const std::vector<float>*> SamplesOf(const OracleCall& call, int32_t key) const {
    std::vector<const std::vector<float>*> samples;
    for (const Tensors& sample : call.sample_grads) samples.push_back(&sample.at(NameOf(key)));
    return samples;
  }

  bool Rounded(const OracleCall& now, const std::set<int32_t>& wrong, Mistake& mistake) const {
    if (spec().microbatches < 2 || spec().main_grads_dtype == KnobDtype::kBf16) return false;
    for (const SumIn how : {SumIn::kBf16OnEachRank, SumIn::kBf16AfterReduction,
                            SumIn::kBf16BeforeReduction, SumIn::kBf16AtTheEnd}) {
      const bool all = std::all_of(wrong.begin(), wrong.end(), [&](int32_t key) {
        return Equals(*grads_.Find(mistake.call, key),
                      SumOfSamples(SamplesOf(now, key), DpCpSize(spec()), how));
      });
      if (!all) continue;
      mistake.keys = wrong;
      mistake.requirement = "FS-21";
      mistake.what = "it equals the sum of the microbatches " + std::string(SumText(how)) +
                     ", but main_grads_dtype is " + spec().main_grads_dtype.Text();
      return true;
    }
    return false;
  }

  bool Scaled(const OracleCall& now, const std::set<int32_t>& wrong, Mistake& mistake) const {
    for (const int32_t key : wrong) {
      const Factors factors =
          FindFactors(*grads_.Find(mistake.call, key), SamplesOf(now, key), DpCpSize(spec()));
      if (factors.what.empty()) continue;
      if (mistake.what.empty()) {
        mistake.what = factors.what;
        mistake.requirement = factors.whole ? "" : "FS-17";
      }
      if (mistake.what == factors.what) mistake.keys.insert(key);
    }
    return !mistake.keys.empty();
  }

  std::optional<Mistake> OfUpdate(int32_t call, const std::set<int32_t>& wrong) const {
    Mistake mistake;
    mistake.call = call;
    mistake.keys = wrong;
    if (!Right(Run(OptionsFor(call)), call)) return std::nullopt;
    if (EvalsCounted(mistake) || ClippedByAnother(mistake)) return mistake;
    return std::nullopt;
  }
  bool Right(const OracleRun& run, int32_t call) const {
    return Length(run.calls) == call + 1 &&
           run.calls.back().weights == At(oracle_.calls, call).weights;
  }

  bool EvalsCounted(Mistake& mistake) const {
    int32_t eval = -1;
    for (int32_t call = 0; call < mistake.call; ++call) {
      if (facts_.CallAt(call).letter == 'e') eval = call;
    }
    if (eval < 0) return false;
    OracleOptions options = OptionsFor(mistake.call);
    options.evals_count = true;
    const OracleRun run = Run(options);
    if (!Wrong(params_, mistake.call, run.calls.back().weights).empty()) return false;
    mistake.requirement = "FS-13";
    mistake.what = "it equals what the optimizer gives if " +
                   a_.CallName(AnyRank(), instance_, eval) +
                   " counted as an update: an evaluation leaves the optimizer's step count alone";
    return true;
  }

  struct Norm {
    std::string whose;
    double value = 0;
    int32_t rank = -1;  // whose elements are clipped by it; -1: any
  };

  // Every element that is wrong is right if it was clipped by one of these norms.
  bool ClippedByAnother(Mistake& mistake) const {
    if (spec().clip_grad <= 0) return false;
    std::set<std::string> used;
    std::set<std::pair<int32_t, int32_t>> open;  // key, rank
    for (const int32_t key : mistake.keys) {
      const Assembled& seen = *params_.Find(mistake.call, key);
      const auto& want = At(oracle_.calls, mistake.call).weights.at(NameOf(key));
      for (const int32_t rank : std::set<int32_t>(seen.from.begin(), seen.from.end())) {
        if (rank != Assembled::kNobody && !Equals(seen, want, rank)) open.insert({key, rank});
      }
    }
    for (const Norm& norm : Norms(mistake.call)) {
      OracleOptions options = OptionsFor(mistake.call);
      options.clip_call = mistake.call;
      options.clip_norm = norm.value;
      const OracleRun run = Run(options);
      const size_t before = open.size();
      std::erase_if(open, [&](const std::pair<int32_t, int32_t>& piece) {
        const auto& [key, rank] = piece;
        return (norm.rank < 0 || norm.rank == rank) &&
               Equals(*params_.Find(mistake.call, key), run.calls.back().weights.at(NameOf(key)),
                      rank);
      });
      if (open.size() < before) used.insert(norm.whose);
      if (open.empty()) break;
    }
    if (!open.empty()) return false;
    const bool clipped = used.size() > 1 || !used.contains(kNotClipped);
    mistake.requirement = clipped ? "FS-25" : "FS-24";
    mistake.what = "it equals an update with gradients that were";
    for (const std::string& whose : used)
      mistake.what += (whose == *used.begin() ? " " : ", or ") + whose;
    mistake.what +=
        ": clip by the norm of all, " + FactorText(At(oracle_.calls, mistake.call).grad_norm);
    return true;
  }

  // Norms by which engines clip by mistake: of what a rank itself has, of some of the parameters.
  std::vector<Norm> Norms(int32_t call) const {
    std::map<int32_t, double> of_rank;
    double dense = 0, experts = 0;
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const Assembled* seen = grads_.Find(call, key);
      if (seen == nullptr || facts_.ByKey(key).key != key) continue;
      for (size_t i = 0; i < seen->values.size(); ++i) {
        const double square = seen->values[i] * seen->values[i];
        (facts_.ByKey(key).expert ? experts : dense) += square;
        if (seen->from[i] != Assembled::kNobody) of_rank[seen->from[i]] += square;
      }
    }
    std::vector<Norm> norms = {{kNotClipped, 0, -1}};
    for (const auto& [rank, squares] : of_rank) {
      norms.push_back({"clipped by the norm of what rank " + std::to_string(rank) +
                           " alone holds, " + FactorText(std::sqrt(squares)),
                       std::sqrt(squares), rank});
    }
    if (experts == 0) return norms;
    norms.push_back({"clipped by the norm of the dense parameters alone", std::sqrt(dense), -1});
    norms.push_back({"clipped by the norm of the experts alone", std::sqrt(experts), -1});
    return norms;
  }

  int32_t AnyRank() const {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (facts_.InGrid(rank)) return rank;
    }
    return 0;
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  const OracleRun& oracle_;
  const Published &params_, &grads_;
};

}  // namespace

std::optional<Mistake> FirstMistake(const Analysis& a, int instance, const Published& params,
                                    const Published& grads) {
  if (a.run().spec == nullptr || !params.has_values() || !grads.has_values()) return std::nullopt;
  return AsIf(a, instance, params, grads).First();
}

}  // namespace shardproof
