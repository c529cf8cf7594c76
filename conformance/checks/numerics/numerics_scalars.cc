// Samples, losses, gradient norms, numbers of zeros.
#include <cmath>
#include <map>

#include "conformance/checks/base/published.h"
#include "conformance/checks/numerics/numerics.h"
#include "conformance/checks/numerics/wrong_values.h"
#include "conformance/common/at.h"
#include "conformance/oracle/oracle.h"

namespace shardproof {

namespace {

class Scalars {
 public:
  Scalars(const Analysis& a, int instance, CheckResult& result)
      : a_(a),
        instance_(instance),
        facts_(a.Facts(size_t(instance))),
        oracle_(*At(a.run().oracles, instance)),
        result_(result),
        sink_(result) {
    for (int32_t rank = 0; rank < a.ranks(); ++rank) Collect(rank);
  }

  void Run() {
    const auto n = static_cast<int32_t>(std::min(oracle_.calls.size(), facts_.calls().size()));
    for (int32_t call = 0; call < n; ++call) {
      const OracleCall& want = At(oracle_.calls, call);
      if (want.letter != 't' && want.letter != 'e') continue;
      const bool complete = CallCompleted(a_, instance_, call);
      for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
        if (!facts_.InGrid(rank)) continue;
        JudgeSamples(rank, call, complete);
        JudgeLosses(rank, call, want, complete);
      }
      if (want.letter != 't') continue;
      const InstanceSpec& spec = facts_.spec();
      const bool norm = spec.grad_norm || spec.clip_grad > 0 || spec.skip_norm > 0;
      JudgeStatistic(call, &OfCall::norms, norm, want.grad_norm, complete, "gradient norm");
      JudgeStatistic(call, &OfCall::zero_counts, spec.zero_count, want.zero_count, complete,
                     "number of zeros");
    }
  }

 private:
  struct OfCall {
    std::map<int32_t, std::vector<std::pair<int64_t, int64_t>>>
        samples;                                     // microbatch -> (sample, event)
    std::map<int32_t, std::vector<int64_t>> losses;  // microbatch -> events
    std::vector<int64_t> norms, zero_counts;         // events
  };

  void Collect(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    auto& calls = of_rank_[rank];
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.instance != instance_) continue;
      const auto index = static_cast<int64_t>(i);
      OfCall& of = calls[event.call];
      if (event.kind == EventKind::kCompute && event.phase == SPF_FWD && event.id >= 0 &&
          event.id < facts_.node_count(rank) &&
          facts_.Node(event.id, rank).kind == SPF_NODE_INPUT && !event.flag) {
        of.samples[event.microbatch].emplace_back(event.sample, index);
      }
      if (event.kind != EventKind::kPublish) continue;
      if (event.result == SPF_RESULT_LOSS) of.losses[event.id].push_back(index);
      if (event.result == SPF_RESULT_GRAD_NORM) of.norms.push_back(index);
      if (event.result == SPF_RESULT_ZERO_COUNT) of.zero_counts.push_back(index);
    }
  }

  int64_t SampleOf(int32_t rank, int32_t microbatch) const {
    return int64_t{microbatch} * DpCpSize(facts_.spec()) + facts_.DataRank(rank);
  }

  // In a pipeline tokens are read in the first stage, labels in the last one, which has the loss.
  bool FirstStage(int32_t rank) const { return facts_.Place(rank).pp == 0; }
  bool LastStage(int32_t rank) const { return facts_.Place(rank).pp == facts_.spec().model.pp - 1; }

  void JudgeSamples(int32_t rank, int32_t call, bool complete) {
    Judge(result_, {"GE-29"});
    OfCall& of = of_rank_[rank][call];
    for (int32_t m = 0; m < facts_.spec().microbatches; ++m) {
      const auto& seen = of.samples[m];
      const int64_t want = SampleOf(rank, m);
      for (size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].first == want && i == 0) continue;
        Add("GE-29", rank, call, seen[i].second, "sample " + std::to_string(want) + ", once",
            "sample " + std::to_string(seen[i].first) + (i > 0 ? ", again" : ""),
            "microbatch " + std::to_string(m) + " of data-parallel rank " +
                std::to_string(facts_.DataRank(rank)) + " must read sample microbatch * dp + rank");
      }
      if (seen.empty() && complete && (FirstStage(rank) || LastStage(rank))) {
        Add("GE-29", rank, call, -1, "sample " + std::to_string(want), "none",
            "microbatch " + std::to_string(m) +
                " is never read: each sample is consumed exactly once");
      }
    }
  }

  void JudgeLosses(int32_t rank, int32_t call, const OracleCall& want, bool complete) {
    Judge(result_, {"GE-30"});
    const Trace& trace = a_.trace(rank);
    OfCall& of = of_rank_[rank][call];
    for (int32_t m = 0; m < facts_.spec().microbatches; ++m) {
      const auto& events = of.losses[m];
      if ((events.empty() && complete && LastStage(rank)) || events.size() > 1) {
        Add("GE-30", rank, call, events.empty() ? -1 : events.back(),
            "one loss of microbatch " + std::to_string(m), std::to_string(events.size()),
            "publish the loss of every microbatch exactly once");
      }
      const auto& samples = of.samples[m];
      const int64_t sample = samples.empty() ? SampleOf(rank, m) : samples.front().first;
      const auto expected = want.losses.find(sample);
      if (expected == want.losses.end()) continue;
      for (const int64_t index : events) {
        const Event& event = At(trace.events, index);
        if (event.values < 0) continue;
        const double seen = At(trace.values, event.values);
        if (SameValue(seen, double{expected->second})) continue;
        Add("GE-30", rank, call, index, ValueText(double{expected->second}, SPF_F32),
            ValueText(seen, SPF_F32),
            "the loss of microbatch " + std::to_string(m) + " (sample " + std::to_string(sample) +
                ") is not the unsharded one");
      }
    }
  }

  // A number that is one over all ranks: by whoever publishes it, and by one of them if it was
  // asked for.
  void JudgeStatistic(int32_t call, std::vector<int64_t> OfCall::*events, bool asked, double want,
                      bool complete, const std::string& what) {
    bool published = false;
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      const std::vector<int64_t>& of_rank = of_rank_[rank][call].*events;
      published |= !of_rank.empty();
      for (const int64_t index : of_rank) JudgeScalar(rank, call, index, want, what);
    }
    if (asked) Judge(result_, {"FS-25"});
    if (!asked || published || !complete) return;
    Add("FS-25", -1, call, -1, oracle_.names_only ? "a number" : ValueText(want, SPF_F64), "none",
        "the case asks for the " + what + ", but no rank publishes it");
  }

  void JudgeScalar(int32_t rank, int32_t call, int64_t index, double want,
                   const std::string& what) {
    Judge(result_, {"FS-25"});
    const Trace& trace = a_.trace(rank);
    const Event& event = At(trace.events, index);
    if (event.values < 0) return;
    const double seen = At(trace.values, event.values);
    if (SameValue(seen, want)) return;
    const bool number = std::isfinite(seen);
    const std::string relation = Relation(seen, want);
    const std::string message =
        "the " + what + (number ? " counts something twice, or not at all" : " is no number") +
        (relation.empty() ? "" : ": " + relation);
    Add("FS-25", rank, call, index, ValueText(want, SPF_F64), ValueText(seen, SPF_F64), message);
  }

  void Add(const char* requirement, int32_t rank, int32_t call, int64_t event, std::string expected,
           std::string seen, std::string message) {
    sink_.Add(rank >= 0 && event >= 0
                  ? a_.At(requirement, rank, event)
                  : a_.AtCall(requirement, rank, instance_, call, std::max(rank, 0)),
              std::move(expected), std::move(seen), std::move(message));
  }

  const Analysis& a_;
  const int instance_;
  const InstanceFacts& facts_;
  const OracleRun& oracle_;
  CheckResult& result_;
  FindingSink sink_;
  std::map<int32_t, std::map<int32_t, OfCall>> of_rank_;  // rank -> call
};

}  // namespace

CheckResult CheckScalars(const Analysis& a) {
  CheckResult result;
  for (size_t i = 0; i < a.n_instances(); ++i) Scalars(a, static_cast<int>(i), result).Run();
  return result;
}

}  // namespace shardproof
