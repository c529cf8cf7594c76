// Under the 1F1B overlap: does a unit come as a whole, or module by module?
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// Module by module is seen only where nothing may be gathered ahead.
bool Asks(const InstanceSpec& spec) {
  return spec.overlap_moe && spec.chunks == 1 && ShardsParams(spec) &&
         (spec.fine_grained_gather == 0 || spec.prefetch_limit_bytes == 0);
}

// One microbatch's forward or backward of a unit.
struct Pass {
  int32_t call = -1, microbatch = -1, unit = -1;
  bool forward = false;
  auto operator<=>(const Pass&) const = default;
};

class FineGrained : RankCheck {
 public:
  FineGrained(const Analysis& a, int32_t rank, size_t instance, CheckResult& result,
              FindingSink& sink)
      : RankCheck(a, rank, result, sink),
        facts_(a.Facts(instance)),
        instance_(static_cast<int32_t>(instance)) {
    for (const Carried& carried : CarriedBy(a, rank)) {
      if (!carried.gather || At(trace_.events, carried.event).instance != instance_) continue;
      if (IsOuter(a, rank, carried)) continue;
      const Range* recv = RecvRange(trace_, At(trace_.events, carried.event));
      for (const Chunk& chunk : carried.params)
        gathers_[PlaceOf(chunk.content.param, recv->alloc)].insert(carried.event);
    }
  }

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = At(trace_.events, i);
      if (event.kind != EventKind::kCompute || event.instance != instance_) continue;
      if (event.id < 0 || event.id >= facts_.node_count(rank_)) continue;
      const spf_node& node = facts_.Node(event.id, rank_);
      const int32_t unit = facts_.UnitOfModule(node.module, rank_);
      if (unit < 0 || facts_.CallAt(event.call).letter != 't') continue;
      const Pass pass{event.call, event.microbatch, unit, event.phase == SPF_FWD && !event.flag};
      const auto index = static_cast<int64_t>(i);
      const int64_t begin = begins_.try_emplace(pass, index).first->second;
      const spf_uses& uses = node.uses[event.phase];
      for (int32_t k = 0; k < uses.n; ++k) {
        if (uses.use[k].table != SPF_IN_PARAM || size_t(uses.n) != event.ranges.size()) continue;
        const Range& range = At(trace_.ranges, event.ranges.begin + size_t(k));
        Read(facts_.Param(rank_, uses.use[k].id), range.alloc, pass, begin, index);
      }
    }
  }

 private:
  // By key; where forward and backward read two copies, each in its block.
  using Place = std::pair<int32_t, int32_t>;
  Place PlaceOf(int32_t key, int32_t alloc) const {
    return {key, facts_.spec().backward_copies ? alloc : -1};
  }

  void Read(const ParamFacts& param, int32_t alloc, const Pass& pass, int64_t begin,
            int64_t index) {
    if (param.unit != pass.unit) return;
    const Place place = PlaceOf(param.key, alloc);
    const auto known = gathers_.find(place);
    if (known == gathers_.end()) return;  // nobody shares it out
    const auto after = known->second.upper_bound(index);
    if (after == known->second.begin()) return;
    const int64_t gather = *std::prev(after);
    int64_t& last = last_reads_[place];
    const bool for_another = last > gather;  // what the other microbatch gathered is still there
    last = index;
    if (facts_.spec().fine_grained_gather == 0) {
      JudgeWhole(param, gather, begin, index);
    } else if (param.expert && pass.forward && !for_another && index > begin) {
      JudgeApart(param, gather, begin);
    }
  }

  void JudgeWhole(const ParamFacts& param, int64_t gather, int64_t begin, int64_t index) {
    if (index == begin) return;  // the first operation's own parameters say nothing
    Judge(result_, {"KN-14"});
    if (gather < begin || !told_.insert(gather).second) return;
    Add("KN-14", gather,
        "all of unit " + facts_.ModuleName(param.unit, rank_) +
            " gathered before its first operation, event " + std::to_string(begin),
        param.name + " gathered afterwards",
        "fine_grained_param_gather = 0, but the unit's parameters come module by module");
  }

  // Experts are read by nodes behind the dispatch; what stands before it is dense.
  void JudgeApart(const ParamFacts& param, int64_t gather, int64_t begin) {
    Judge(result_, {"KN-14"});
    if (gather > begin || !told_.insert(gather).second) return;
    Add("KN-14", gather,
        "experts of unit " + facts_.ModuleName(param.unit, rank_) +
            " gathered behind its first operation, event " + std::to_string(begin),
        "gathered before it",
        "fine_grained_param_gather = 1 and nothing is to be gathered ahead, but " + param.name +
            " comes with the whole unit");
  }

  const InstanceFacts& facts_;
  const int32_t instance_;
  std::map<Place, std::set<int64_t>> gathers_;  // events
  std::map<Pass, int64_t> begins_;              // its first operation
  std::map<Place, int64_t> last_reads_;
  std::set<int64_t> told_;  // gathers
};

}  // namespace

CheckResult CheckFineGrained(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result);
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (!Asks(a.Facts(i).spec())) continue;
    if (!a.has_flow()) {
      CannotJudge(result, {"KN-14"}, a.flow_why());
      continue;
    }
    for (int32_t rank = 0; rank < a.ranks(); ++rank) FineGrained(a, rank, i, result, sink).Run();
  }
  return result;
}

}  // namespace shardproof
