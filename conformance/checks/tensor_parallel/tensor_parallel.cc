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

bool HasParts(const Analysis& a) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    if (IsSplit(a.Facts(i)) && a.Facts(i).spec().model.sequence_parallel) return true;
  }
  return false;
}

std::set<std::string> ShownWithTensorParallel(const InstanceFacts& facts) {
  std::set<std::string> ids;
  const InstanceSpec& spec = facts.spec();
  if (!IsSplit(facts)) return ids;
  ids = {"TP-01", "TP-03"};
  if (spec.model.sequence_parallel) ids.insert("TP-08");
  if (spec.script.find('t') == std::string::npos) return ids;
  ids.insert({"TP-04", "TP-05"});
  if (spec.optimizer == Optimizer::kMuon) ids.insert("TP-07");
  for (int32_t id = 0; id < facts.node_count(spec.offset); ++id) {
    const spf_node& node = facts.Node(id, spec.offset);
    // A model whose split layers have nothing trainable before them has no such gradient.
    const bool sums = node.kind == SPF_NODE_ALL_REDUCE || node.kind == SPF_NODE_ALL_GATHER;
    if (sums && node.uses[SPF_BWD].n > 0) ids.insert("TP-02");
  }
  for (int32_t id = 0; id < facts.n_params(spec.offset); ++id) {
    const ParamFacts& param = facts.Param(spec.offset, id);
    if (param.part && !param.frozen) ids.insert("TP-09");
  }
  if (spec.grad_norm || spec.clip_grad > 0 || spec.skip_norm > 0 || spec.zero_count)
    ids.insert("TP-06");
  return ids;
}

}  // namespace shardproof
