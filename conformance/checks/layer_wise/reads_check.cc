// What modules find where they read parameters, and gradients where they are first added to.
#include <algorithm>
#include <set>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/common/at.h"

namespace shardproof::layer_wise {

namespace {

using Kind = Content::Kind;

class Reads : RankCheck {
 public:
  Reads(const Facts& facts, int32_t rank, CheckResult& result) : RankCheck(facts, rank, result) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind != EventKind::kCompute || !facts_.LayerWise(event.instance)) continue;
      const EventFlow& flow = a_.flow().At(rank_, static_cast<int64_t>(i));
      const spf_uses& uses = facts_.Of(event.instance).Node(event.id, rank_).uses[event.phase];
      if (!flow.ran || static_cast<size_t>(uses.n) != flow.before.size()) continue;
      for (int32_t k = 0; k < uses.n; ++k) {
        const bool grad = uses.use[k].table == SPF_IN_GRAD;
        if (!grad && uses.use[k].table != SPF_IN_PARAM) continue;
        const ParamFacts& param = facts_.Of(event.instance).Param(rank_, uses.use[k].id);
        if (grad) {
          JudgeGradient(static_cast<int64_t>(i), event, param, At(flow.before, k));
        } else {
          JudgeRead(static_cast<int64_t>(i), event, param, At(flow.before, k));
        }
      }
    }
  }

 private:
  void JudgeRead(int64_t index, const Event& event, const ParamFacts& param,
                 const std::vector<Chunk>& chunks) {
    const int32_t want = facts_.VersionBefore(event.instance, param.key, event.call);
    const int32_t owner = facts_.Owner(event.instance, rank_, param.key);
    if (param.frozen || want < 0 || owner < 0) return;
    const bool own = owner == rank_;
    for (const Chunk& chunk : chunks) {
      const Content& content = chunk.content;
      if (content.kind != Kind::kParam || content.param != param.key) continue;
      report_.Judged({own ? "LW-35" : "LW-11"});
      if (facts_.versions().Same(event.instance, param.key, content.tag, want)) continue;
      const std::string module = facts_.ModuleOf(event.instance, rank_, param.key);
      const std::string expected =
          param.name + " as of " + a_.CallName(rank_, event.instance, want);
      const std::string seen = "as of " + a_.CallName(rank_, event.instance, content.tag);
      if (own) {
        report_.Add("LW-35", rank_, index, expected, seen,
                    "module " + module + " reads the rank's own " + param.name +
                        " before the main weights of the last step are in the model weights");
      } else {
        report_.Add("LW-11", rank_, index, expected, seen,
                    "module " + module + " reads " + param.name + " of rank " +
                        std::to_string(owner) +
                        " while it is stale: " + NextGather(index, event.instance, param.key));
      }
      return;
    }
  }

  // The gather that brings it, for the message.
  std::string NextGather(int64_t index, int32_t instance, int32_t key) const {
    const Gather* last = nullptr;
    for (const Gather& gather : facts_.At(rank_).gathers) {
      const bool brings = gather.instance == instance &&
                          std::any_of(gather.shares.begin(), gather.shares.end(),
                                      [&](const Share& share) { return share.key == key; });
      if (!brings) continue;
      if (gather.event > index)
        return "its gather comes later, at event " + std::to_string(gather.event);
      last = &gather;
    }
    if (last == nullptr) return "nothing gathers it";
    return "its last gather is event " + std::to_string(last->event) + ", in " +
           a_.CallName(rank_, instance, last->call);
  }

  // With gathers into gradient storage: a gradient is added to zeros, or to this step's.
  void JudgeGradient(int64_t index, const Event& event, const ParamFacts& param,
                     const std::vector<Chunk>& chunks) {
    if (facts_.spec(event.instance).layer_wise.buffer != LayerWiseBuffer::kGrads ||
        decided_.contains({event.call, param.key}))
      return;
    for (const Chunk& chunk : chunks) {
      const Content& content = chunk.content;
      if (content.kind == Kind::kOther) {  // zeros, or not: not known, nor what is added to it
        decided_.insert({event.call, param.key});
        continue;
      }
      report_.Judged({"LW-22"});
      bool clear = content.kind == Kind::kFill;
      if (content.kind == Kind::kGrad) {
        const auto& set = a_.flow().sets().Get(content.tag);
        clear = std::all_of(set.begin(), set.end(),
                            [&](const Contribution& one) { return one.call == event.call; });
      }
      if (clear) continue;
      decided_.insert({event.call, param.key});
      report_.Add("LW-22", rank_, index, "zeros, or gradients of this step",
                  a_.ContentText(content),
                  "the gradient of " + param.name +
                      " is added to what a gather left in its storage: clear it when the values "
                      "are installed");
      return;
    }
  }

  std::set<std::pair<int32_t, int32_t>>
      decided_;  // (call, key): what is added later is wrong, or unknown, as well
};

}  // namespace

CheckResult CheckReads(const Facts& facts) {
  CheckResult result;
  bool into_grads = false;
  for (size_t i = 0; i < facts.a().n_instances(); ++i) {
    const auto instance = static_cast<int32_t>(i);
    into_grads |= facts.LayerWise(instance) &&
                  facts.spec(instance).layer_wise.buffer == LayerWiseBuffer::kGrads;
  }
  for (int32_t rank = 0; rank < facts.a().ranks(); ++rank) Reads(facts, rank, result).Run();
  Report report(facts, result);
  const std::string named =
      ": bytes of a file get their name where they are published, so load publishes a value before "
      "it copies it on";
  if (facts.Deals()) {
    report.Unseen({"LW-11"},
                  "no module reads bytes that are known as another rank's parameter" + named);
  }
  report.Unseen({"LW-35"},
                "no module reads bytes that are known as its rank's own parameter" + named);
  if (into_grads) report.Unseen({"LW-22"}, "what gradients are first added to has no name");
  return result;
}

}  // namespace shardproof::layer_wise
