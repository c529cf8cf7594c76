// How often the host waits for the device in a train step (BU-07).
#include <algorithm>
#include <map>

#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/budgets/budgets.h"

namespace shardproof {

namespace {

// Norm, zeros, a loss, a flag of each of several groups: a step has some scalars.
constexpr int64_t kScalars = 8;

bool Waits(const Event& event) {
  switch (event.kind) {
    case EventKind::kStreamSync:
    case EventKind::kEventSync:
    case EventKind::kDeviceSync:
    case EventKind::kRequestWait:
      return true;
    case EventKind::kCollective:
      return event.stream < 0 && event.request < 0;
    default:
      return false;
  }
}

class HostWaits : RankCheck {
 public:
  HostWaits(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void Run() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kCallBegin) waits_[event.instance] = 0;
      if (Waits(event)) ++waits_[event.instance];
      if (event.kind != EventKind::kCallEnd || event.status != SPF_OK) continue;
      const InstanceFacts& facts = a_.Facts(event.instance);
      if (facts.CallAt(event.call).letter == 't' && facts.InGrid(rank_))
        JudgeStep(static_cast<int64_t>(i), facts, waits_[event.instance]);
    }
  }

 private:
  // What data on the device decides, and, for each unit that is gathered, what FSDP's limiter of
  // all-gathers waits for.
  int64_t Allowed(const InstanceFacts& facts) const {
    const InstanceSpec& spec = facts.spec();
    int64_t exchanges = 0;
    for (int32_t n = 0; n < facts.node_count(rank_); ++n)
      exchanges += facts.Node(n, rank_).kind == SPF_NODE_EXCHANGE;
    int64_t each = 1 + 2 * exchanges;  // in a microbatch: its loss, splits of its all-to-alls
    if (ShardsParams(spec)) each += 2 * Length(facts.units(rank_));
    if (spec.check_for_nan) each += facts.n_params(rank_);
    return kScalars + spec.microbatches * each;
  }

  void JudgeStep(int64_t index, const InstanceFacts& facts, int64_t waits) {
    Judge(result_, {"BU-07"});
    const int64_t allowed = Allowed(facts);
    if (waits <= allowed) return;
    Add("BU-07", index, "at most " + std::to_string(allowed) + " waits of the host",
        std::to_string(waits),
        "the host waits for the device again and again in a step: what it issues late, the device "
        "runs late");
  }

  std::map<int32_t, int64_t> waits_;  // by instance, in this entry call
};

}  // namespace

CheckResult CheckHostWaits(const Analysis& a) {
  CheckResult result;
  for (const Trace& trace : a.traces()) {
    if (trace.provides.sync && trace.provides.calls && trace.provides.collectives) continue;
    CannotJudge(result, {"BU-07"},
                "rank " + std::to_string(trace.rank) +
                    "'s trace has no waits of the host, collectives or calls");
    return result;
  }
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) HostWaits(a, rank, result, sink).Run();
  return result;
}

}  // namespace shardproof
