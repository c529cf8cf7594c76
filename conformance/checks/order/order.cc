// Order and number of gathers, and the guard against gradients that are not finite: judged by
// effect.
#include "conformance/checks/order/order.h"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/windows.h"
#include "conformance/checks/order/lost_prefetch.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

int64_t Size(const std::vector<int32_t>* list) {
  return list == nullptr ? 1 : static_cast<int64_t>(list->size());
}

class Gathers {
 public:
  Gathers(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : a_(a), rank_(rank), result_(result), sink_(sink), found_(FindWindows(a, rank)) {}

  void JudgeAll() {
    JudgeOrder();
    JudgeCounts();
    JudgeLostPrefetch(a_, rank_, found_, result_, sink_);
  }

 private:
  const Event& EventAt(int64_t index) const { return At(a_.trace(rank_).events, index); }

  // Gathers come in the order in which their units are needed: forward order in forward, reverse in
  // backward.
  void JudgeOrder() {
    const Window* before = nullptr;
    for (const Window& window : found_.windows) {
      const InstanceFacts& facts = a_.Facts(size_t(window.instance));
      if (window.unit < 0 || !ShardsParams(facts.spec()) || facts.Interleaves()) continue;
      Judge(result_, {"FS-08", "FS-44"});
      if (facts.spec().recompute) Judge(result_, {"FS-07"});
      if (window.reads.empty()) {
        JudgeUnread(window, facts);
        continue;
      }
      const bool comparable = before != nullptr && before->instance == window.instance &&
                              before->call == window.call && before->gather != window.gather;
      if (comparable && window.reads.front() < before->reads.front()) {
        Finding finding = a_.At("FS-08", rank_, before->gather);
        finding.expected =
            "unit " + facts.ModuleName(window.unit, rank_) + " gathered first: it is needed first";
        finding.seen = "unit " + facts.ModuleName(before->unit, rank_);
        finding.message = "units are gathered in another order than they are needed";
        sink_.Add(std::move(finding));
      }
      before = &window;
    }
  }

  // Gathered and dropped: wasted, but no rule but this is broken if it was awaited. A forward that
  // is run again in backward is another matter: it gathers what its own order says next.
  void JudgeUnread(const Window& window, const InstanceFacts& facts) {
    if (!Wasted(window, facts)) return;
    wasted_.push_back(&window);
    const bool again = facts.spec().recompute && AheadInBackward(window, facts);
    const bool early = DroppedAndWanted(window);
    Finding finding = a_.At(again ? "FS-07" : early ? "FS-08" : "FS-44", rank_, window.gather);
    finding.expected = "a gather that is read before it is released";
    finding.seen = "unit " + facts.ModuleName(window.unit, rank_) + " gathered and never read";
    finding.message = "unit " + facts.ModuleName(window.unit, rank_) +
                      (again   ? " is gathered for nothing by a forward that is run again"
                       : early ? " is gathered before it is its turn, dropped, and gathered again"
                               : " is gathered for nothing: prefetched in the wrong direction, or "
                                 "past the end");
    sink_.Add(std::move(finding));
  }

  bool Wasted(const Window& window, const InstanceFacts& facts) const {
    return window.unit >= 0 && window.reads.empty() && Ended(window.instance, window.call) &&
           !facts.UnitMayBeAbsent(rank_, window.call, window.unit);
  }

  // Forward or backward of a microbatch, by a compute event.
  static std::pair<int32_t, bool> PhaseOf(const Event& event) {
    return {event.microbatch, event.phase != SPF_FWD || event.flag};
  }

  // The same forward or backward gathers it again, and reads it then.
  bool DroppedAndWanted(const Window& window) const {
    const auto& events = a_.trace(rank_).events;
    int64_t last = window.gather;
    while (last >= 0 && !(At(events, last).kind == EventKind::kCompute &&
                          At(events, last).instance == window.instance)) {
      --last;
    }
    return last >= 0 &&
           std::any_of(found_.windows.begin(), found_.windows.end(), [&](const Window& other) {
             return other.unit == window.unit && other.instance == window.instance &&
                    other.call == window.call && other.gather > window.gather &&
                    !other.reads.empty() &&
                    PhaseOf(At(events, other.reads.front())) == PhaseOf(At(events, last));
           });
  }

  // In backward, where an earlier unit computes next: ahead in forward order.
  bool AheadInBackward(const Window& window, const InstanceFacts& facts) const {
    const auto& events = a_.trace(rank_).events;
    for (auto at = events.begin() + window.gather; at != events.end(); ++at) {
      const bool computes = at->kind == EventKind::kCompute && at->instance == window.instance &&
                            at->id >= 0 && at->id < facts.node_count(rank_);
      const int32_t unit =
          computes ? facts.UnitOfModule(facts.Node(at->id, rank_).module, rank_) : int32_t{-1};
      if (unit < 0) continue;
      return (at->phase != SPF_FWD || at->flag) && unit < window.unit;
    }
    return false;
  }

  bool Ended(int instance, int32_t call) const {
    const auto& events = a_.trace(rank_).events;
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCallEnd && event.instance == instance &&
             event.call == call && event.status == SPF_OK;
    });
  }

  // How often a unit is entered in one forward of a microbatch: more than once if its module is
  // reused.
  int64_t Entries(const InstanceFacts& facts, const spf_program& program, int32_t unit) const {
    int64_t entries = 0;
    int32_t last = -1;
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const int32_t in = facts.UnitOfModule(program.nodes[i].module, rank_);
      entries += in == unit && last != unit;
      last = in;
    }
    return std::max<int64_t>(entries, 1) + (facts.spec().model.reused ? 1 : 0);
  }

  void JudgeCounts() {
    std::map<std::tuple<int, int32_t, int32_t>, std::pair<int64_t, int64_t>>
        gathered;  // (elements, last event)
    for (const Carried& carried : CarriedBy(a_, rank_)) {
      if (!carried.gather) continue;
      const Event& event = EventAt(carried.event);
      for (const Chunk& chunk : carried.params) {
        if (WastedAt(carried.event, event, chunk.content.param)) continue;  // FS-44
        auto& [elements, last] = gathered[{event.instance, event.call, chunk.content.param}];
        elements += chunk.length / std::max<int64_t>(1, chunk.content.width);
        last = carried.event;
      }
    }
    for (size_t i = 0; i < a_.n_instances(); ++i) Judge(result_, {"FS-35"});
    for (const auto& [place, sum] : gathered) {
      const auto& [instance, call, key] = place;
      const InstanceFacts& facts = a_.Facts(size_t(instance));
      const ParamFacts& param = facts.ByKey(key);
      const int64_t allowed = Allowed(facts, param, call);
      if (sum.first <= allowed * param.numel) continue;
      Finding finding = a_.At("FS-35", rank_, sum.second);
      finding.expected = "at most " + std::to_string(allowed) + " gathers of " + param.name +
                         " with " + facts.spec().strategy.Text();
      finding.seen = std::to_string(sum.first) + " elements gathered, the parameter has " +
                     std::to_string(param.numel);
      finding.message = param.name + " is gathered more often than the strategy needs";
      sink_.Add(std::move(finding));
    }
  }

  bool WastedAt(int64_t index, const Event& event, int32_t key) const {
    const int32_t unit = a_.Facts(event.instance).ByKey(key).unit;
    return std::any_of(wasted_.begin(), wasted_.end(), [&](const Window* window) {
      return window->gather <= index && index <= window->last_gather &&
             window->instance == event.instance && window->unit == unit;
    });
  }

  int64_t Allowed(const InstanceFacts& facts, const ParamFacts& param, int32_t call) const {
    const InstanceSpec& spec = facts.spec();
    if (spec.strategy == ShardingStrategy::kNoShard) return 0;
    // With init_device = meta the call behind create may bring them whole first.
    const bool brings = InitsLater(spec) && call > 0 && size_t(call) <= facts.calls().size() &&
                        facts.CallAt(call - 1).letter == 'c';
    if (!ShardsParams(spec)) return brings ? 2 : 1;
    const bool eval = a_.CallName(rank_, 0, call).starts_with("eval_step");
    int64_t entries = 1;
    if (param.unit >= 0 && size_t(call) < facts.calls().size() && facts.CallAt(call).step >= 0) {
      const spf_program& program = facts.model().Program(
          facts.CallAt(call).step, std::max(0, facts.DataRank(rank_)), facts.Place(rank_));
      entries = Entries(facts, program, param.unit);
    }
    const int64_t outer = spec.outer_strategy == OuterStrategy::kOptim &&
                                  Size(facts.OuterList(param.expert, rank_)) > 1
                              ? 1
                              : 0;
    // Where both microbatches are in one layer, its early release takes weights that the forward
    // gathers again.
    const int64_t early = !eval && spec.early_release ? spec.microbatches : 0;
    const int64_t times = eval ? 1 : RunAgainApart(facts, param) || ReadAgain(spec, param) ? 3 : 2;
    const int64_t copies = !eval && HasBackwardCopy(spec, param) ? 2 : 1;
    return times * spec.microbatches * entries + early + outer * copies;
  }

  static bool HasBackwardCopy(const InstanceSpec& spec, const ParamFacts& param) {
    return spec.backward_copies && param.unit >= 0;
  }
  // Backward reads its own copy, and forward's where modules with parameters are run again.
  static bool ReadAgain(const InstanceSpec& spec, const ParamFacts& param) {
    if (!HasBackwardCopy(spec, param)) return false;
    return spec.recompute || spec.recompute_modules.find("norm") != std::string::npos ||
           spec.recompute_modules.find("moe") != std::string::npos;
  }

  // A unit that is a part of a layer: the layer is run again as a whole, and then its parts go
  // backward.
  bool RunAgainApart(const InstanceFacts& facts, const ParamFacts& param) const {
    if (!facts.spec().recompute || param.unit < 0) return false;
    const spf_model& tables = facts.model().Tables(facts.Place(rank_));
    int32_t layer = param.unit;
    while (layer >= 0 && std::string_view(tables.modules[layer].type) != "TransformerLayer")
      layer = tables.modules[layer].parent;
    return layer >= 0 && layer != param.unit;
  }

  const Analysis& a_;
  const int32_t rank_;
  CheckResult& result_;
  FindingSink& sink_;
  const RankWindows found_;
  std::vector<const Window*> wasted_;  // FS-44
};

// With check_for_nan_in_grad: COUNT_NONFINITE (or a kernel of the engine's own) reads a gradient
// before it is sent.
void JudgeGuard(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink) {
  std::map<int64_t, const Carried*> reductions;  // by event
  for (const Carried& carried : CarriedBy(a, rank)) {
    if (carried.reduction) reductions.emplace(carried.event, &carried);
  }
  for (const Carried& carried : PartSumsBy(a, rank)) reductions.emplace(carried.event, &carried);
  const Trace& trace = a.trace(rank);
  std::set<int32_t> looked_at;  // keys whose current gradient was examined
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    const auto index = static_cast<int64_t>(i);
    if (!a.Facts(event.instance).spec().check_for_nan) continue;
    Judge(result, {"FS-26"});
    const EventFlow& flow = a.flow().At(rank, index);
    const bool looks = event.kind == EventKind::kLaunch &&
                       (event.id == SPF_K_COUNT_NONFINITE || event.id == SPF_K_CUSTOM);
    for (size_t k = 0; k < flow.before.size(); ++k) {
      for (const Chunk& chunk :
           looks ? Only(flow.before[k], Content::Kind::kGrad) : std::vector<Chunk>{}) {
        looked_at.insert(chunk.content.param);
      }
      for (const Chunk& chunk : event.kind == EventKind::kCompute
                                    ? Only(flow.after[k], Content::Kind::kGrad)
                                    : std::vector<Chunk>{}) {
        looked_at.erase(chunk.content.param);
      }
    }
    const auto reduction = reductions.find(index);
    if (reduction == reductions.end()) continue;
    for (const Chunk& chunk : reduction->second->grads) {
      std::vector<Contribution> room;
      const InstanceFacts& facts = a.Facts(event.instance);
      const auto& set = OfThisPart(facts, facts.ByKey(chunk.content.param), rank,
                                   a.flow().sets().Get(chunk.content.tag), room);
      const bool own = std::all_of(set.begin(), set.end(),
                                   [&](const Contribution& one) { return one.rank == rank; });
      if (!own || looked_at.contains(chunk.content.param)) continue;
      Finding finding = a.At("FS-26", rank, index);
      const std::string name = a.Facts(event.instance).ByKey(chunk.content.param).name;
      finding.expected = "the gradient of " + name + " examined before it is sent";
      finding.seen = "no COUNT_NONFINITE over it since it was written";
      finding.message = "check_for_nan_in_grad is set, but " + name +
                        " is reduced unexamined: a NaN would spread";
      sink.Add(std::move(finding));
      break;
    }
  }
}

}  // namespace

CheckResult CheckGatherOrder(const Analysis& a) {
  CheckResult result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"FS-07", "FS-08", "FS-35", "FS-44", "FS-45"});
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Gathers(a, rank, result, sink).JudgeAll();
  return result;
}

CheckResult CheckNanGuard(const Analysis& a) {
  CheckResult result;
  if (!a.has_case()) return result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= a.Facts(i).spec().check_for_nan;
  if (!asked) return result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"FS-26"});
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) JudgeGuard(a, rank, result, sink);
  return result;
}

CheckResult CheckOrder(const Analysis& a) {
  CheckResult result;
  if (!a.legal()) return result;
  result.Merge(CheckMarks(a));
  result.Merge(CheckGatherOrder(a));
  result.Merge(CheckNanGuard(a));
  return result;
}

}  // namespace shardproof
