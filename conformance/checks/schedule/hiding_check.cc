// Happens-before under the schedule: what must be ordered is, and what should hide is not.
#include <algorithm>
#include <map>
#include <tuple>

#include "conformance/checks/schedule/expected.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"

namespace shardproof::schedule {

namespace {

class Hiding : StepCheck {
 public:
  Hiding(const Facts& facts, const Step& step, const Ordering& ordering, CheckResult& result,
         FindingSink& sink)
      : StepCheck(facts, step, result, sink), ordering_(ordering) {}

  // Some all-to-alls must hide and not each of them: collectives take turns, and gathers and
  // reductions between them wait for compute, so an all-to-all behind one of these does, too.
  static bool SomeHide(const InstanceSpec& spec) {
    return spec.schedule == CommSchedule::kOneCommunicator &&
           (ShardsGrads(spec) || spec.overlap_grad_reduce || spec.overlap_param_gather);
  }

  // Collectives take turns and attention has some of its own: sums over tp, or gathers over cp. The
  // backward of what stands before a dispatch then waits for the combine ahead of it, and delayed
  // weight gradients stand behind that backward.
  static bool AttentionTakesTurns(const InstanceSpec& spec) {
    return spec.schedule == CommSchedule::kOneCommunicator &&
           ((spec.tensor_parallel && spec.tp > 1) || (spec.context_parallel && spec.cp > 1));
  }

  void Run() {
    every_one_ = !SomeHide(spec_);
    JudgeAllPairs();
    JudgeCauses();
  }
  // Each pair of the step that cannot hide is a finding.
  void FindAllPairs() {
    every_one_ = true;
    JudgeAllPairs();
  }

  size_t hidden = 0, pairs = 0;

 private:
  void JudgeAllPairs() {
    // To look at gradients before they are sent the host waits for compute: then nothing of this
    // can be asked.
    if (step_.train && !spec_.check_for_nan) JudgePairs();
  }

  std::vector<int64_t> EventsOf(const Token& token, EventKind kind) const {
    std::vector<int64_t> events;
    for (const int64_t index : token.events) {
      if (At(trace_.events, index).kind == kind) events.push_back(index);
    }
    return events;
  }

  void JudgePairs() {
    for (size_t k = 1; k < step_.nodes.size(); ++k) {
      const auto f = static_cast<int32_t>(k), b = f - 1;
      const auto& backward = step_.nodes[k - 1]->layers();
      for (const Pair& pair : PairsOf(step_.nodes[k]->layers(), backward)) {
        if (pair.forward < 0 || pair.backward < 0) continue;
        const auto forward = [&](ScheduleNode node) {
          return Key{node, Side::kForward, pair.forward, f};
        };
        const auto back = [&](ScheduleNode node, Side side = Side::kBackward) {
          return Key{node, side, pair.backward, b};
        };
        JudgePair(back(ScheduleNode::kCombine), forward(ScheduleNode::kPreDispatch));
        JudgePair(forward(ScheduleNode::kDispatch), back(ScheduleNode::kMlp));
        if (!spec_.early_release) {  // else attention's backward, on the stream of compute, waits
                                     // for the dispatch
          JudgePair(back(ScheduleNode::kDispatch), forward(ScheduleNode::kMlp));
          JudgePair(forward(ScheduleNode::kCombine), back(ScheduleNode::kPreDispatch));
        }
        if (!spec_.delay_wgrad) continue;
        JudgePair(back(ScheduleNode::kDispatch), back(ScheduleNode::kMlp, Side::kWeights));
        if (pair.backward != backward.front() && !AttentionTakesTurns(spec_)) {
          JudgePair(forward(ScheduleNode::kCombine),
                    back(ScheduleNode::kPreDispatch, Side::kWeights));
        }
      }
    }
    for (size_t k = 0; spec_.delay_wgrad && !SomeHide(spec_) && k < step_.nodes.size(); ++k) {
      for (const int32_t layer : step_.nodes[k]->layers())
        JudgeWeights(static_cast<int32_t>(k), layer);
    }
  }

  // Each all-to-all of the one can be in progress at the same time as some compute of the other.
  void JudgePair(const Key& moves, const Key& computes) {
    const Token* communication = step_.Find(moves);
    const Token* compute = step_.Find(computes);
    if (communication == nullptr || compute == nullptr) return;
    const std::vector<int64_t> from = EventsOf(*communication, EventKind::kCollective);
    const std::vector<int64_t> beside = EventsOf(*compute, EventKind::kCompute);
    if (from.empty() || beside.empty()) return;
    Judge(result_, {"EP-33"});
    for (const int64_t one : from) {
      ++pairs;
      const auto unordered = [&](int64_t other) { return ordering_.Unordered(rank_, one, other); };
      if (std::any_of(beside.begin(), beside.end(), unordered)) {
        ++hidden;
        continue;
      }
      if (!every_one_) continue;
      const int64_t other = beside.front();
      const bool before = ordering_.Precedes(rank_, one, other);
      Add("EP-33", one, Text(moves) + " beside " + Text(computes),
          "ordered: " +
              (before ? ordering_.Path(rank_, one, other) : ordering_.Path(rank_, other, one)),
          "an all-to-all of " + Text(moves) + " cannot hide behind " + Text(computes) +
              ": something orders them");
    }
  }

  // A dispatch's backward does not wait for delayed weight gradients of its experts.
  void JudgeWeights(int32_t microbatch, int32_t layer) {
    const Token* weights = step_.Find({ScheduleNode::kMlp, Side::kWeights, layer, microbatch});
    const Token* dispatch =
        step_.Find({ScheduleNode::kDispatch, Side::kBackward, layer, microbatch});
    if (weights == nullptr || dispatch == nullptr) return;
    Judge(result_, {"EP-06"});
    for (const int64_t sent : EventsOf(*dispatch, EventKind::kCollective)) {
      for (const int64_t one : weights->events) {
        if (!ordering_.Precedes(rank_, one, sent)) continue;
        Add("EP-06", sent, Text(dispatch->key) + " free of " + Text(weights->key),
            "ordered: " + ordering_.Path(rank_, one, sent),
            "the dispatch's backward waits for weight gradients that delay_wgrad_compute puts off");
        return;
      }
    }
  }

  // What an all-to-all sends is written before it starts, and what it brings is read after it.
  void JudgeCauses() {
    std::map<std::tuple<int, int32_t, int32_t>, std::vector<int64_t>> writes,
        reads;  // (table, value, microbatch)
    for (const Token& token : step_.tokens) {
      for (const int64_t index : EventsOf(token, EventKind::kCompute)) {
        const Event& event = At(trace_.events, index);
        const spf_uses& uses = a_.Facts(event.instance).Node(event.id, rank_).uses[event.phase];
        for (int32_t u = 0; u < uses.n; ++u) {
          const std::tuple<int, int32_t, int32_t> value{uses.use[u].table, uses.use[u].id,
                                                        event.microbatch};
          if ((uses.use[u].access & SPF_READ) != 0) reads[value].push_back(index);
          if ((uses.use[u].access & SPF_WRITE) != 0) writes[value].push_back(index);
        }
      }
    }
    for (const Exchange& exchange : At(facts_.exchanges(), rank_)) {
      const bool here = exchange.instance == step_.instance && exchange.call == step_.call;
      if (!here || exchange.node < 0 || exchange.again) continue;
      const spf_node& node = a_.Facts(size_t(step_.instance)).Node(exchange.node, rank_);
      const spf_uses& uses = node.uses[exchange.backward ? SPF_BWD : SPF_FWD];
      for (int32_t u = 0; u < uses.n; ++u) {
        const std::tuple<int, int32_t, int32_t> value{uses.use[u].table, uses.use[u].id,
                                                      exchange.microbatch};
        const bool sent = uses.use[u].access == SPF_READ;
        for (const int64_t other : (sent ? writes : reads)[value])
          JudgeCause(exchange.event, other, sent);
      }
    }
  }
  void JudgeCause(int64_t exchange, int64_t other, bool sent) {
    Judge(result_, {"EP-06"});
    const int64_t first = sent ? other : exchange, second = sent ? exchange : other;
    if (ordering_.Precedes(rank_, first, second)) return;
    AddUnordered("EP-06", first, second,
                 sent ? "an all-to-all can start before what it sends is computed"
                      : "compute can start before its rows arrived");
  }

  const Ordering& ordering_;
  bool every_one_ = true;
};

}  // namespace

CheckResult CheckHiding(const Facts& facts, const Ordering& ordering) {
  CheckResult result;
  if (!ordering.usable()) {
    CannotJudge(result, {"EP-06", "EP-33"}, ordering.why());
    return result;
  }
  FindingSink sink(result);
  size_t hidden = 0, pairs = 0;
  std::map<const Step*, size_t> hidden_of;  // each of a rank and a call
  for (const Step& step : facts.steps()) {
    if (!facts.Overlaps(size_t(step.instance)) || step.end < 0) continue;
    Hiding hiding(facts, step, ordering, result, sink);
    hiding.Run();
    hidden += hiding.hidden;
    pairs += hiding.pairs;
    hidden_of[&step] = hiding.hidden;
  }
  for (const Step& step : facts.steps()) {
    const bool some = Hiding::SomeHide(facts.spec(size_t(step.instance)));
    if (!facts.Overlaps(size_t(step.instance)) || step.end < 0 || !some) continue;
    if (hidden_of[&step] == 0) Hiding(facts, step, ordering, result, sink).FindAllPairs();
  }
  if (pairs > 0) {
    result.notes.push_back("schedule: " + std::to_string(hidden) + " of " + std::to_string(pairs) +
                           " pairs of all-to-all and compute can run side by side");
  }
  return result;
}

}  // namespace shardproof::schedule
