// Published parameters and gradients against the oracle.
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/cases/real_text.h"
#include "conformance/checks/base/published.h"
#include "conformance/checks/numerics/as_if.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/numerics/rank_publishes.h"
#include "conformance/checks/numerics/update_bound.h"
#include "conformance/checks/numerics/wrong_values.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

class Judging {
 public:
  Judging(const Analysis& a, int instance, CheckResult& result)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        oracle_(*At(a.run().oracles, instance)),
        params_(a, instance, SPF_RESULT_PARAM),
        grads_(a, instance, SPF_RESULT_GRAD),
        result_(result),
        sink_(result) {}

  void Run() {
    if (!a_.bounded_updates()) mistake_ = FirstMistake(a_, instance_, params_, grads_);
    if (mistake_ && !mistake_->requirement.empty()) Judge(result_, {mistake_->requirement.c_str()});
    const auto n = static_cast<int32_t>(std::min(oracle_.calls.size(), facts_.calls().size()));
    for (int32_t call = 0; call < n; ++call) {
      const OracleCall& want = At(oracle_.calls, call);
      JudgeParams(call, want);
      if (want.letter == 't') JudgeGrads(call, want);
    }
    JudgeRankPublishes(a_, instance_, oracle_, params_, sink_);
  }

 private:
  // The entry call gives parameters values that are to be published.
  bool Changes(const OracleCall& want) const {
    if (want.letter == 'c') return !InitsLater(facts_.spec());  // else FS-48 speaks of create
    return want.letter == 'l' || (want.letter == 't' && want.updated);
  }

  void JudgeParams(int32_t call, const OracleCall& want) {
    if (!Changes(want)) {
      if (want.letter == 't') JudgeSkipped(call, want);
      return;
    }
    if (want.letter == 't' && SkippedByMistake(call, want)) return;
    const char* equal = want.letter == 'l' ? "FS-23" : "FS-24";
    Judge(result_, {equal, "FS-20", "FS-28", "GE-33"});
    bounded_ = want.letter == 't' && a_.bounded_updates();
    if (bounded_) TellBound();
    const bool complete = CallCompleted(a_, instance_, call);
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const ParamFacts& param = facts_.ByKey(key);
      const auto expected = want.weights.find(param.name);
      if (param.key != key || expected == want.weights.end()) continue;
      const Assembled* seen = params_.Find(call, key);
      if (complete && (want.letter != 't' || !param.frozen))
        JudgeCoverage("FS-28", call, param, seen, "value");
      if (seen == nullptr) continue;
      JudgeConflict(call, param, *seen);
      if (params_.has_values())
        JudgeValues(equal, call, param, *seen, expected->second, "published value");
    }
    bounded_ = false;
  }

  void TellBound() {
    ++updates_;
    if (updates_ > 1) return;
    result_.not_checkable.push_back(
        {"FS-24",
         "the trace says that its optimizer rounds its own way: parameters after a train step are "
         "judged within a bound, gradients bit for bit",
         NotCheckable::Kind::kBounded});
  }

  bool Same(double seen, const std::vector<float>* before, const std::vector<float>& expected,
            size_t i, int32_t dtype) const {
    if (SameValue(seen, CastTo(expected[i], dtype))) return true;
    if (before == nullptr || dtype != SPF_F32) return false;
    const double most = UpdateBound((*before)[i], expected[i], facts_.spec().lr, updates_);
    return std::fabs(seen - expected[i]) <= most;  // false for NaN
  }

  // Of the last entry call before that has some: create has.
  const std::map<std::string, std::vector<float>>& WeightsBefore(int32_t call) const {
    int32_t last = call - 1;
    while (At(oracle_.calls, last).weights.empty()) --last;
    return At(oracle_.calls, last).weights;
  }

  // The optimizer was to leave everything alone.
  void JudgeSkipped(int32_t call, const OracleCall& want) {
    const bool threshold = facts_.spec().skip_norm > 0;
    Judge(result_, {"GE-33"});
    if (threshold) Judge(result_, {"GE-34"});
    if (!params_.AnyIn(call)) return;
    for (int32_t key = 0; threshold && params_.has_values() && key < facts_.n_keys(); ++key) {
      const ParamFacts& param = facts_.ByKey(key);
      const Assembled* seen = params_.Find(call, key);
      const auto before = want.weights.find(param.name);
      if (seen == nullptr || before == want.weights.end() || Equal(*seen, before->second)) continue;
      const int32_t rank = FirstRank(*seen);
      Add("GE-34", call, rank, EventOf(call, param, rank, false), "no change: the step is skipped",
          param.name + " changes",
          NormText(want) + " the step must be skipped, but parameters are updated");
      return;
    }
    Add("GE-33", call, -1, -1, "no published parameter: the step is skipped",
        "published parameters",
        "the step should have left the parameters alone, but parameters are published");
  }

  // With a threshold: the step was to update, and nothing is published, or what was there before.
  bool SkippedByMistake(int32_t call, const OracleCall& want) {
    if (facts_.spec().skip_norm <= 0) return false;
    Judge(result_, {"GE-34"});
    if (!CallCompleted(a_, instance_, call)) return false;
    const bool any = params_.AnyIn(call);
    if (any && (!params_.has_values() || !AllAsBefore(call, want))) return false;
    Add("GE-34", call, -1, -1, "updated parameters",
        any ? "the parameters of before" : "none published",
        NormText(want) + " the step must update, but it is skipped");
    return true;
  }

  bool AllAsBefore(int32_t call, const OracleCall& want) const {
    const auto& weights = WeightsBefore(call);
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const Assembled* seen = params_.Find(call, key);
      const auto before = weights.find(facts_.ByKey(key).name);
      if (seen != nullptr && before != weights.end() && !Equal(*seen, before->second)) return false;
    }
    return want.weights != weights;
  }

  std::string NormText(const OracleCall& want) const {
    const double threshold = facts_.spec().skip_norm;
    const bool number = !std::isnan(want.grad_norm);
    return "the gradient norm " + (number ? RealText(want.grad_norm) : std::string("NaN")) +
           (number && want.grad_norm <= threshold ? " is not above" : " is above") +
           " grad_norm_skip_threshold = " + RealText(threshold) +
           (number ? ":" : ", as everything that is no number is:");
  }

  // What may be wrong after a skipped step, where the values themselves say nothing.
  std::string AfterSkipped(int32_t call) const {
    for (int32_t earlier = call - 1; earlier > 0; --earlier) {
      const OracleCall& was = At(oracle_.calls, earlier);
      if (was.letter == 'c' || was.letter == 'l') return "";
      if (was.letter == 't' && !was.updated) {
        return a_.CallName(AnyRank(), instance_, earlier) +
               " is skipped: state and step count stay as they were";
      }
    }
    return "";
  }

  void JudgeGrads(int32_t call, const OracleCall& want) {
    Judge(result_, {"FS-15", "FS-17", "FS-34", "GE-31"});
    const bool complete = CallCompleted(a_, instance_, call);
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const ParamFacts& param = facts_.ByKey(key);
      if (param.key != key) continue;
      const Assembled* seen = grads_.Find(call, key);
      if (param.frozen) {
        if (seen != nullptr) {
          Add("FS-34", call, seen->from.empty() ? -1 : FirstRank(*seen), -1, "no gradient",
              "a published gradient", param.name + " is frozen, but a gradient of it is published");
        }
        continue;
      }
      const auto expected = want.grads.find(param.name);
      if (expected == want.grads.end()) continue;
      if (param.expert) Judge(result_, {"FS-16"});
      if (complete) JudgeCoverage("GE-31", call, param, seen, "gradient");
      if (seen == nullptr || !grads_.has_values()) continue;
      JudgeConflict(call, param, *seen);
      const char* equal = param.expert ? "FS-16" : "FS-15";
      JudgeValues(equal, call, param, *seen, expected->second, "gradient");
    }
  }

  static int32_t FirstRank(const Assembled& seen) {
    for (const int32_t rank : seen.from) {
      if (rank != Assembled::kNobody) return rank;
    }
    return -1;
  }

  void JudgeCoverage(const char* requirement, int32_t call, const ParamFacts& param,
                     const Assembled* seen, const char* what) {
    const int64_t missing = seen == nullptr ? 0 : seen->FirstMissing();
    if (missing < 0 || param.numel == 0) return;
    Add(requirement, call, -1, -1,
        "all " + std::to_string(param.numel) + " elements of " + param.name,
        seen == nullptr ? "none" : "element " + std::to_string(missing) + " is missing",
        std::string("no rank publishes the ") + what + " of " + param.name + "[" +
            std::to_string(missing) + "] in " + a_.CallName(AnyRank(), instance_, call));
  }

  void JudgeConflict(int32_t call, const ParamFacts& param, const Assembled& seen) {
    const Assembled::Conflict& conflict = seen.conflict;
    if (conflict.element < 0) return;
    Add("FS-20", call, conflict.rank, conflict.event,
        ValueText(conflict.other_value, seen.dtype) + ", as on rank " +
            std::to_string(conflict.other),
        ValueText(conflict.value, seen.dtype),
        param.name + "[" + std::to_string(conflict.element) +
            "] differs between ranks that publish it");
  }

  void JudgeValues(const char* requirement, int32_t call, const ParamFacts& param,
                   const Assembled& seen, const std::vector<float>& expected, const char* what) {
    const std::vector<float>* before =
        bounded_ ? &WeightsBefore(call).at(param.name) : nullptr;  // judged within a bound
    int64_t first = -1, wrong = 0, compared = 0;
    for (size_t i = 0; i < expected.size() && i < seen.values.size(); ++i) {
      if (seen.from[i] == Assembled::kNobody) continue;
      ++compared;
      if (Same(seen.values[i], before, expected, i, seen.dtype)) continue;
      if (first < 0) first = static_cast<int64_t>(i);
      ++wrong;
    }
    if (wrong == 0) return;
    const auto at = static_cast<size_t>(first);
    std::string diagnosis = Diagnose(call, param, seen, expected);
    const bool gradient = std::string_view(what) == "gradient";
    if (gradient && diagnosis.starts_with("every element")) requirement = "FS-17";
    if (mistake_ && mistake_->call == call && mistake_->gradients == gradient &&
        mistake_->keys.contains(param.key)) {
      if (!mistake_->requirement.empty()) requirement = mistake_->requirement.c_str();
      diagnosis = mistake_->what;
    }
    Add(requirement, call, seen.from[at], EventOf(call, param, seen.from[at], gradient),
        ValueText(CastTo(expected[at], seen.dtype), seen.dtype),
        ValueText(seen.values[at], seen.dtype),
        std::string(what) + " of " + param.name + " differs in " + std::to_string(wrong) + " of " +
            std::to_string(compared) + " elements, first in [" + std::to_string(first) + "]" +
            (diagnosis.empty() ? "" : ": " + diagnosis));
  }

  std::string Diagnose(int32_t call, const ParamFacts& param, const Assembled& seen,
                       const std::vector<float>& expected) const {
    if (const std::string nans = NotNumbers(seen, expected); !nans.empty()) return nans;
    for (int32_t earlier = call - 1; earlier >= 0; --earlier) {
      const auto& weights = At(oracle_.calls, earlier).weights;
      const auto before = weights.find(param.name);
      if (before != weights.end() && before->second != expected && Equal(seen, before->second)) {
        return "stale: it equals the value of " + a_.CallName(AnyRank(), instance_, earlier);
      }
    }
    const std::optional<double> common = CommonFactor(seen, expected);
    if (common && *common == 0) return "all of it is zero";
    if (common && *common != 1) {
      return "every element is " + FactorText(*common) +
             " times what is expected: check scale and divisor";
    }
    return AfterSkipped(call);
  }

  static bool Equal(const Assembled& seen, const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (seen.from[i] != Assembled::kNobody &&
          !SameValue(seen.values[i], CastTo(values[i], seen.dtype)))
        return false;
    }
    return true;
  }

  int32_t AnyRank() const {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (facts_.InGrid(rank)) return rank;
    }
    return 0;
  }

  int64_t EventOf(int32_t call, const ParamFacts& param, int32_t rank, bool gradient) const {
    if (rank < 0) return -1;
    const auto& events = a_.trace(rank).events;
    for (size_t i = 0; i < events.size(); ++i) {
      const Event& event = events[i];
      if (event.kind == EventKind::kPublish && event.instance == instance_ && event.call == call &&
          event.result == (gradient ? SPF_RESULT_GRAD : SPF_RESULT_PARAM) &&
          facts_.Param(rank, event.id).key == param.key) {
        return static_cast<int64_t>(i);
      }
    }
    return -1;
  }

  void Add(const char* requirement, int32_t call, int32_t rank, int64_t event, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(rank >= 0 && event >= 0 ? a_.At(requirement, rank, event)
                                      : a_.AtCall(requirement, rank, instance_, call, AnyRank()),
              std::move(expected), std::move(seen), std::move(message));
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  const OracleRun& oracle_;
  Published params_, grads_;
  std::optional<Mistake> mistake_;
  bool bounded_ =
      false;         // the call that is judged updates, with an optimizer that rounds its own way
  int updates_ = 0;  // with such an optimizer
  CheckResult& result_;
  FindingSink sink_;
};

}  // namespace

CheckResult CheckPublished(const Analysis& a) {
  CheckResult result;
  for (size_t i = 0; i < a.n_instances(); ++i) Judging(a, static_cast<int>(i), result).Run();
  return result;
}

}  // namespace shardproof
