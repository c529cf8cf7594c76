#include "conformance/checks/tensor_parallel/tensor_parallel.h"

namespace shardproof {

CheckResult CheckTensorParallel(const Analysis& a) {
  CheckResult result;
  if (!a.has_case()) return result;
  bool split = false, muon = false, sequences = false;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    split |= IsSplit(a.Facts(i));
    muon |= IsSplit(a.Facts(i)) && a.Facts(i).spec().optimizer == Optimizer::kMuon;
    sequences |= SharesSequences(a.Facts(i));
  }
  if (!split && !sequences) return result;
  OverTp over_tp;
  result.Merge(CheckTpSums(a, over_tp));
  if (!split) return result;
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

std::set<std::string> ShownBySums(const InstanceFacts& facts) {
  std::set<std::string> ids;
  if (IsSplit(facts)) ids = {"TP-01", "TP-03"};
  if (IsSplit(facts) && facts.spec().model.sequence_parallel) ids.insert("TP-08");
  if (IsSplit(facts) && facts.spec().model.vocab_parallel) ids.insert({"TP-10", "TP-11"});
  if (SharesSequences(facts)) ids.insert({"CP-01", "CP-03"});
  if (facts.spec().script.find('t') == std::string::npos) return ids;
  for (int32_t id = 0; id < facts.node_count(facts.spec().offset); ++id) {
    const spf_node& node = facts.Node(id, facts.spec().offset);
    // A model whose split layers have nothing trainable before them has no such gradient.
    if (node.uses[SPF_BWD].n == 0) continue;
    const bool sums = node.kind == SPF_NODE_ALL_REDUCE || node.kind == SPF_NODE_ALL_GATHER;
    if (sums && IsSplit(facts)) ids.insert("TP-02");
    if (MeetsOverCp(node) && SharesSequences(facts)) ids.insert("CP-02");
  }
  return ids;
}

std::set<std::string> ShownWithTensorParallel(const InstanceFacts& facts) {
  std::set<std::string> ids = ShownBySums(facts);
  const InstanceSpec& spec = facts.spec();
  if (!IsSplit(facts)) return ids;
  if (spec.script.find('t') == std::string::npos) return ids;
  ids.insert("TP-04");
  if (spec.optimizer == Optimizer::kMuon) ids.insert("TP-07");
  for (int32_t id = 0; id < facts.n_params(spec.offset); ++id) {
    const ParamFacts& param = facts.Param(spec.offset, id);
    if (param.part && !param.frozen) ids.insert("TP-09");
    // With a split vocabulary, and norms that are frozen, there may be none.
    if (param.name == param.tensor && !param.frozen) ids.insert("TP-05");
  }
  if (spec.grad_norm || spec.clip_grad > 0 || spec.skip_norm > 0 || spec.zero_count)
    ids.insert("TP-06");
  return ids;
}

}  // namespace shardproof
