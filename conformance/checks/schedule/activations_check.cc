// Activations under the schedule: dropped after their backward or eval, at most L + 1 layers, back
// to the baseline.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof::schedule {

namespace {

struct Owner {
  int32_t call = -1, microbatch = -1, layer = -1;
  bool gradient = false;
  auto operator<=>(const Owner&) const = default;
};

// Values of one rank in memory. Whole tensors of floats count, not scalars and counts.
using Live = ByteMap<Owner>;

template <class F>
int64_t Sum(const Live& live, F&& counts) {
  int64_t sum = 0;
  for (const auto& [owner, bytes] : live.bytes()) sum += counts(owner) ? bytes : 0;
  return sum;
}

class Activations : StepCheck {
 public:
  Activations(const Facts& facts, const Step& step, Live& live, int64_t& rest, CheckResult& result,
              FindingSink& sink)
      : StepCheck(facts, step, result, sink),
        tables_(facts.Tables(step.rank, step.instance)),
        live_(live),
        rest_(rest) {
    for (const Exchange& exchange : At(facts.exchanges(), step.rank))
      exchanges_[exchange.event] = &exchange;
  }

  void Run() {
    Judge(result_, {"EP-07", "EP-08"});
    FindLayers();
    for (int64_t i = step_.begin; i < step_.end; ++i) Visit(i);
    if (step_.train) {
      JudgeDropped(int32_t(step_.nodes.size()) - 1, step_.end);
    } else {
      JudgeEval();
    }
    JudgePeak();
    const int64_t left = Sum(live_, [](const Owner&) { return true; });
    if (rest_ < 0) rest_ = left;
    if (left > rest_) {
      Add("EP-08", step_.end, std::to_string(rest_) + " bytes, as after the first call",
          std::to_string(left) + " bytes",
          "activations are left behind by a call: memory grows from step to step");
    }
    rest_ = std::max(rest_, left);
  }

 private:
  // A value belongs to the layer whose forward writes it. Backward needs it if some node reads it
  // there.
  void FindLayers() {
    for (int32_t m = 0; m < static_cast<int32_t>(step_.nodes.size()); ++m) {
      const spf_program& program = facts_.Program(step_.rank, step_.instance, step_.call, m);
      for (int32_t n = 0; n < program.n_nodes; ++n) {
        for (const int phase : {SPF_BWD, SPF_DGRAD, SPF_WGRAD}) {
          const spf_uses& uses = program.nodes[n].uses[phase];
          for (int32_t u = 0; u < uses.n; ++u) {
            if (uses.use[u].table == SPF_IN_ACT) kept_.insert(uses.use[u].id);
          }
        }
      }
    }
    for (const auto& nodes : step_.nodes) {
      for (const ScheduleNode schedule_node :
           {ScheduleNode::kPreDispatch, ScheduleNode::kDispatch, ScheduleNode::kMlp,
            ScheduleNode::kCombine, ScheduleNode::kMtpPost}) {
        for (const int32_t layer : nodes->layers()) {
          for (const spf_node* node : nodes->Of(schedule_node, layer)) {
            for (int32_t u = 0; u < node->uses[SPF_FWD].n; ++u) {
              const spf_use& use = node->uses[SPF_FWD].use[u];
              if (use.table == SPF_IN_ACT && use.access == SPF_WRITE) layer_of_[use.id] = layer;
            }
          }
        }
      }
    }
  }
  bool Counts(int32_t value) const {
    const spf_value& one = tables_.values[value];
    return IsFloating(one.dtype) && one.max_rows * one.row_elems > 1;
  }

  void Visit(int64_t index) {
    const Event& event = At(trace_.events, index);
    if (GivesBack(event.kind)) {
      live_.EraseBlock(event.alloc);
      return;
    }
    const auto token = step_.token_of.find(index);
    if (token != step_.token_of.end()) {
      const Key& key = step_.tokens[token->second].key;
      const bool first = step_.tokens[token->second].first() == index;
      if (first && key.side == Side::kBackward && key.microbatch > 0)
        JudgeDropped(key.microbatch - 1, index);
    }
    if (event.kind == EventKind::kCompute && event.instance == step_.instance) {
      Computed(event);
    } else if (!Exchanged(index, event)) {
      Overwritten(event);
    }
  }

  void Computed(const Event& event) {
    const spf_uses& uses = a_.Facts(event.instance).Node(event.id, step_.rank).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return;
    for (int32_t u = 0; u < uses.n; ++u)
      Written(uses.use[u], trace_.ranges[event.ranges.begin + size_t(u)], event.microbatch);
  }

  // The values that an all-to-all brings; false: it is none, or it brings none.
  bool Exchanged(int64_t index, const Event& event) {
    const auto exchange = exchanges_.find(index);
    const Range* recv = event.kind == EventKind::kCollective ? RecvRange(trace_, event) : nullptr;
    if (exchange == exchanges_.end() || exchange->second->node < 0 || recv == nullptr) return false;
    const int phase = exchange->second->backward ? SPF_BWD : SPF_FWD;
    const spf_uses& uses =
        a_.Facts(event.instance).Node(exchange->second->node, step_.rank).uses[phase];
    for (int32_t u = 0; u < uses.n; ++u) Written(uses.use[u], *recv, exchange->second->microbatch);
    return true;
  }

  void Overwritten(const Event& event) {
    const bool moves = event.kind == EventKind::kCollective || event.kind == EventKind::kCopy;
    if (event.kind != EventKind::kLaunch && !moves) return;
    const bool clears =
        event.kind == EventKind::kLaunch && event.id != SPF_K_DISCARD && event.id != SPF_K_FILL;
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      const Range& range = trace_.ranges[r];
      if ((range.access & kWrite) != 0 && !clears)
        live_.Erase(range.alloc, range.offset, range.offset + range.length);
    }
  }

  void Written(const spf_use& use, const Range& range, int32_t microbatch) {
    const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
    if (!value || (use.access & SPF_WRITE) == 0 || range.length <= 0 || !Counts(use.id)) return;
    const auto layer = layer_of_.find(use.id);
    const Owner owner{step_.call, microbatch, layer == layer_of_.end() ? -1 : layer->second,
                      use.table == SPF_IN_DACT};
    live_.Put(range.alloc, range.offset, range.offset + range.length, owner);
    if (owner.layer < 0) return;
    largest_[{owner.layer, owner.gradient, use.id}] =
        std::max(largest_[{owner.layer, owner.gradient, use.id}], range.length);
    for (const bool gradient : {false, true}) {
      int64_t& peak = gradient ? peak_gradients_ : peak_;
      const int64_t now =
          Sum(live_, [&](const Owner& one) { return one.layer >= 0 && one.gradient == gradient; });
      peak = std::max(peak, now);
    }
  }

  // Nothing of a microbatch is left once the backward side of its combined step is over.
  void JudgeDropped(int32_t microbatch, int64_t index) {
    if (microbatch < 0 || !dropped_.insert(microbatch).second) return;
    const int64_t left = Sum(live_, [&](const Owner& one) {
      return one.call == step_.call && one.microbatch == microbatch;
    });
    if (left == 0) return;
    Add("EP-07", index, "no activation of microbatch " + std::to_string(microbatch),
        std::to_string(left) + " bytes",
        "activations or their gradients outlive the backward of their microbatch");
  }

  void JudgeEval() {
    Judge(result_, {"EP-36"});
    const int64_t left = Sum(live_, [&](const Owner& one) { return one.call == step_.call; });
    if (left == 0) return;
    Add("EP-36", step_.end, "no activation of the call", std::to_string(left) + " bytes",
        "an eval_step leaves activations behind");
  }

  // Forward has i + 1 layers when backward still has L - i.
  void JudgePeak() {
    std::map<int32_t, int64_t> values, passing,
        gradients;  // by layer; passing: no backward needs them
    for (const auto& [place, bytes] : largest_) {
      const auto& [layer, gradient, value] = place;
      values[layer] += 0;
      (gradient ? gradients : kept_.count(value) != 0 ? values : passing)[layer] += bytes;
    }
    std::vector<int64_t> prefix{0};
    for (const auto& [layer, bytes] : values) prefix.push_back(prefix.back() + bytes);
    const size_t n = prefix.size() - 1;
    int64_t bound = prefix.back(), largest = 0;
    for (size_t i = 0; i < n && step_.nodes.size() > 1; ++i)
      bound = std::max(bound, prefix[i + 1] + prefix[n - i]);
    int64_t in_work = 0;
    for (const auto& [layer, bytes] : passing) in_work = std::max(in_work, bytes);
    bound += in_work;
    for (const auto& [layer, bytes] : gradients) largest = std::max(largest, bytes);
    const int64_t gradient_bound = largest * (spec_.delay_wgrad ? 3 : 2);
    const std::string of = std::to_string(bound), of_gradients = std::to_string(gradient_bound);
    if (step_.train && step_.rank == 0) {
      result_.notes.push_back("schedule: peak of layer activations " + std::to_string(peak_) +
                              " bytes of " + of + " allowed, of their gradients " +
                              std::to_string(peak_gradients_) + " of " + of_gradients);
    }
    if (peak_ > bound) {
      Add("EP-08", step_.begin,
          "at most " + of + " bytes: what backward needs of L + 1 layers, and the layer at work",
          std::to_string(peak_),
          "more layer activations are alive at a time than the schedule needs");
    }
    if (peak_gradients_ > gradient_bound) {
      Add("EP-08", step_.begin, "at most " + of_gradients + " bytes: those of the layers at work",
          std::to_string(peak_gradients_),
          "more gradients of activations are alive at a time than the schedule needs");
    }
  }

  const spf_model& tables_;
  Live& live_;
  int64_t& rest_;
  std::map<int64_t, const Exchange*> exchanges_;
  std::map<int32_t, int32_t> layer_of_;  // by value
  std::map<std::tuple<int32_t, bool, int32_t>, int64_t>
      largest_;  // (layer, gradient, value) -> bytes
  std::set<int32_t> dropped_;
  std::set<int32_t> kept_;  // values that some backward reads
  int64_t peak_ = 0, peak_gradients_ = 0;
};

}  // namespace

CheckResult CheckActivations(const Facts& facts) {
  CheckResult result;
  FindingSink sink(result);
  std::map<std::pair<int32_t, int32_t>, std::pair<Live, int64_t>> live;  // by rank, instance
  for (const Step& step : facts.steps()) {
    if (!facts.Overlaps(size_t(step.instance)) || step.end < 0) continue;
    auto& [bytes, rest] = live.try_emplace({step.rank, step.instance}, Live{}, -1).first->second;
    Activations(facts, step, bytes, rest, result, sink).Run();
  }
  return result;
}

}  // namespace shardproof::schedule
