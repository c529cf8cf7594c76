#include "conformance/checks/metamorphic/metamorphic.h"

#include <algorithm>
#include <map>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/base/published.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// Entry calls of one instance that train, by step and how often the step was run (load may run it
// again).
std::vector<int32_t> TrainCalls(const InstanceFacts& facts) {
  std::vector<int32_t> calls;
  for (size_t i = 0; i < facts.calls().size(); ++i) {
    if (facts.calls()[i].letter == 't') calls.push_back(static_cast<int32_t>(i));
  }
  return calls;
}

struct Scalar {
  double value = 0;
  int32_t dtype = 0;
};
// (result, sample or 0) -> value, as all ranks together published it.
std::map<std::pair<int32_t, int64_t>, Scalar> Scalars(const Analysis& a, int instance,
                                                      int32_t call) {
  std::map<std::pair<int32_t, int64_t>, Scalar> all;
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    const Trace& trace = a.trace(rank);
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kPublish || event.instance != instance || event.call != call)
        continue;
      if (event.result < SPF_RESULT_LOSS || event.values < 0) continue;
      const InstanceFacts& facts = a.Facts(size_t(instance));
      const int64_t sample = event.result == SPF_RESULT_LOSS
                                 ? int64_t{event.id} * DpCpSize(facts.spec()) + facts.DataRank(rank)
                                 : 0;
      all[{event.result, sample}] = {At(trace.values, event.values), event.dtype};
    }
  }
  return all;
}

class Comparison {
 public:
  Comparison(const Analysis& a, const Analysis& b, const std::string& requirement)
      : a_(a), b_(b), requirement_(requirement), sink_(result_) {}

  CheckResult Run() {
    if (!a_.has_case() || !b_.has_case()) {
      result_.not_checkable.push_back({requirement_, a_.has_case() ? b_.why() : a_.why()});
      return std::move(result_);
    }
    const size_t n = std::min(a_.n_instances(), b_.n_instances());
    for (size_t i = 0; i < n; ++i) Instance(static_cast<int>(i));
    return std::move(result_);
  }

 private:
  void Instance(int instance) {
    const std::vector<int32_t> of_a = TrainCalls(a_.Facts(size_t(instance)));
    const std::vector<int32_t> of_b = TrainCalls(b_.Facts(size_t(instance)));
    for (const uint8_t result : {uint8_t{SPF_RESULT_PARAM}, uint8_t{SPF_RESULT_GRAD}}) {
      const Published in_a(a_, instance, result), in_b(b_, instance, result);
      if (!in_a.has_values() || !in_b.has_values()) {
        result_.not_checkable.push_back(
            {requirement_, "a trace has no published values: record digests or bytes"});
        return;
      }
      for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i)
        Tensors(instance, in_a, of_a[i], in_b, of_b[i]);
    }
    for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) {
      CompareScalars(instance, of_a[i], of_b[i]);
    }
  }

  void Tensors(int instance, const Published& in_a, int32_t call_a, const Published& in_b,
               int32_t call_b) {
    const InstanceFacts& facts = a_.Facts(size_t(instance));
    for (int32_t key = 0; key < facts.n_keys(); ++key) {
      const Assembled* x = in_a.Find(call_a, key);
      const Assembled* y = in_b.Find(call_b, key);
      if (x == nullptr || y == nullptr || x->values.size() != y->values.size()) continue;
      result_.judged.insert(requirement_);
      for (size_t e = 0; e < x->values.size(); ++e) {
        if (x->from[e] < 0 || y->from[e] < 0 || SameValue(x->values[e], y->values[e])) continue;
        Add(x->from[e], a_.StepOf(x->from[e], instance, call_a),
            facts.ByKey(key).name + "[" + std::to_string(e) + "]",
            ValueText(x->values[e], x->dtype), ValueText(y->values[e], y->dtype));
        break;
      }
    }
  }

  void CompareScalars(int instance, int32_t call_a, int32_t call_b) {
    const auto x = Scalars(a_, instance, call_a), y = Scalars(b_, instance, call_b);
    for (const auto& [what, value] : x) {
      const auto other = y.find(what);
      if (other == y.end()) continue;
      result_.judged.insert(requirement_);
      if (SameValue(value.value, other->second.value)) continue;
      const std::string name = what.first == SPF_RESULT_LOSS
                                   ? "loss of sample " + std::to_string(what.second)
                               : what.first == SPF_RESULT_GRAD_NORM ? "gradient norm"
                                                                    : "number of zeros";
      Add(-1, a_.StepOf(0, instance, call_a), name, ValueText(value.value, value.dtype),
          ValueText(other->second.value, other->second.dtype));
    }
  }

  void Add(int32_t rank, int32_t step, const std::string& what, std::string expected,
           std::string seen) {
    Finding finding;
    finding.requirement = requirement_;
    finding.rank = rank;
    finding.step = step;
    finding.operation = what;
    finding.expected = std::move(expected);
    finding.seen = std::move(seen);
    finding.message = what + " differs between two runs that must agree";
    sink_.Add(std::move(finding));
  }

  const Analysis& a_;
  const Analysis& b_;
  const std::string requirement_;
  CheckResult result_;
  FindingSink sink_;
};

}  // namespace

CheckResult CompareResults(const Run& a, const Run& b, const std::string& requirement) {
  const Analysis of_a(a), of_b(b);
  return Comparison(of_a, of_b, requirement).Run();
}

}  // namespace shardproof
