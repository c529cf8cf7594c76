// What gathers bring, and how often: the owner's values after the last step, once.
#include <algorithm>
#include <map>

#include "conformance/checks/base/published.h"
#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/common/at.h"

namespace shardproof::layer_wise {

namespace {

class Gathers : RankCheck {
 public:
  Gathers(const Facts& facts, int32_t rank, CheckResult& result) : RankCheck(facts, rank, result) {}

  void Run() {
    for (const Gather& gather : facts_.At(rank_).gathers) {
      if (gather.group->world_ranks.size() < 2) continue;
      JudgeValues(gather);
      for (const Share& share : gather.shares) Count(gather, share);
    }
    for (size_t i = 0; i < a_.n_instances(); ++i) {
      const auto instance = static_cast<int32_t>(i);
      if (facts_.LayerWise(instance) && a_.Facts(i).InGrid(rank_)) JudgeInstance(instance);
    }
  }

 private:
  struct Sum {
    int64_t elements = 0, last = -1;
    int32_t call = -1;
  };
  using Place = std::tuple<int32_t, int32_t, int32_t>;  // instance, key, epoch

  const ParamFacts& P(int32_t instance, int32_t key) const {
    return facts_.Of(instance).ByKey(key);
  }
  bool Overlaps(int32_t instance) const { return facts_.spec(instance).overlap_param_gather; }
  std::string Call(int32_t instance, int32_t call) const {
    return a_.CallName(rank_, instance, call);
  }

  // From the owner, as its last step or load left them.
  void JudgeValues(const Gather& gather) {
    report_.Judged({"LW-10"});
    for (const Share& share : gather.shares) {
      const ParamFacts& param = P(gather.instance, share.key);
      if (param.frozen) continue;
      const int32_t owner = facts_.Owner(gather.instance, rank_, share.key);
      const std::string what = param.name + "[" + std::to_string(share.element) + "]";
      if (owner >= 0 && share.from != owner) {
        report_.Add("LW-10", rank_, gather.event,
                    what + " of its owner, rank " + std::to_string(owner),
                    "that of rank " + std::to_string(share.from),
                    WrongSource(gather, param, share.from, owner) + ", so its values are old");
        return;
      }
      const bool made_now =
          gather.epoch == gather.call && facts_.Publishes(gather.instance, share.key, gather.call);
      const int32_t want =
          made_now ? gather.call : facts_.VersionBefore(gather.instance, share.key, gather.call);
      if (want < 0 || facts_.versions().Same(gather.instance, share.key, share.version, want))
        continue;
      report_.Add(
          "LW-10", rank_, gather.event, what + " as of " + Call(gather.instance, want),
          "as of " + Call(gather.instance, share.version),
          "the gather brings values of " + param.name + " that are not those of the last step");
      return;
    }
  }

  std::string WrongSource(const Gather& gather, const ParamFacts& param, int32_t from,
                          int32_t owner) const {
    const Event& event = At(a_.trace(rank_).events, gather.event);
    if (event.collective != SPF_BROADCAST)
      return param.name + " is taken from a rank that does not own it";
    return "the broadcast's root is " + std::to_string(event.peer) + " (rank " +
           std::to_string(from) + "), but rank " + std::to_string(owner) + " owns " + param.name;
  }

  void Count(const Gather& gather, const Share& share) {
    Sum& sum = sums_[{gather.instance, share.key, gather.epoch}];
    const bool overlaps = Overlaps(gather.instance);
    const int64_t numel = P(gather.instance, share.key).numel;
    if (gather.epoch >= 0 && sum.elements < numel && overlaps == (gather.call == gather.epoch)) {
      report_.Add("LW-13", rank_, gather.event,
                  overlaps ? "gathered during the forward that follows " +
                                 Call(gather.instance, gather.epoch)
                           : "gathered before " + Call(gather.instance, gather.epoch) + " returns",
                  "gathered in " + Call(gather.instance, gather.call),
                  std::string("with overlap_param_gather ") + (overlaps ? "on" : "off") +
                      " this gather is in the wrong entry call");
    }
    sum.elements += share.elements;
    if (sum.elements > numel && sum.last >= 0 && gather.epoch >= 0) {
      report_.Add("LW-13", rank_, gather.event,
                  "one gather of " + P(gather.instance, share.key).name,
                  "another one, after that in " + Call(gather.instance, sum.call),
                  P(gather.instance, share.key).name +
                      " is gathered again although no step changed it: later microbatches, "
                      "evaluation and recomputation "
                      "find it published");
    }
    sum.last = gather.event;
    sum.call = gather.call;
    if (gather.epoch >= 0) return;
    report_.Add("LW-19", rank_, gather.event, "no gather before the first step",
                "a gather of " + P(gather.instance, share.key).name,
                "what create installed is overwritten by another rank's: a wrong initial value "
                "would go unnoticed");
  }

  // The first train_step after the epoch's call that must have gathered; -1: none.
  int32_t Deadline(int32_t instance, int32_t epoch) const {
    if (!Overlaps(instance)) return epoch;
    const auto& calls = facts_.Of(instance).calls();
    for (size_t call = size_t(epoch) + 1; call < calls.size(); ++call) {
      if (calls[call].letter == 't') return static_cast<int32_t>(call);
      if (calls[call].letter == 'l' || calls[call].letter == 'c') return -1;
    }
    return -1;
  }

  void JudgeInstance(int32_t instance) {
    report_.Judged({"LW-13", "LW-19"});
    const InstanceFacts& of = facts_.Of(instance);
    for (size_t i = 0; i < of.calls().size(); ++i) {
      const auto epoch = static_cast<int32_t>(i);
      if (of.calls()[i].letter != 't')
        continue;  // bytes from files have no name, so gathers after load are not counted
      const int32_t deadline = Deadline(instance, epoch);
      if (deadline < 0 || !CallCompleted(a_, instance, deadline) ||
          !CallCompleted(a_, instance, epoch))
        continue;
      for (int32_t id = 0; id < of.n_params(rank_); ++id)
        JudgeMissing(instance, epoch, deadline, of.Param(rank_, id));
    }
  }

  void JudgeMissing(int32_t instance, int32_t epoch, int32_t deadline, const ParamFacts& param) {
    const std::vector<int32_t>* list = facts_.List(instance, rank_, param.key);
    if (param.frozen || param.numel == 0 || list == nullptr || list->size() < 2) return;
    if (!facts_.Publishes(instance, param.key, epoch)) return;
    const auto at = sums_.find({instance, param.key, epoch});
    const int64_t seen = at == sums_.end() ? 0 : at->second.elements;
    if (seen >= param.numel) return;
    const auto& events = a_.trace(rank_).events;
    for (size_t i = events.size(); i-- > 0;) {
      const Event& event = events[i];
      if (event.kind != EventKind::kCallEnd || event.instance != instance || event.call != deadline)
        continue;
      report_.Add(
          "LW-13", rank_, static_cast<int64_t>(i),
          "one gather of " + param.name + " after " + Call(instance, epoch),
          std::to_string(seen) + " of " + std::to_string(param.numel) + " elements gathered",
          param.name + " is stepped by its owner, and its values never reach the other ranks");
      return;
    }
  }

  std::map<Place, Sum> sums_;
};

}  // namespace

CheckResult CheckGathers(const Facts& facts) {
  CheckResult result;
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Gathers(facts, rank, result).Run();
  return result;
}

}  // namespace shardproof::layer_wise
