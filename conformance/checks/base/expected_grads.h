// expected_grads.h: which contributions belong in a parameter's gradient?
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

// Contributions of one instance by (entry call, key), in closed form from the programs of all
// samples.
class ExpectedGrads {
 public:
  ExpectedGrads(const Analysis& a, int instance);

  // Nodes whose backward adds to the gradient of key on this rank in this call and microbatch.
  const std::set<int32_t>& Nodes(int32_t call, int32_t rank, int32_t microbatch, int32_t key);
  // The whole gradient as a rank of the given data-parallel list should see it.
  std::vector<Contribution> Whole(int32_t call, int32_t key, const std::vector<int32_t>& ranks);

 private:
  const InstanceFacts& facts_;
  // (call, rank, microbatch) -> key -> nodes
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::map<int32_t, std::set<int32_t>>> nodes_;
  const std::set<int32_t> none_;
};

}  // namespace shardproof
