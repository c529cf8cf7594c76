// Who publishes and steps which parameter, and whether all agree to skip a step.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/published.h"
#include "conformance/checks/layer_wise/layer_wise.h"

namespace shardproof::layer_wise {

namespace {

class Ownership {
 public:
  Ownership(const Facts& facts, int32_t instance, CheckResult& result)
      : facts_(facts),
        a_(facts.a()),
        instance_(instance),
        of_(facts.Of(instance)),
        report_(facts, result) {}

  void Run() {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      if (!of_.InGrid(rank)) continue;
      JudgeFrozen(rank);
      JudgeSteps(rank);
      for (int32_t id = 0; id < of_.n_params(rank); ++id) JudgeOwner(rank, of_.Param(rank, id));
    }
    for (size_t call = 0; call < of_.calls().size(); ++call) {
      if (of_.calls()[call].letter == 't') JudgeDecision(static_cast<int32_t>(call));
    }
  }

 private:
  static std::string Ranks(const std::map<int32_t, int64_t>& ranks) {
    std::vector<int32_t> list;
    for (const auto& [rank, elements] : ranks) list.push_back(rank);
    return "ranks " + ListText(list);
  }

  // Seen once for each group: by its first rank.
  void JudgeOwner(int32_t rank, const ParamFacts& param) {
    const std::vector<int32_t>* list = of_.FullList(param.expert, rank);
    if (param.frozen || param.numel == 0 || list == nullptr || list->front() != rank) return;
    const int32_t owner = facts_.Owner(instance_, rank, param.key);
    report_.Judged({"LW-01", "LW-02", "LW-03"});
    for (size_t i = 0; i < of_.calls().size(); ++i) {
      const auto call = static_cast<int32_t>(i);
      const char letter = of_.calls()[i].letter;
      if ((letter != 't' && letter != 'l' && letter != 'c') || !Published(call)) continue;
      if (!CallCompleted(a_, instance_, call)) continue;
      const std::map<int32_t, int64_t>& by = facts_.Publishers(instance_, rank, param.key, call);
      if (by.empty()) {
        Add("LW-01", rank, call, "one owner among ranks " + ListText(*list), "nobody",
            "no rank of the group owns " + param.name + ": nobody publishes it");
        continue;
      }
      const int64_t most = std::max_element(by.begin(), by.end(), [](const auto& x, const auto& y) {
                             return x.second < y.second;
                           })->second;
      if (most < param.numel) {
        Add("LW-02", by.begin()->first, call,
            "all " + std::to_string(param.numel) + " elements by one rank",
            "at most " + std::to_string(most) + ", by " + Ranks(by),
            param.name + " is split over ranks: Newton-Schulz needs the whole matrix");
      } else if (by.size() > 1) {
        Add("LW-01", by.rbegin()->first, call, "one owner", Ranks(by),
            param.name + " is published by several ranks");
      } else if (owner >= 0 && by.begin()->first != owner) {
        Add("LW-03", by.begin()->first, call, "rank " + std::to_string(owner) + ", as before",
            "rank " + std::to_string(by.begin()->first),
            "the owner of " + param.name + " changes: its optimizer state is on another rank");
      }
    }
  }

  // Any parameter is published in the call: it was not skipped.
  bool Published(int32_t call) const {
    for (int32_t key = 0; key < of_.n_keys(); ++key) {
      if (facts_.Publishes(instance_, key, call)) return true;
    }
    return false;
  }

  void JudgeFrozen(int32_t rank) {
    report_.Judged({"LW-06"});
    for (const Gather& gather : facts_.At(rank).gathers) {
      if (gather.instance != instance_) continue;
      for (const Share& share : gather.shares) {
        if (of_.ByKey(share.key).frozen) Frozen(rank, gather.event, share.key, "gathered");
      }
    }
    for (const Reduction& reduction : facts_.At(rank).reductions) {
      if (reduction.instance != instance_) continue;
      for (const Chunk& chunk : reduction.grads) {
        if (of_.ByKey(chunk.content.param).frozen)
          Frozen(rank, reduction.event, chunk.content.param, "reduced");
      }
    }
  }
  void Frozen(int32_t rank, int64_t event, int32_t key, const std::string& what) {
    report_.Add("LW-06", rank, event, "no collective of a frozen parameter",
                of_.ByKey(key).name + " " + what,
                of_.ByKey(key).name +
                    " is frozen, the same on all ranks and in no bucket, but it is " + what);
  }

  // Each owned parameter is stepped once, by its optimizer, and nothing else is stepped.
  void JudgeSteps(int32_t rank) {
    std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, int64_t>>
        stepped;  // (call, key) -> elements, last event
    std::set<std::pair<int32_t, int32_t>> in_parts;
    for (const Update& update : facts_.At(rank).updates) {
      if (update.instance != instance_) continue;
      report_.Judged({"LW-04", "LW-34"});
      auto& [elements, last] = stepped[{update.call, update.key}];
      elements += update.elements;
      last = update.event;
      const ParamFacts& param = of_.ByKey(update.key);
      const int32_t want = KernelOf(param);
      if (IsPartOfAdamw(rank, update, want)) {
        in_parts.insert({update.call, update.key});
        continue;
      }
      if (update.kernel == SPF_K_CUSTOM || want < 0 || update.kernel == want) continue;
      report_.Add(
          "LW-34", rank, update.event,
          want == SPF_K_ADAMW ? "AdamW" : "another optimizer than AdamW",
          update.kernel == SPF_K_ADAMW ? "AdamW" : "another one",
          param.name + " is stepped by another kind of optimizer than the case's rule gives it");
    }
    for (const auto& [place, sum] : stepped) {
      const auto& [call, key] = place;
      const ParamFacts& param = of_.ByKey(key);
      const int32_t owner = facts_.Owner(instance_, rank, key);
      if (owner >= 0 && owner != rank) {
        report_.Add("LW-04", rank, sum.second,
                    "stepped by its owner, rank " + std::to_string(owner), "stepped here too",
                    param.name +
                        " is stepped by a rank that does not own it: state is kept more than once");
      } else if ((sum.first > param.numel && !in_parts.contains(place)) ||
                 (sum.first < param.numel && CallCompleted(a_, instance_, call))) {
        report_.Add("LW-34", rank, sum.second, std::to_string(param.numel) + " elements stepped",
                    std::to_string(sum.first),
                    param.name + " is not stepped exactly once as a whole");
      }
    }
  }

  // AdamW of single operations, as torch.optim's without foreach and fused: weight decay, and what
  // was computed from moments. Numbers tell whether they add up to one step (FS-24). Of a rank that
  // has a kernel for AdamW nothing is.
  bool IsPartOfAdamw(int32_t rank, const Update& update, int32_t want) const {
    const std::vector<Update>& all = facts_.At(rank).updates;
    return want == SPF_K_ADAMW && update.kernel == SPF_K_AXPBY && !update.of_gradient &&
           std::none_of(all.begin(), all.end(),
                        [](const Update& other) { return other.kernel == SPF_K_ADAMW; });
  }

  // The kernel that changes the weights; -1: any.
  int32_t KernelOf(const ParamFacts& param) const {
    const Choice<Optimizer>& optimizer = of_.spec().optimizer;
    if (!optimizer.known()) return -1;
    if (optimizer == Optimizer::kAdamw) return SPF_K_ADAMW;
    if (optimizer == Optimizer::kSgd) return SPF_K_AXPBY;
    return param.matrix ? SPF_K_AXPBY : SPF_K_ADAMW;
  }
  // A step updates all parameters or none, on all ranks. An owner that updates others has not
  // skipped the step: it left one out.
  void JudgeDecision(int32_t call) {
    if (!CallCompleted(a_, instance_, call)) return;
    std::set<std::pair<int32_t, int32_t>> stepped;  // (rank, key)
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      for (const Update& update : facts_.At(rank).updates) {
        if (update.instance != instance_) continue;
        report_.Judged({"LW-32"});  // updates are seen: one that is not there was not made
        if (update.call != call) continue;
        stepped.insert({rank, update.key});
        if (Published(call)) continue;
        report_.Add("LW-32", rank, update.event, "a step that publishes nothing changes nothing",
                    of_.ByKey(update.key).name + " changed",
                    "the step is skipped, but the optimizer changed a parameter or its state");
        return;
      }
    }
    if (stepped.empty()) return;
    std::set<int32_t> steps;  // ranks
    for (const auto& [rank, key] : stepped) steps.insert(rank);
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      for (int32_t id = 0; of_.InGrid(rank) && id < of_.n_params(rank); ++id) {
        const ParamFacts& param = of_.Param(rank, id);
        if (param.frozen || param.numel == 0 || !facts_.Owns(instance_, rank, param.key)) continue;
        if (stepped.contains({rank, param.key}) || LeftOut(param.key, call)) continue;
        if (steps.contains(rank)) {
          Add("LW-34", rank, call, "the owner steps " + param.name + ", too",
              "it steps others of its parameters",
              param.name + " is left out of the step: no optimizer of its owner has it");
        } else {
          Add("LW-32", rank, call, "every owner steps, or none",
              "rank " + std::to_string(rank) + " steps nothing, others step",
              "ranks disagree whether the step is skipped: " + param.name + " stays behind");
        }
        break;
      }
    }
  }

  bool LeftOut(int32_t key, int32_t call) const {
    return Versions::MayLeaveOut(of_.spec()) && facts_.versions().Unchanged(instance_, key, call);
  }

  // A finding at the end of the call.
  void Add(const char* requirement, int32_t rank, int32_t call, std::string expected,
           std::string seen, std::string message) {
    const auto& events = a_.trace(rank).events;
    for (size_t i = events.size(); i-- > 0;) {
      const Event& event = events[i];
      if (event.kind != EventKind::kCallEnd || event.instance != instance_ || event.call != call)
        continue;
      report_.Add(requirement, rank, static_cast<int64_t>(i), std::move(expected), std::move(seen),
                  std::move(message));
      return;
    }
  }

  const Facts& facts_;
  const Analysis& a_;
  const int32_t instance_;
  const InstanceFacts& of_;
  Report report_;
};

}  // namespace

CheckResult CheckOwnership(const Facts& facts) {
  CheckResult result;
  for (size_t i = 0; i < facts.a().n_instances(); ++i) {
    if (facts.LayerWise(static_cast<int32_t>(i)))
      Ownership(facts, static_cast<int32_t>(i), result).Run();
  }
  Report(facts, result).Unseen({"LW-04", "LW-32", "LW-34"}, "no update of a parameter is seen");
  return result;
}

}  // namespace shardproof::layer_wise
