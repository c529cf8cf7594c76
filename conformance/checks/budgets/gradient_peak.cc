// Units whose gradients are in a rank's memory whole at once (BU-01, BU-02).
//
// Counted in units, not bytes: padding, dtypes and a copy for the wire change nothing. Times are
// places in the host's issue order, in which memory is counted.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/checks/base/byte_map.h"
#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/base/reduces.h"
#include "conformance/checks/budgets/budgets.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// Of complete gradients of other units than the one whose backward runs.
constexpr size_t kMostUnreduced = 1, kMostHeld = 2;

// Instance, entry call, microbatch, unit.
using OfUnit = std::tuple<int32_t, int32_t, int32_t, int32_t>;

using OfParam = std::pair<OfUnit, int32_t>;  // key

bool Asks(const InstanceFacts& facts, int32_t rank) {
  const InstanceSpec& spec = facts.spec();
  return ShardsGrads(spec) && !facts.Interleaves() && facts.units(rank).size() > 1 &&
         MostRanksOfAParameter(spec) > 1;
}

class GradientPeak : RankCheck {
 public:
  GradientPeak(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      for (const Chunk& chunk : carried.grads) reduced_[carried.event].push_back(chunk);
    }
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      for (const auto& [of, range] : Adds(trace_.events[i])) {
        const auto& [unit, param] = of;
        complete_[unit] = static_cast<int64_t>(i);
        last_add_[unit][param] = static_cast<int64_t>(i);
      }
    }
  }

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Step(static_cast<int64_t>(i), trace_.events[i]);
  }

 private:
  // Gradients of units, sharded over several ranks, that the event adds to.
  std::vector<std::pair<OfParam, Range>> Adds(const Event& event) const {
    std::vector<std::pair<OfParam, Range>> adds;
    if (event.kind != EventKind::kCompute || !Asks(a_.Facts(event.instance), rank_)) return adds;
    const InstanceFacts& facts = a_.Facts(event.instance);
    if (event.id < 0 || event.id >= facts.node_count(rank_)) return adds;
    const spf_uses& uses = facts.Node(event.id, rank_).uses[event.phase];
    if (static_cast<uint32_t>(uses.n) != event.ranges.size()) return adds;
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table != SPF_IN_GRAD) continue;
      const ParamFacts& param = facts.Param(rank_, uses.use[i].id);
      const std::vector<int32_t>* ranks = facts.InnerList(param.expert, rank_);
      if (param.unit < 0 || param.frozen || ranks == nullptr || ranks->size() < 2) continue;
      const OfUnit unit{event.instance, event.call, event.microbatch, param.unit};
      adds.emplace_back(OfParam{unit, param.key}, trace_.ranges[event.ranges.begin + size_t(i)]);
    }
    return adds;
  }

  void Step(int64_t index, const Event& event) {
    switch (event.kind) {
      case EventKind::kFree:
      case EventKind::kRelease:
        held_.EraseBlock(event.alloc);
        return;
      case EventKind::kCallEnd:
        held_ = {};
        handed_.clear();
        sent_.clear();
        return;
      case EventKind::kCollective:
        return Collective(index, event);
      case EventKind::kCopy:
        for (const auto& [from, to] : CopiedRuns(trace_, event)) Copy(from, to);
        return;
      case EventKind::kLaunch:
        if (event.id == SPF_K_AXPBY && event.ranges.size() >= 2)
          return Copy(trace_.ranges[event.ranges.begin], trace_.ranges[event.ranges.begin + 1]);
        return Erase(event);
      case EventKind::kCompute:
        return Compute(index, event);
      default:
        return;
    }
  }

  // What is only written holds no gradient any more.
  void Erase(const Event& event) {
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      const Range& range = trace_.ranges[i];
      if (range.access == kWrite) held_.Erase(range.alloc, range.offset, End(range));
    }
  }
  static int64_t End(const Range& range) { return range.offset + range.length; }

  // The result is a shard, or, where it is whole, another requirement's.
  void Collective(int64_t index, const Event& event) {
    if (const Range* recv = RecvRange(trace_, event))
      held_.Erase(recv->alloc, recv->offset, End(*recv));
    const auto sent = reduced_.find(index);
    if (sent == reduced_.end()) return;
    for (const auto& [unit, params] : last_add_) {
      if (std::get<0>(unit) == event.instance && std::get<1>(unit) == event.call)
        Send(index, unit, params, sent->second);
    }
  }

  // A unit is handed to reductions with the last element of its last parameter.
  void Send(int64_t index, const OfUnit& unit, const std::map<int32_t, int64_t>& params,
            const std::vector<Chunk>& chunks) {
    bool some = false;
    for (const Chunk& chunk : chunks) {
      const auto param = params.find(chunk.content.param);
      if (param == params.end() || param->second >= index) continue;
      some = true;
      const int64_t width = std::max<int64_t>(1, chunk.content.width);
      sent_[{unit, param->first}].Put(0, chunk.content.element,
                                      chunk.content.element + chunk.length / width, true);
    }
    if (!some) return;
    const InstanceFacts& facts = a_.Facts(std::get<0>(unit));
    for (const auto& [key, last] : params) {
      int64_t elements = 0;
      for (const auto& piece : sent_[{unit, key}].Get(0, 0, facts.ByKey(key).numel))
        elements += piece.end - piece.begin;
      if (elements < facts.ByKey(key).numel) return;
    }
    handed_.insert(unit);
  }

  // A copy or cast of a gradient is as whole as the gradient.
  void Copy(const Range& from, const Range& to) {
    if (from.length <= 0) return;
    const auto copied = held_.Get(from.alloc, from.offset, End(from));
    if (to.access == kWrite) held_.Erase(to.alloc, to.offset, End(to));
    const auto scaled = [&](int64_t byte) {
      return to.offset + (byte - from.offset) * to.length / from.length;
    };
    for (const auto& piece : copied)
      held_.Put(to.alloc, scaled(piece.begin), scaled(piece.end), piece.value);
  }

  void Compute(int64_t index, const Event& event) {
    const auto adds = Adds(event);
    if (adds.empty()) return;
    Judge(result_, {"BU-01", "BU-02"});
    for (const auto& [of, range] : adds) held_.Put(range.alloc, range.offset, End(range), of.first);
    const OfUnit own = adds.front().first.first;
    std::set<int32_t> unreduced, held;  // units
    for (const auto& [unit, bytes] : held_.bytes()) {
      const auto last = complete_.find(unit);
      if (std::get<3>(unit) == std::get<3>(own) || last == complete_.end() || last->second >= index)
        continue;
      held.insert(std::get<3>(unit));
      if (!handed_.contains(unit)) unreduced.insert(std::get<3>(unit));
    }
    JudgePeak(index, event, unreduced, held);
  }

  void JudgePeak(int64_t index, const Event& event, const std::set<int32_t>& unreduced,
                 const std::set<int32_t>& held) {
    if (unreduced.size() > kMostUnreduced && told_.insert({event.instance, event.call, 1}).second)
      Add("BU-01", index, "at most one unit, beside the one whose backward runs, is not reduced",
          Names(event, unreduced),
          "complete gradients wait in memory for their reduction: the peak grows towards the whole "
          "model's gradients");
    if (held.size() > kMostHeld && told_.insert({event.instance, event.call, 2}).second)
      Add("BU-02", index, "full gradients of at most two units beside the one whose backward runs",
          Names(event, held),
          "full gradients are kept after their reduction: the peak grows towards the whole model's "
          "gradients");
  }
  std::string Names(const Event& event, const std::set<int32_t>& units) const {
    std::string names;
    for (const int32_t unit : units)
      names += (names.empty() ? "" : ", ") + a_.Facts(event.instance).ModuleName(unit, rank_);
    return names;
  }

  std::map<int64_t, std::vector<Chunk>> reduced_;          // by reduction: what it carries
  std::map<OfUnit, int64_t> complete_;                     // the last event that adds
  std::map<OfUnit, std::map<int32_t, int64_t>> last_add_;  // the same, by key
  std::map<OfParam, ByteMap<bool>> sent_;                  // in this call: elements, in one block
  std::set<OfUnit> handed_;                                // in this call, to a reduction
  ByteMap<OfUnit> held_;
  std::set<std::tuple<int32_t, int32_t, int>> told_;  // once in a call
};

}  // namespace

CheckResult CheckGradientPeak(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= Asks(a.Facts(i), a.Facts(i).spec().offset);
  if (!asked) return result;
  if (!a.has_flow()) {
    CannotJudge(result, {"BU-01", "BU-02"}, a.flow_why());
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) GradientPeak(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
