// Norms and numbers of zeros: what is split counts on every rank of tp, what is whole counts once.
#include <cmath>
#include <set>

#include "conformance/checks/base/published.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

// Sums over the elements of a gradient: of what each rank of tp holds whole, of the shards of one
// rank, of all shards, and of experts, which are whole: of all, and by place in tp of those there.
struct Parts {
  double whole = 0, mine = 0, shards = 0, experts = 0;
  double other_ranges = 0;  // of shards: ranges of the vocabulary that this rank lacks
  std::vector<double> experts_of;
};

class Statistics {
 public:
  Statistics(const Analysis& a, int instance, CheckResult& result, FindingSink& sink)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        oracle_(*At(a.run().oracles, instance)),
        result_(result),
        sink_(sink) {}

  void Run() {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      const Trace& trace = a_.trace(rank);
      for (size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        const bool norm = event.result == SPF_RESULT_GRAD_NORM;
        if (event.kind != EventKind::kPublish || event.instance != instance_) continue;
        if (!norm && event.result != SPF_RESULT_ZERO_COUNT) continue;
        if (event.values < 0 || event.call < 0 || event.call >= Length(oracle_.calls)) continue;
        JudgeOne(rank, static_cast<int64_t>(i), norm);
      }
    }
  }

 private:
  // Experts that some rank at this place in tp holds.
  std::set<int32_t> ExpertsAt(int32_t tp) const {
    std::set<int32_t> keys;
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (!facts_.InGrid(rank) || facts_.Place(rank).tp != tp) continue;
      for (int32_t id = 0; id < facts_.n_params(rank); ++id) {
        if (facts_.Param(rank, id).expert) keys.insert(facts_.Param(rank, id).key);
      }
    }
    return keys;
  }

  static bool OfVocabulary(const ParamFacts& param) {
    return param.tensor.starts_with("embedding.") || param.tensor.starts_with("head.");
  }

  Parts PartsOf(int32_t rank, const OracleCall& call, bool squares) const {
    Parts parts;
    std::vector<std::set<int32_t>> experts;
    for (int32_t tp = 0; tp < facts_.spec().model.tp; ++tp) experts.push_back(ExpertsAt(tp));
    parts.experts_of.resize(experts.size());
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const ParamFacts& param = facts_.ByKey(key);
      const auto grad = call.grads.find(param.name);
      if (grad == call.grads.end()) continue;
      double sum = 0;
      for (const float value : grad->second)
        sum += squares ? double{value} * value : (value == 0 ? 1 : 0);
      if (param.expert) {
        parts.experts += sum;
        for (size_t tp = 0; tp < experts.size(); ++tp)
          parts.experts_of[tp] += experts[tp].contains(key) ? sum : 0;
      } else if (param.name == param.tensor) {
        parts.whole += sum;
      } else {
        parts.shards += sum;
        const int32_t tp = facts_.spec().model.tp;
        const bool mine = param.name == ShardName(param.tensor, facts_.Place(rank).tp, tp);
        if (mine) parts.mine += sum;
        if (!mine && OfVocabulary(param)) parts.other_ranges += sum;
      }
    }
    return parts;
  }

  void JudgeOne(int32_t rank, int64_t index, bool norm) {
    const Trace& trace = a_.trace(rank);
    const Event& event = At(trace.events, index);
    const OracleCall& call = At(oracle_.calls, event.call);
    const double seen = At(trace.values, event.values);
    const double want = norm ? call.grad_norm : call.zero_count;
    if (SameValue(seen, want)) return Judge(result_, {"TP-06"});
    const Parts parts = PartsOf(rank, call, norm);
    const double tp = facts_.spec().model.tp;
    const auto equals = [&](double sum) {
      return std::abs(seen - (norm ? std::sqrt(sum) : sum)) <= 1e-9 * std::abs(seen);
    };
    std::string how;
    for (const double of_place : parts.experts_of) {
      if (of_place != parts.experts && equals(parts.whole + parts.shards + of_place))
        how = "it has experts of one rank of tp only, where each rank holds others";
    }
    if (parts.other_ranges > 0 &&
        equals(parts.whole + parts.shards - parts.other_ranges + parts.experts))
      how = "it has this rank's range of the vocabulary only, not those of tp";
    if (equals(parts.whole + parts.mine + parts.experts))
      how = "it has this rank's shards only, not those of tp";
    for (const double experts : {parts.experts, tp * parts.experts}) {
      if (equals(tp * parts.whole + parts.shards + experts))
        how =
            "what every rank of tp holds whole is in it " + std::to_string(int64_t(tp)) + " times";
      if (equals(tp * (parts.whole + parts.mine) + experts))
        how = "this rank's part is in it for each rank";
    }
    if (how.empty()) return;  // not a matter of tp: FS-25 tells
    Judge(result_, {"TP-06"});
    sink_.Add(a_.At("TP-06", rank, index), ValueText(want, SPF_F64), ValueText(seen, SPF_F64),
              std::string(norm ? "the gradient norm" : "the number of zeros") + ": " + how);
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  const OracleRun& oracle_;
  CheckResult& result_;
  FindingSink& sink_;
};

}  // namespace

CheckResult CheckTpStatistics(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances() && i < a.run().oracles.size(); ++i) {
    if (IsSplit(a.Facts(i))) Statistics(a, static_cast<int>(i), result, sink).Run();
  }
  return result;
}

}  // namespace shardproof
