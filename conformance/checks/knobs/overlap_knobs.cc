// high_priority_a2a_comm_stream, and overlap_moe_expert_parallel_comm in interleaved pipelines.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

bool AsksPriority(const InstanceSpec& spec) { return spec.overlap_moe && spec.high_priority; }
bool AsksPairs(const InstanceSpec& spec) { return spec.overlap_moe && spec.chunks > 1; }

// Of one rank and instance.
class Overlaps : RankCheck {
 public:
  Overlaps(const Analysis& a, int32_t rank, size_t instance, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        facts_(a.Facts(instance)),
        instance_(static_cast<int32_t>(instance)) {}

  // In CUDA a lower number is a higher priority. Nothing overlaps in an evaluation.
  void JudgePriority() {
    std::map<int32_t, int32_t> priorities;  // by stream
    std::set<int32_t> computes;
    std::map<int32_t, int64_t> exchanges;  // by stream: the first all-to-all of activations
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.instance != instance_ || event.stream < 0) continue;
      if (event.kind == EventKind::kStreamCreate) priorities[event.stream] = event.id;
      if (facts_.CallAt(event.call).letter != 't') continue;
      if (event.kind == EventKind::kCompute) computes.insert(event.stream);
      const bool rows = event.kind == EventKind::kCollective &&
                        event.collective == SPF_ALL_TO_ALL_V && IsFloating(event.dtype) &&
                        At(trace_.groups, event.group).world_ranks.size() > 1;
      if (rows) exchanges.try_emplace(event.stream, static_cast<int64_t>(i));
    }
    // The sum of a combine may stand on the stream of its all-to-all. (EP-05)
    for (const auto& [stream, first] : exchanges) computes.erase(stream);
    for (const auto& [stream, first] : exchanges) {
      Judge(result_, {"KN-06"});
      const auto lowest =
          std::min_element(computes.begin(), computes.end(),
                           [&](int32_t x, int32_t y) { return priorities[x] < priorities[y]; });
      if (lowest == computes.end() || priorities[stream] < priorities[*lowest]) continue;
      Add("KN-06", first,
          "a priority below " + std::to_string(priorities[*lowest]) +
              ", that of a stream of compute (in CUDA lower numbers come first)",
          "priority " + std::to_string(priorities[stream]),
          "high_priority_a2a_comm_stream = 1, but the stream of the all-to-alls has no higher "
          "priority than compute");
    }
  }

  // In each train step, how many forward passes have another pass's backward between their nodes?
  void JudgePairs() {
    const int32_t wanted = Pairs();
    if (wanted <= 0) return;
    std::map<int32_t, std::map<Pass, Span>> calls;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind != EventKind::kCompute || event.instance != instance_ || event.flag) continue;
      if (event.id < 0 || event.id >= facts_.node_count(rank_)) continue;
      const bool forward = event.phase == SPF_FWD;
      const Pass pass{forward, event.microbatch, facts_.Node(event.id, rank_).chunk};
      calls[event.call][pass].Take(static_cast<int64_t>(i));
    }
    for (const auto& [call, passes] : calls) JudgeStep(call, passes, wanted);
  }

 private:
  struct Pass {
    bool forward = false;
    int32_t microbatch = 0, chunk = 0;
    auto operator<=>(const Pass&) const = default;
  };
  struct Span {
    std::vector<int64_t> events;
    void Take(int64_t event) { events.push_back(event); }
  };

  // Combined steps of the interleaved schedule: what is left of the forward passes after warm-up,
  // which is one pass longer with the overlap (Megatron-LM, schedules.py).
  int32_t Pairs() const {
    const InstanceSpec& spec = facts_.spec();
    const std::vector<int32_t>* pp = facts_.List("pp", rank_);
    if (pp == nullptr) return 0;
    const auto place = static_cast<int32_t>(std::find(pp->begin(), pp->end(), rank_) - pp->begin());
    const auto ranks = static_cast<int32_t>(pp->size());
    const int32_t warmup = 2 * (ranks - place - 1) + (spec.chunks - 1) * ranks + 1;
    return std::max(0, spec.microbatches * spec.chunks - warmup);
  }

  void JudgeStep(int32_t call, const std::map<Pass, Span>& passes, int32_t wanted) {
    if (!a_.CallName(rank_, instance_, call).starts_with("train_step")) return;
    int32_t combined = 0;
    int64_t first = -1;
    for (const auto& [pass, span] : passes) {
      if (first < 0 || span.events.front() < first) first = span.events.front();
      combined += pass.forward && Beside(span, passes);
    }
    Judge(result_, {"KN-08"});
    if (combined >= wanted) return;
    Add("KN-08", first,
        std::to_string(wanted) +
            " forward passes of a chunk, each with another pass's backward "
            "between its nodes",
        std::to_string(combined),
        "overlap_moe_expert_parallel_comm = 1 in an interleaved pipeline, but forward and backward "
        "passes follow one another, so that no all-to-all stands beside the other's compute");
  }

  // Some pass goes backward between the first and the last node of this forward.
  static bool Beside(const Span& forward, const std::map<Pass, Span>& passes) {
    return std::any_of(passes.begin(), passes.end(), [&](const auto& other) {
      const auto& events = other.second.events;
      return !other.first.forward && std::any_of(events.begin(), events.end(), [&](int64_t event) {
        return forward.events.front() < event && event < forward.events.back();
      });
    });
  }

  const InstanceFacts& facts_;
  const int32_t instance_;
};

}  // namespace

CheckResult CheckOverlapKnobs(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    if (!AsksPriority(spec) && !AsksPairs(spec)) continue;
    for (const Trace& trace : a.traces()) {
      if (trace.provides.work && trace.provides.collectives && trace.provides.sync) {
        Overlaps overlaps(a, trace.rank, i, result, sink);
        if (AsksPriority(spec)) overlaps.JudgePriority();
        if (AsksPairs(spec)) overlaps.JudgePairs();
        continue;
      }
      const std::string why = "rank " + std::to_string(trace.rank) +
                              "'s trace lacks work, collectives or synchronisation";
      if (AsksPriority(spec)) CannotJudge(result, {"KN-06"}, why);
      if (AsksPairs(spec)) CannotJudge(result, {"KN-08"}, why);
    }
  }
  return result;
}

}  // namespace shardproof
