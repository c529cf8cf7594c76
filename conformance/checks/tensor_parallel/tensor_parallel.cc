#include "conformance/checks/tensor_parallel/tensor_parallel.h"

namespace shardproof {

CheckResult CheckTensorParallel(const Analysis& a) {
  CheckResult result;
  if (!a.has_case()) return result;
  bool split = false, muon = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    split |= IsSplit(a.Facts(i));
    muon |= IsSplit(a.Facts(i)) && a.Facts(i).spec().optimizer == Optimizer::kMuon;
  }
  if (!split) return result;
  OverTp over_tp;
  result.Merge(CheckTpSums(a, over_tp));
  result.Merge(CheckTpGradients(a));
  result.Merge(CheckTpStatistics(a));
  if (!muon) return result;
  if (over_tp.empty()) {
    CannotJudge(result, {"TP-07"}, "what goes over tp is not followed");
  } else {
    result.Merge(CheckTpMuon(a, over_tp));
  }
  return result;
}

std::set<std::string> ShownWithTensorParallel(const InstanceFacts& facts) {
  std::set<std::string> ids;
  const InstanceSpec& spec = facts.spec();
  if (!IsSplit(facts)) return ids;
  ids = {"TP-01", "TP-03"};
  if (spec.script.find('t') == std::string::npos) return ids;
  ids.insert({"TP-04", "TP-05"});
  if (spec.optimizer == Optimizer::kMuon) ids.insert("TP-07");
  for (int32_t id = 0; id < facts.node_count(spec.offset); ++id) {
    const spf_node& node = facts.Node(id, spec.offset);
    // A model whose split layers have nothing trainable before them has no such gradient.
    if (node.kind == SPF_NODE_ALL_REDUCE && node.uses[SPF_BWD].n > 0) ids.insert("TP-02");
  }
  if (spec.grad_norm || spec.clip_grad > 0 || spec.skip_norm > 0 || spec.zero_count)
    ids.insert("TP-06");
  return ids;
}

}  // namespace shardproof
