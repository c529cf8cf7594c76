// Norms and numbers of zeros: what is split counts on every rank of tp, what is whole counts once.
#include <cmath>

#include "conformance/checks/base/published.h"
#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

// Sums over the elements of a gradient: of what each rank of tp holds whole, of the shards of one
// rank, and of all shards.
struct Parts {
  double whole = 0, mine = 0, shards = 0;
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
  Parts PartsOf(int32_t rank, const OracleCall& call, bool squares) const {
    Parts parts;
    for (int32_t key = 0; key < facts_.n_keys(); ++key) {
      const ParamFacts& param = facts_.ByKey(key);
      const auto grad = call.grads.find(param.name);
      if (grad == call.grads.end()) continue;
      double sum = 0;
      for (const float value : grad->second)
        sum += squares ? double{value} * value : (value == 0 ? 1 : 0);
      if (param.name == param.tensor) {
        parts.whole += sum;
      } else {
        parts.shards += sum;
        const int32_t tp = facts_.spec().model.tp;
        if (param.name == ShardName(param.tensor, facts_.Place(rank).tp, tp)) parts.mine += sum;
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
    if (equals(parts.whole + parts.mine)) how = "it has this rank's shards only, not those of tp";
    if (equals(tp * parts.whole + parts.shards))
      how = "what every rank of tp holds whole is in it " + std::to_string(int64_t(tp)) + " times";
    if (equals(tp * (parts.whole + parts.mine))) how = "this rank's part is in it for each rank";
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
