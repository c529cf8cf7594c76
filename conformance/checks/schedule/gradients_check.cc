// Reductions under the schedule: how often, how complete, how early; the hooks of the root.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/checks/schedule/rank_check.h"
#include "conformance/checks/schedule/schedule.h"
#include "conformance/common/at.h"

namespace shardproof::schedule {

namespace {

class Gradients : StepCheck {
 public:
  Gradients(const Facts& facts, const Step& step, const std::vector<Carried>& carried,
            CheckResult& result, FindingSink& sink)
      : StepCheck(facts, step, result, sink), expected_(a_, step.instance) {
    for (const Carried& one : carried) {
      const Event& event = EventAt(one.event);
      if (one.reduction && event.instance == step.instance && event.call == step.call) Collect(one);
    }
  }

  void Run() {
    JudgeMarks();
    const InstanceFacts& facts = a_.Facts(size_t(step_.instance));
    Judge(result_, {"EP-18", "EP-19", "EP-20", "EP-21"});
    for (int32_t id = 0; id < facts.n_params(step_.rank); ++id) {
      const ParamFacts& param = facts.Param(step_.rank, id);
      const auto* list = facts.InnerList(param.expert, step_.rank);
      if (param.frozen || list == nullptr || list->size() < 2) continue;
      JudgeParam(param);
    }
  }

 private:
  struct Sent {
    int64_t elements = 0, first = -1, last = -1;
    std::set<int64_t> events;
    std::set<int32_t> nodes;
    std::set<int32_t> together;  // microbatches in the same elements
  };
  const Event& EventAt(int64_t index) const { return At(trace_.events, index); }
  bool EachMicrobatch() const { return ShardsGrads(spec_); }

  void Collect(const Carried& one) {
    for (const Chunk& chunk : one.grads) {
      const auto& set = a_.flow().sets().Get(chunk.content.tag);
      std::set<int32_t> microbatches;
      bool own = true;
      for (const Contribution& part : set) {
        own &= part.rank == step_.rank;
        microbatches.insert(part.microbatch);
      }
      if (!own) continue;  // of a second level
      for (const int32_t m : microbatches) {
        Sent& sent = sent_[{chunk.content.param, m}];
        sent.elements += chunk.length / std::max<int64_t>(1, chunk.content.width);
        if (sent.first < 0) sent.first = one.event;
        sent.last = one.event;
        sent.events.insert(one.event);
        sent.together.insert(microbatches.begin(), microbatches.end());
        for (const Contribution& part : set) {
          if (part.microbatch == m) sent.nodes.insert(part.node);
        }
      }
    }
  }

  void JudgeParam(const ParamFacts& param) {
    for (int32_t m = 0; m < spec_.microbatches; ++m) {
      const std::set<int32_t>& nodes = expected_.Nodes(step_.call, step_.rank, m, param.key);
      if (nodes.empty()) continue;
      const std::string what =
          "the gradient of " + param.name + ", microbatch " + std::to_string(m);
      const int64_t early = SentBefore(nodes, m);
      if (early >= 0) {
        Add("EP-19", early, what + " complete",
            "its memory is sent before its last part is computed",
            what + " is reduced before it is complete, delayed weight gradients included");
      }
      const auto at = sent_.find({param.key, m});
      if (at == sent_.end()) {
        if (early < 0) JudgeMissing(what, nodes, m);
        continue;
      }
      const Sent& sent = at->second;
      JudgeCount(param, what, m, sent);
      if (!std::includes(sent.nodes.begin(), sent.nodes.end(), nodes.begin(), nodes.end())) {
        Add("EP-19", sent.last, std::to_string(nodes.size()) + " contributions of this rank",
            std::to_string(sent.nodes.size()),
            what + " is reduced before it is complete, delayed weight gradients included");
      }
      if (EachMicrobatch()) JudgeFlushed(what, m, sent);
    }
  }

  void JudgeMissing(const std::string& what, const std::set<int32_t>& nodes, int32_t m) {
    const bool empty = WithoutRows(nodes, m);
    Add(empty ? "EP-21" : "EP-18", step_.begin, what + " reduced", "it is not",
        empty ? "an expert without tokens is left out of the reduction: it takes part with zeros"
              : what + " is never reduced");
  }
  // A reduction that sent the gradient's memory in this microbatch's backward before the gradient
  // was added to it, without clearing it in between; or -1.
  int64_t SentBefore(const std::set<int32_t>& nodes, int32_t m) const {
    const auto begin =
        std::find_if(step_.tokens.begin(), step_.tokens.end(), [&](const Token& token) {
          return token.key.side != Side::kForward && token.key.microbatch == m;
        });
    const int64_t since = begin == step_.tokens.end() ? step_.end : begin->first();
    for (int64_t i = since; i < step_.end; ++i) {
      const Event& event = EventAt(i);
      if (event.kind != EventKind::kCompute || event.microbatch != m || nodes.count(event.id) == 0)
        continue;
      const spf_uses& uses =
          a_.Facts(size_t(step_.instance)).Node(event.id, step_.rank).uses[event.phase];
      for (int32_t k = 0; k < uses.n && static_cast<uint32_t>(uses.n) == event.ranges.size(); ++k) {
        if (uses.use[k].table != SPF_IN_GRAD) continue;
        const int64_t sent = LastSent(trace_.ranges[event.ranges.begin + size_t(k)], since, i);
        if (sent >= 0) return sent;
      }
    }
    return -1;
  }
  // The last reduction of [since, until) that sent the range, if nothing cleared or replaced it
  // afterwards.
  int64_t LastSent(const Range& range, int64_t since, int64_t until) const {
    for (int64_t i = until; i-- > since;) {
      const Event& event = EventAt(i);
      for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
        const Range& other = trace_.ranges[r];
        if (!Meet(other, range)) continue;
        const bool reduces = event.kind == EventKind::kCollective && IsReduction(event.collective);
        if (reduces && (other.access & kRead) != 0) return i;
        if (other.access == kWrite) return -1;
      }
    }
    return -1;
  }

  void JudgeCount(const ParamFacts& param, const std::string& what, int32_t m, const Sent& sent) {
    std::set<int32_t> together = {m};
    if (!EachMicrobatch()) {
      together.clear();
      for (int32_t k = 0; k < spec_.microbatches; ++k) {
        if (!expected_.Nodes(step_.call, step_.rank, k, param.key).empty()) together.insert(k);
      }
    }
    if (sent.elements <= param.numel && sent.together == together) return;
    const char* often = EachMicrobatch() ? "once for each microbatch"
                                         : "once in the step, all microbatches together";
    std::string seen = std::to_string(sent.elements) + " of " + std::to_string(param.numel) +
                       " elements, microbatches";
    for (const int32_t k : sent.together) seen += " " + std::to_string(k);
    Add("EP-18", sent.last, std::string(often) + " with " + spec_.strategy.Text(), seen,
        what + " is reduced more often than that, or with other microbatches");
  }

  // Nothing is left for the next combined step.
  void JudgeFlushed(const std::string& what, int32_t m, const Sent& sent) {
    for (const Token& token : step_.tokens) {
      if (token.key.side == Side::kForward || token.key.microbatch != m + 1) continue;
      if (token.first() < sent.last) {
        Add("EP-20", sent.last, "reduced before " + Text(token.key), "after it",
            what + " is still waiting when the backward side of the combined step is over");
      }
      return;
    }
  }

  // The node ran on no rows.
  bool WithoutRows(const std::set<int32_t>& nodes, int32_t m) const {
    for (int64_t i = step_.begin; i < step_.end; ++i) {
      const Event& event = EventAt(i);
      if (event.kind != EventKind::kCompute || event.microbatch != m || nodes.count(event.id) == 0)
        continue;
      const spf_uses& uses =
          a_.Facts(size_t(step_.instance)).Node(event.id, step_.rank).uses[event.phase];
      if (event.phase == SPF_FWD || static_cast<uint32_t>(uses.n) != event.ranges.size()) continue;
      for (int32_t k = 0; k < uses.n; ++k) {
        if (uses.use[k].table == SPF_IN_DACT &&
            trace_.ranges[event.ranges.begin + size_t(k)].length == 0)
          return true;
      }
    }
    return false;
  }

  // If the engine announces the hooks of the root: each once for a backward side.
  void JudgeMarks() {
    if (!spec_.overlap_moe) return;
    std::map<int32_t, std::map<int32_t, int>> count;  // hook -> microbatch -> marks
    bool any = false;
    for (int64_t i = step_.begin; i < step_.end; ++i) {
      const Event& event = EventAt(i);
      const bool root =
          event.kind == EventKind::kMark && event.instance == step_.instance &&
          (event.id == SPF_HOOK_ROOT_PRE_BACKWARD || event.id == SPF_HOOK_ROOT_POST_BACKWARD);
      if (!root) continue;
      any = true;
      ++count[event.id][event.microbatch];
    }
    for (int32_t m = 0; any && m < spec_.microbatches; ++m) {
      for (const int32_t hook : {SPF_HOOK_ROOT_PRE_BACKWARD, SPF_HOOK_ROOT_POST_BACKWARD}) {
        if (count[hook][m] == 1) continue;
        Add("EP-20", step_.begin, "once for the backward side of microbatch " + std::to_string(m),
            std::to_string(count[hook][m]) + " times",
            hook == SPF_HOOK_ROOT_PRE_BACKWARD ? "the root's pre-backward hook is not run once"
                                               : "the root's post-backward hook is not run once");
      }
    }
  }

  ExpectedGrads expected_;
  std::map<std::pair<int32_t, int32_t>, Sent> sent_;  // (key, microbatch)
};

}  // namespace

CheckResult CheckGradients(const Facts& facts) {
  CheckResult result;
  if (!facts.a().has_flow()) {
    CannotJudge(result, {"EP-18", "EP-19", "EP-20", "EP-21"}, facts.a().flow_why());
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) {
    const std::vector<Carried>& carried = CarriedBy(facts.a(), rank);
    for (const Step& step : facts.steps()) {
      if (step.rank != rank || !step.train || step.end < 0 ||
          !facts.Overlaps(size_t(step.instance)))
        continue;
      Gradients(facts, step, carried, result, sink).Run();
    }
  }
  return result;
}

}  // namespace shardproof::schedule
