// loss_scale: the backward of losses and routers begins with it.
#include <cmath>
#include <string>
#include <string_view>

#include "conformance/cases/real_text.h"
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/knobs/knobs.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

// Its forward writes the loss of a microbatch.
bool IsLoss(const spf_model& model, const spf_node& node) {
  const spf_uses& uses = node.uses[SPF_FWD];
  for (int32_t u = 0; u < uses.n; ++u) {
    const spf_use& use = uses.use[u];
    const bool writes = use.table == SPF_IN_ACT && use.access != SPF_READ;
    if (writes && (model.values[use.id].flags & SPF_VALUE_LOSS) != 0) return true;
  }
  return false;
}

bool HasAuxiliaryLoss(const InstanceSpec& spec) {
  return spec.model.moe.z_loss || spec.model.moe.aux_loss;
}

class Scales : RankCheck {
 public:
  Scales(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      const bool backward = event.phase == SPF_BWD || event.phase == SPF_DGRAD;
      if (event.kind != EventKind::kCompute || !backward) continue;
      const InstanceFacts& facts = a_.Facts(event.instance);
      if (facts.spec().loss_scale_log2 == 0) continue;
      if (event.id < 0 || event.id >= facts.node_count(rank_)) continue;
      const spf_model& model = facts.model().Tables(facts.Place(rank_));
      const spf_node& node = facts.Node(event.id, rank_);
      const bool router = std::string_view(model.modules[node.module].type) == "Router" &&
                          HasAuxiliaryLoss(facts.spec());
      if (router || IsLoss(model, node)) JudgeOne(static_cast<int64_t>(i), event, facts.spec());
    }
  }

 private:
  void JudgeOne(int64_t index, const Event& event, const InstanceSpec& spec) {
    Judge(result_, {"KN-09"});
    const double wanted = std::ldexp(1.0, spec.loss_scale_log2);
    const std::string given(trace_.Text(event.text));
    double scale = 1;
    if (!given.empty() && !ReadReal(given, &scale)) scale = 0;
    if (scale == wanted) return;
    Add("KN-09", index, "scale " + RealText(wanted), "scale " + (given.empty() ? "1" : given),
        "loss_scale = " + RealText(wanted) +
            ", but backward begins with another scale: pass it to loss nodes and routers, and take "
            "it out of gradients again");
  }
};

}  // namespace

CheckResult CheckLossScale(const Analysis& a) {
  CheckResult result;
  bool asked = false;
  for (size_t i = 0; i < a.n_instances(); ++i) asked |= a.Facts(i).spec().loss_scale_log2 != 0;
  if (!asked) return result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.work) continue;
    CannotJudge(result, {"KN-09"}, "rank " + std::to_string(trace.rank) + "'s trace has no work");
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) Scales(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
