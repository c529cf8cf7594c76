#include "conformance/checks/tensor_parallel/meetings.h"

#include <string_view>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"

namespace shardproof {
namespace {

bool Gathers(const spf_node& node, spf_phase phase) {
  if (node.kind == SPF_NODE_ALL_REDUCE) return false;
  return (node.kind == SPF_NODE_REDUCE_SCATTER) == (phase != SPF_FWD);
}

// Forward, of a model whose vocabulary is split.
Meets MeetsOf(const InstanceFacts& facts, int32_t rank, const spf_node& node, spf_phase phase) {
  if (!facts.spec().model.vocab_parallel || phase != SPF_FWD) return Meets::kLayers;
  if (node.module == 0) return Meets::kLoss;  // of no layer: the model's own
  const std::string_view type = facts.model().Tables(facts.Place(rank)).modules[node.module].type;
  return type == "Embedding" ? Meets::kRows : Meets::kLayers;
}

}  // namespace

Meetings MeetingsOf(const InstanceFacts& facts, int32_t rank) {
  Meetings meetings;
  if (!facts.InGrid(rank)) return meetings;
  for (int32_t n = 0; n < facts.node_count(rank); ++n) {
    const spf_node& node = facts.Node(n, rank);
    const bool over_cp = MeetsOverCp(node);
    if (over_cp ? !SharesSequences(facts) : !MeetsOverTp(node) || !IsSplit(facts)) continue;
    for (const spf_phase phase : {SPF_FWD, SPF_BWD}) {
      const spf_uses& uses = node.uses[phase];
      if (uses.n == 0) continue;
      const spf_use &from = uses.use[0], &to = uses.use[uses.n - 1];  // one: in place
      meetings.sent[{from.table, from.id}] = meetings.read[{to.table, to.id}] = {
          node.name, from.id, Gathers(node, phase), over_cp ? Axis::kCp : Axis::kTp,
          MeetsOf(facts, rank, node, phase)};
    }
  }
  return meetings;
}

const char* MeetingId(const Met& met, bool gradient) {
  if (met.axis == Axis::kCp) return met.gathered ? "CP-01" : "CP-02";
  if (met.of == Meets::kRows) return "TP-10";
  if (met.of == Meets::kLoss) return "TP-11";
  if (met.gathered) return "TP-08";
  return gradient ? "TP-02" : "TP-01";
}

}  // namespace shardproof
