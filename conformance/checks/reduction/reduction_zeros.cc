// What reductions carry that is no gradient: of frozen parameters (FS-10), and of those that a
// backward does not use (FS-11). Zeros have no name, so both are counted.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/base/expected_grads.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

// What one member sends in a reduction.
struct Sent {
  int32_t rank = 0;
  int64_t event = -1;
  int64_t elements = 0;
  const std::vector<Chunk>* chunks = nullptr;
};

bool IsNumber(const Content& content) {
  return content.kind != Kind::kPoison && content.kind != Kind::kFill;
}

class Zeros {
 public:
  Zeros(const Analysis& a, CheckResult& result) : a_(a), result_(result), sink_(result) {
    for (size_t i = 0; i < a.n_instances(); ++i) expected_.emplace_back(a, static_cast<int>(i));
    for (int32_t rank = 0; rank < a.ranks(); ++rank) Collect(rank);
  }

  void Run() {
    for (const auto& [place, members] : operations_) {
      JudgeFrozen(members);
      JudgeMembers(members);
    }
    for (const auto& [place, carried] : of_call_) JudgeLeftOut(place, carried);
  }

 private:
  // Reductions of one rank in one train_step, over one list of ranks.
  using Place = std::tuple<int, int32_t, int32_t, std::vector<int32_t>>;  // instance, call, rank
  struct OfCall {
    int64_t elements = 0, last = -1;
    std::map<int32_t, int64_t> own;  // by key: elements of this rank's own gradient
  };

  const Event& EventOf(const Sent& sent) const {
    return At(a_.trace(sent.rank).events, sent.event);
  }
  const InstanceFacts& FactsOf(const Sent& sent) const { return a_.Facts(EventOf(sent).instance); }

  // Members meet at equal places on their communicator.
  void Collect(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    std::map<std::string, int64_t> position;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCollective || event.group < 0) continue;
      const GroupInfo& group = At(trace.groups, event.group);
      const int64_t at = position[group.comm]++;
      const auto index = static_cast<int64_t>(i);
      const Range* range = SendRange(trace, event);
      if (group.world_ranks.size() < 2 || !IsReduction(event.collective) || range == nullptr ||
          !IsDtype(event.dtype))
        continue;
      if (!a_.CallName(rank, event.instance, event.call).starts_with("train_step")) continue;
      const Sent sent{rank, index, range->length / static_cast<int64_t>(DtypeBytes(event.dtype)),
                      &a_.flow().At(rank, index).before[RangeIndex(trace, event, range)]};
      operations_[{group.comm, at}].push_back(sent);
      Count(sent,
            of_call_[{static_cast<int>(event.instance), event.call, rank, group.world_ranks}]);
    }
  }

  void Count(const Sent& sent, OfCall& of) {
    of.elements += sent.elements;
    of.last = sent.event;
    for (const Chunk& chunk : Only(*sent.chunks, Kind::kGrad)) {
      std::vector<Contribution> room;
      const InstanceFacts& facts = FactsOf(sent);
      const auto& set = OfThisPart(facts, facts.ByKey(chunk.content.param), sent.rank,
                                   a_.flow().sets().Get(chunk.content.tag), room);
      const bool own = std::all_of(set.begin(), set.end(),
                                   [&](const Contribution& one) { return one.rank == sent.rank; });
      if (own)
        of.own[chunk.content.param] += chunk.length / std::max<int64_t>(1, chunk.content.width);
    }
  }

  static bool AnyFrozen(const InstanceFacts& facts, int32_t rank) {
    for (int32_t id = 0; id < facts.n_params(rank); ++id) {
      if (facts.Param(rank, id).frozen) return true;
    }
    return false;
  }
  // The elements of the smallest frozen parameter.
  static int64_t SmallestFrozen(const InstanceFacts& facts, int32_t rank) {
    int64_t smallest = INT64_MAX;
    for (int32_t id = 0; id < facts.n_params(rank); ++id) {
      const ParamFacts& param = facts.Param(rank, id);
      if (param.frozen) smallest = std::min(smallest, param.numel);
    }
    return smallest;
  }

  // Microbatches of the call in which the rank's backward adds to the parameter's gradient.
  int64_t Uses(size_t instance, int32_t call, int32_t rank, int32_t key) {
    int64_t uses = 0;
    for (int32_t m = 0; m < a_.Facts(instance).spec().microbatches; ++m)
      uses += !At(expected_, static_cast<int>(instance)).Nodes(call, rank, m, key).empty();
    return uses;
  }
  // Every trainable parameter gets a gradient in every microbatch.
  bool AllUsed(const Sent& sent) {
    const InstanceFacts& facts = FactsOf(sent);
    const Event& event = EventOf(sent);
    for (int32_t id = 0; id < facts.n_params(sent.rank); ++id) {
      const ParamFacts& param = facts.Param(sent.rank, id);
      const int64_t uses = Uses(event.instance, event.call, sent.rank, param.key);
      if (!param.frozen && uses < facts.spec().microbatches) return false;
    }
    return true;
  }

  // What goes over the outer ranks are shards of inner reductions, and a shard may be padding
  // alone.
  bool OfShards(const Sent& sent) const {
    const InstanceFacts& facts = FactsOf(sent);
    const auto& ranks = At(a_.trace(sent.rank).groups, EventOf(sent).group).world_ranks;
    const auto over = [&](bool expert) {
      const std::vector<int32_t>* outer = facts.OuterList(expert, sent.rank);
      const std::vector<int32_t>* inner = facts.InnerList(expert, sent.rank);
      return outer != nullptr && *outer == ranks && inner != nullptr && inner->size() > 1;
    };
    return over(false) || over(true);
  }

  // An operation on gradients in which no member has one, although every trainable parameter has.
  // That frozen parameters are gathered and released like others is FS-02's and FS-03's to say.
  void JudgeFrozen(const std::vector<Sent>& members) {
    const Sent& first = members.front();
    const Event& event = EventOf(first);
    if (!AnyFrozen(FactsOf(first), first.rank)) return;
    Judge(result_, {"FS-10"});
    const bool of_grads = event.purpose == SPF_FOR_GRAD || event.purpose == SPF_FOR_OUTER_GRAD ||
                          event.purpose == SPF_FOR_OTHER;
    const bool real = event.dtype == SPF_F32 || event.dtype == SPF_BF16;
    if (!of_grads || !real || OfShards(first) ||
        first.elements < SmallestFrozen(FactsOf(first), first.rank))
      return;
    for (const Sent& member : members) {
      for (const Chunk& chunk : *member.chunks) {
        if (IsNumber(chunk.content)) return;
      }
      if (!AllUsed(member)) return;
    }
    Add("FS-10", first, "reductions of trainable parameters, which all have a gradient here",
        std::to_string(first.elements) + " elements that no member has computed",
        "a reduction carries no gradient: those of frozen parameters are not reduced");
  }

  // Where other members have a gradient, a rank that does not use the parameter sends zeros.
  void JudgeMembers(const std::vector<Sent>& members) {
    for (const Sent& member : members) {
      for (const Chunk& chunk : *member.chunks) {
        if (chunk.content.kind != Kind::kPoison && chunk.content.kind != Kind::kParam) continue;
        for (const Sent& other : members) {
          if (const ParamFacts* param = GradAt(other, chunk)) JudgeGarbage(member, chunk, *param);
        }
      }
    }
  }
  const ParamFacts* GradAt(const Sent& sent, const Chunk& where) const {
    for (const Chunk& chunk : *sent.chunks) {
      const bool overlaps =
          chunk.offset < where.offset + where.length && where.offset < chunk.offset + chunk.length;
      if (overlaps && chunk.content.kind == Kind::kGrad)
        return &FactsOf(sent).ByKey(chunk.content.param);
    }
    return nullptr;
  }
  void JudgeGarbage(const Sent& sent, const Chunk& chunk, const ParamFacts& param) {
    const Event& event = EventOf(sent);
    if (Uses(event.instance, event.call, sent.rank, param.key) > 0) return;
    Judge(result_, {"FS-11"});
    Add("FS-11", sent, "zeros: this rank does not use " + param.name, a_.ContentText(chunk.content),
        "rank " + std::to_string(sent.rank) + " does not use " + param.name +
            " in this step, and adds other bytes than zeros to its gradient");
  }

  // All of a list's trainable parameters are reduced, also those that nobody uses. What is short is
  // theirs if the gradients of all others went.
  void JudgeLeftOut(const Place& place, const OfCall& carried) {
    const auto& [instance, call, rank, list] = place;
    const InstanceFacts& facts = a_.Facts(size_t(instance));
    const int64_t times = ShardsGrads(facts.spec()) ? facts.spec().microbatches : 1;
    int64_t want = 0;
    std::string unused;
    std::set<int32_t> seen;
    for (int32_t id = 0; id < facts.n_params(rank); ++id) {
      const ParamFacts& param = facts.Param(rank, id);
      const std::vector<int32_t>* inner = facts.InnerList(param.expert, rank);
      if (param.frozen || inner == nullptr || *inner != list || !seen.insert(param.key).second)
        continue;
      const int64_t uses = std::min(times, Uses(size_t(instance), call, rank, param.key));
      const auto own = carried.own.find(param.key);
      if ((own == carried.own.end() ? 0 : own->second) != uses * param.numel) return;
      if (uses < times) unused += (unused.empty() ? "" : ", ") + param.name;
      want += times * param.numel;
    }
    if (unused.empty() || !Ended(rank, instance, call)) return;
    Judge(result_, {"FS-11"});
    if (carried.elements >= want) return;
    Add("FS-11", {rank, carried.last, 0, nullptr},
        std::to_string(want) + " elements: all trainable parameters, " +
            (times > 1 ? "in each microbatch" : "once"),
        std::to_string(carried.elements),
        "a parameter that the backward does not use is left out of its reduction (one of " +
            unused + "): it takes part with zeros");
  }
  bool Ended(int32_t rank, int instance, int32_t call) const {
    const auto& events = a_.trace(rank).events;
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.kind == EventKind::kCallEnd && event.instance == instance &&
             event.call == call && event.status == SPF_OK;
    });
  }

  void Add(const char* requirement, const Sent& sent, std::string expected, std::string seen,
           std::string message) {
    sink_.Add(a_.At(requirement, sent.rank, sent.event), std::move(expected), std::move(seen),
              std::move(message));
  }

  const Analysis& a_;
  CheckResult& result_;
  FindingSink sink_;
  std::vector<ExpectedGrads> expected_;
  std::map<std::pair<std::string, int64_t>, std::vector<Sent>> operations_;
  std::map<Place, OfCall> of_call_;
};

}  // namespace

CheckResult CheckZeros(const Analysis& a) {
  CheckResult result;
  Zeros(a, result).Run();
  return result;
}

}  // namespace shardproof
