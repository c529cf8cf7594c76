#include "conformance/checks/base/expected_grads.h"

#include <algorithm>

#include "conformance/common/at.h"

namespace shardproof {

ExpectedGrads::ExpectedGrads(const Analysis& a, int instance) : facts_(a.Facts(size_t(instance))) {}

const std::set<int32_t>& ExpectedGrads::Nodes(int32_t call, int32_t rank, int32_t microbatch,
                                              int32_t key) {
  if (call < 0 || call >= Length(facts_.calls())) return none_;  // outside of the script
  const auto [at, added] = nodes_.try_emplace({call, rank, microbatch});
  const int64_t step = facts_.CallAt(call).step;
  if (added && step >= 0) {
    const int64_t sample = int64_t{microbatch} * DpCpSize(facts_.spec()) + facts_.DataRank(rank);
    const spf_program& program = facts_.model().Program(step, sample, facts_.Place(rank));
    for (int32_t n = 0; n < program.n_nodes; ++n) {
      const spf_node& node = program.nodes[n];
      const spf_uses& uses = node.uses[SPF_BWD];
      for (int32_t i = 0; i < uses.n; ++i) {
        if (uses.use[i].table == SPF_IN_GRAD)
          at->second[facts_.Param(rank, uses.use[i].id).key].insert(node.id);
      }
    }
  }
  const auto found = at->second.find(key);
  return found == at->second.end() ? none_ : found->second;
}

std::vector<Contribution> ExpectedGrads::Whole(int32_t call, int32_t key,
                                               const std::vector<int32_t>& ranks) {
  std::vector<Contribution> all;
  for (const int32_t rank : ranks) {
    for (int32_t m = 0; m < facts_.spec().microbatches; ++m) {
      for (const int32_t node : Nodes(call, rank, m, key)) {
        all.push_back({static_cast<int16_t>(call), static_cast<int16_t>(rank),
                       static_cast<int16_t>(m), static_cast<int16_t>(node)});
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace shardproof
