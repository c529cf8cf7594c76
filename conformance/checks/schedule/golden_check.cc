// What is issued, and in which order: schedule nodes, phases, pairs, streams.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/schedule/expected.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"

namespace shardproof::schedule {

namespace {

class Golden : StepCheck {
 public:
  Golden(const Facts& facts, const Step& step, CheckResult& result, FindingSink& sink)
      : StepCheck(facts, step, result, sink) {
    plan_.overlap = spec_.overlap_moe;
    plan_.train = step.train;
    plan_.early_release = spec_.early_release;
    for (const auto& nodes : step.nodes) plan_.layers.push_back(nodes->layers());
    const auto* ep = facts.a().Facts(size_t(step.instance)).List("ep", step.rank);
    const bool alone = ep == nullptr || ep->size() < 2;  // nothing need travel, but it may
    for (const Token& token : step.tokens) {
      if (!alone || token.key.node != ScheduleNode::kDispatch) tokens_.push_back(token);
    }
    if (spec_.chunks > 1) plan_.steps = PipelineSteps();
    plan_.has = [this, alone](const Key& key) {
      if (alone && key.node == ScheduleNode::kDispatch) return false;
      const Nodes& nodes = *At(step_.nodes, key.microbatch);
      // Where nothing overlaps, losses are part of what follows the layers (tokens.h).
      const bool joined =
          !step_.combined && (key.node == ScheduleNode::kPost || key.node == ScheduleNode::kLoss);
      if (joined)
        return key.node == ScheduleNode::kPost &&
               (Has(nodes, key) || Has(nodes, {ScheduleNode::kLoss, key.side, -1, 0}));
      return Has(nodes, key);
    };
    expected_ = ExpectedOrder(plan_);
  }

  void Run() {
    const bool complete = JudgeOnce();
    if (spec_.overlap_moe && step_.train) JudgeStreams();
    if (!spec_.delay_wgrad) Judge(result_, {"EP-38"});
    if (!spec_.overlap_moe) return JudgeSequential(complete);
    if (!step_.train || spec_.model.layers < 1) return;
    if (!complete) {
      CannotJudge(result_, {"EP-02", "EP-03", "EP-04"},
                  "schedule nodes of a step are missing or doubled (EP-01)");
      return;
    }
    Judge(result_, {"EP-02"});
    if (spec_.chunks == 1) JudgePhasesAndPairs();
    if (!Claims()) return JudgeCover();
    JudgeOrder(
        "EP-02",
        "the schedule nodes of a combined step are issued in another order than the schedule's");
  }

 private:
  std::vector<Sides> PipelineSteps() const {
    const std::vector<int32_t>& pp = *facts_.a().Facts(size_t(step_.instance)).List("pp", rank_);
    const auto place = std::find(pp.begin(), pp.end(), rank_) - pp.begin();
    return InterleavedSteps(static_cast<int32_t>(pp.size()), static_cast<int32_t>(place),
                            spec_.chunks, spec_.microbatches);
  }

  // With the chunk, where there are several.
  std::string Text(Key key) const {
    if (spec_.chunks == 1) return schedule::Text(key);
    const int32_t chunk = key.microbatch % spec_.chunks;
    key.microbatch /= spec_.chunks;
    return schedule::Text(key) + " of chunk " + std::to_string(chunk);
  }

  bool Has(const Nodes& nodes, const Key& key) const {
    return nodes.Has(key.node, key.side, key.layer, spec_.delay_wgrad);
  }

  // Each schedule node once; weight gradients apart exactly if they are delayed; a node after those
  // that it needs.
  bool JudgeOnce() {
    Judge(result_, {"EP-01"});
    bool complete = true;
    std::map<Key, int> wanted;
    std::map<Key, const Token*> seen;
    for (const Key& key : expected_) ++wanted[key];
    for (const Token& token : tokens_) {
      const bool again = !seen.emplace(token.key, &token).second;
      if (wanted.count(token.key) != 0 && !again) continue;
      complete = false;
      const bool weights = token.key.side == Side::kWeights && !spec_.delay_wgrad;
      const bool mixed = again && !step_.combined;  // another microbatch came in between
      Add(weights || mixed ? "EP-38" : "EP-01", token.first(),
          again ? "once in a step" : "not in this step",
          Text(token.key) + (again ? " a second time" : ""),
          weights ? "weight gradients stand apart from their backward although delay_wgrad_compute "
                    "is off"
          : mixed ? "without the overlap knob the schedule nodes of microbatches are mixed"
                  : "a schedule node is issued in several runs, twice, or without being "
                    "part of the step");
    }
    for (const auto& [key, count] : wanted) {
      if (seen.count(key) != 0) continue;
      complete = false;
      Add("EP-01", step_.begin, Text(key), "nothing of it in the step",
          Text(key) + " is never issued");
    }
    for (const auto& [key, token] : seen) JudgeNeeds(*token, seen);
    return complete;
  }

  // Forward in the order of nodes, backward in reverse, weights after their backward.
  void JudgeNeeds(const Token& token, const std::map<Key, const Token*>& seen) {
    for (const auto& [other, before] : seen) {
      const Key& key = token.key;
      if (other.microbatch != key.microbatch || before->first() < token.first()) continue;
      const bool layer = key.layer >= 0 && other.layer == key.layer;
      const bool forward = key.side == Side::kForward && other.side == Side::kForward && layer &&
                           other.node < key.node;
      const bool behind = other.side == Side::kBackward && layer;
      const bool backward = key.side == Side::kBackward && behind && other.node > key.node;
      const bool weights = key.side == Side::kWeights && behind && other.node == key.node;
      const bool turned = key.side == Side::kBackward && other.side == Side::kForward && layer;
      if (!forward && !backward && !weights && !turned) continue;
      Add("EP-01", token.first(), "after " + Text(other), Text(key) + " before it",
          "a schedule node is issued before one whose result it needs");
    }
  }

  // An engine that announces hooks says that its schedule nodes are Megatron-LM's, and their order.
  bool Claims() const {
    return std::any_of(trace_.events.begin() + step_.begin, trace_.events.begin() + step_.end,
                       [&](const Event& event) {
                         return event.kind == EventKind::kMark && event.call == step_.call &&
                                event.instance == step_.instance;
                       });
  }

  static bool Exchanges(const Key& key) {
    return key.node == ScheduleNode::kDispatch || key.node == ScheduleNode::kCombine;
  }

  // Where the schedule issues compute of the other microbatch between what an all-to-all needs and
  // what needs it, so does the engine, in whatever order: it has something to hide behind.
  void JudgeCover() {
    std::map<Key, size_t> expected, seen;
    for (size_t i = 0; i < expected_.size(); ++i) expected[expected_[i]] = i;
    for (size_t i = 0; i < tokens_.size(); ++i) seen[tokens_[i].key] = i;
    const auto key_of = [&](size_t i) { return At(tokens_, i).key; };
    const auto planned = [&](size_t i) { return At(expected_, i); };
    std::map<std::pair<int32_t, Side>, std::vector<Key>> sides;  // each in the order of its data
    for (const Key& key : expected_) {
      if (key.side != Side::kWeights) sides[{key.microbatch, key.side}].push_back(key);
    }
    for (const auto& [side, keys] : sides) {
      for (size_t i = 1; i + 1 < keys.size(); ++i) {
        const Key &from = keys[i - 1], &to = keys[i + 1];
        if (!Exchanges(keys[i]) || !Covered(expected.at(from), expected.at(to), planned)) continue;
        if (Covered(seen.at(from), seen.at(to), key_of)) continue;
        Add("EP-02", At(tokens_, seen.at(to)).first(),
            "compute of the other microbatch between " + Text(from) + " and " + Text(to),
            "nothing of it", Text(keys[i]) + " has nothing to hide behind");
      }
    }
  }
  template <class KeyAt>
  static bool Covered(size_t from, size_t to, const KeyAt& key_at) {
    for (size_t i = from + 1; i < to; ++i) {
      const Key key = key_at(i);
      if (key.microbatch != key_at(from).microbatch && !Exchanges(key)) return true;
    }
    return false;
  }

  void JudgePhasesAndPairs() {
    Judge(result_, {"EP-03", "EP-04"});
    JudgePhases();
    JudgePairs();
  }

  void JudgePhases() {
    std::map<int32_t, std::pair<int64_t, int64_t>> forward,
        backward;  // of layers: first and last token
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Key& key = tokens_[i].key;
      if (key.layer < 0) continue;
      auto& span = key.side == Side::kForward ? forward : backward;
      const auto place = static_cast<int64_t>(i);
      const auto [at, added] = span.try_emplace(key.microbatch, place, place);
      if (!added) at->second.second = place;
    }
    for (const auto& [m, span] : forward) {
      const Token& first = At(tokens_, span.first);
      const auto beside = backward.find(m - 1);
      const std::string text = "forward of microbatch " + std::to_string(m);
      if (beside != backward.end() &&
          (beside->second.second < span.first || span.second < beside->second.first)) {
        Add("EP-03", first.first(), text + " beside backward of " + std::to_string(m - 1),
            "one after the other",
            "a combined step has a forward and a backward side, but they are issued one after the "
            "other");
      }
      const auto older = backward.find(m - 2);
      if (older != backward.end() && span.first < older->second.second) {
        Add("EP-03", first.first(), text + " after backward of " + std::to_string(m - 2),
            "before its end", "more than two microbatches are in flight");
      }
      const auto own = backward.find(m);
      if (own != backward.end() && own->second.first < span.second) {
        Add("EP-03", first.first(), text + " before its own backward", "its backward has begun",
            "backward of a microbatch begins before its forward is issued");
      }
    }
  }

  // The backward layer whose experts stand between a forward layer's attention and its experts.
  void JudgePairs() {
    for (size_t k = 1; k < plan_.layers.size(); ++k) {
      const auto f = static_cast<int32_t>(k), b = f - 1;
      for (const Pair& pair : PairsOf(plan_.layers[k], plan_.layers[k - 1])) {
        if (pair.forward < 0 || pair.backward < 0) continue;
        const Token* from =
            step_.Find({ScheduleNode::kPreDispatch, Side::kForward, pair.forward, f});
        const Token* to = step_.Find({ScheduleNode::kMlp, Side::kForward, pair.forward, f});
        if (from == nullptr || to == nullptr) continue;
        std::set<int32_t> between;
        for (const Token& token : tokens_) {
          const bool mlp =
              token.key.node == ScheduleNode::kMlp && token.key.side == Side::kBackward;
          if (mlp && from->first() < token.first() && token.first() < to->first()) {
            between.insert(token.key.microbatch == b ? token.key.layer : -2);
          }
        }
        if (between == std::set<int32_t>{pair.backward}) continue;
        std::string seen;
        for (const int32_t layer : between)
          seen += (seen.empty() ? "layer " : ", ") + std::to_string(layer);
        Add("EP-04", to->first(),
            "backward of layer " + std::to_string(pair.backward) + " beside forward of layer " +
                std::to_string(pair.forward) + ", microbatches " + std::to_string(b) + " and " +
                std::to_string(f),
            seen.empty() ? "nothing beside it" : seen,
            "layers of the two microbatches are paired otherwise than the schedule asks");
      }
    }
  }

  // All-to-alls of activations are alone with the combine's sum on their streams.
  void JudgeStreams() {
    Judge(result_, {"EP-05"});
    std::set<int32_t> streams;
    for (const Token& token : tokens_) {
      for (const int64_t index : token.events) {
        const Event& event = At(trace_.events, index);
        const bool exchange =
            token.key.node == ScheduleNode::kDispatch || token.key.node == ScheduleNode::kCombine;
        if (exchange && event.kind == EventKind::kCollective) streams.insert(event.stream);
      }
    }
    for (const Token& token : tokens_) {
      if (token.key.node == ScheduleNode::kDispatch || token.key.node == ScheduleNode::kCombine)
        continue;
      for (const int64_t index : token.events) {
        const Event& event = At(trace_.events, index);
        if (event.kind != EventKind::kCompute || streams.count(event.stream) == 0) continue;
        Add("EP-05", index, "a stream without dispatch and combine",
            Text(token.key) + " on the stream of the all-to-alls",
            "compute that all-to-alls should hide behind is on their stream");
        break;
      }
    }
  }

  void JudgeSequential(bool complete) {
    if (spec_.recompute || !step_.train || spec_.model.reused) return;
    if (!complete) return;
    Judge(result_, {"EP-38"});
    JudgeOrder("EP-38", "without the overlap knob the schedule nodes of microbatches are mixed");
  }

  void JudgeOrder(const char* requirement, const char* message) {
    for (size_t i = 0; i < expected_.size() && i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.key == expected_[i]) continue;
      Add(requirement, token.first(), Text(expected_[i]) + Around(expected_, i), Text(token.key),
          std::string(message) + ": schedule node " + std::to_string(i) + " of " +
              std::to_string(expected_.size()));
      return;
    }
  }
  std::string Around(const std::vector<Key>& keys, size_t i) const {
    return i == 0 ? " (first)" : " (after " + Text(keys[i - 1]) + ")";
  }

  std::vector<Token> tokens_;  // of the step, in issue order
  Plan plan_;
  std::vector<Key> expected_;
};

}  // namespace

CheckResult CheckGolden(const Facts& facts) {
  CheckResult result;
  FindingSink sink(result);
  for (const Step& step : facts.steps()) {
    const InstanceSpec& spec = facts.spec(size_t(step.instance));
    const bool whole = spec.pp == 1 && spec.chunks == 1 && !spec.model.reused;
    if (step.end < 0 || !(whole || (step.train && OverlapsInPipeline(spec)))) continue;
    Golden(facts, step, result, sink).Run();
  }
  return result;
}

}  // namespace shardproof::schedule
