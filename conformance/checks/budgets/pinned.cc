// Pinned memory over train and eval steps (BU-03).
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/budgets/budgets.h"

namespace shardproof {

namespace {

class Pinned : RankCheck {
 public:
  Pinned(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i)
      Step(static_cast<int64_t>(i), trace_.events[i]);
  }

 private:
  struct OfInstance {
    std::map<int32_t, int64_t> blocks;
    int64_t bytes = 0, before = 0;
    int64_t most = -1;            // that a step may leave; -1: none has ended
    std::set<std::string> kinds;  // of calls that have ended: a first one may make what it keeps
  };

  void Step(int64_t index, const Event& event) {
    OfInstance& of = instances_[event.instance];
    if (event.kind == EventKind::kAlloc && event.id == SPF_PINNED) {
      of.blocks[event.alloc] = event.count;
      of.bytes += event.count;
    } else if (GivesBack(event.kind)) {
      const auto block = of.blocks.find(event.alloc);
      if (block == of.blocks.end()) return;
      of.bytes -= block->second;
      of.blocks.erase(block);
    } else if (event.kind == EventKind::kCallBegin) {
      of.before = of.bytes;
    } else if (event.kind == EventKind::kCallEnd && event.status == SPF_OK) {
      CallEnd(index, event, of);
    }
  }

  void CallEnd(int64_t index, const Event& event, OfInstance& of) {
    const std::string call = a_.CallName(rank_, event.instance, event.call);
    if (call.starts_with("destroy")) {
      of = OfInstance{};
      return;
    }
    const std::string kind = call.substr(0, call.find(' '));
    const bool steps = kind == "train_step" || kind == "eval_step";
    if (of.kinds.insert(kind).second || !steps) {
      if (of.most >= 0) of.most += std::max<int64_t>(0, of.bytes - of.before);
      if (of.most < 0 && steps) of.most = of.bytes;
      return;
    }
    Judge(result_, {"BU-03"});
    if (of.bytes <= of.most) return;
    Add("BU-03", index, "at most " + std::to_string(of.most) + " bytes, as after the first " + kind,
        std::to_string(of.bytes) + " bytes",
        "pinned memory grows from step to step: a host buffer is made in each " + kind +
            " and kept");
    of.most = of.bytes;
  }

  std::map<int32_t, OfInstance> instances_;
};

}  // namespace

CheckResult CheckPinned(const Analysis& a) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.memory && trace.provides.calls) continue;
    CannotJudge(result, {"BU-03"},
                "rank " + std::to_string(trace.rank) + "'s trace has no memory events or calls");
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Pinned(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
