// device_bench.h: what do device kernels make of the nodes of a model? For tests, on a queue
// without a GPU.
#pragma once
#include <string>

#include "conformance/model/node_bench.h"

namespace shardproof {

// What NodeBench does, with RunNode instead of Model::Compute. While RunNode is called all memory
// is poisoned, and the work is done afterwards: so it shows if the host reads what on a GPU is in
// the device's memory, or not yet computed.
class DeviceBench : public NodeBench {
 public:
  using NodeBench::NodeBench;

 protected:
  void Compute(const NodeArgs& args) const override;
};

// Experts and their dispatch (Op::kRouter to Op::kUnpermute).
bool IsRouted(const NodeBench& bench, const spf_node& node);

// The first difference in any bit of any block ("" if there is none); any two NaNs are equal.
std::string FirstDifference(const spf_model& tables, int32_t grad_dtype, Blocks& found,
                            Blocks& wanted);
// The same for floats that may differ by `tolerance` times the largest in the block.
std::string FirstDistance(const spf_model& tables, Blocks& found, Blocks& wanted, float tolerance);

}  // namespace shardproof
