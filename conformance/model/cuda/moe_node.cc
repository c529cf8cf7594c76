#include "conformance/model/cuda/moe_node.h"

#include <stdexcept>

namespace shardproof::device {

void RunMoeForward(const NodeContext& c) { throw std::logic_error(c.spec.name + ": no forward pass on a device yet"); }
void RunMoeDgrad(const NodeContext& c) { throw std::logic_error(c.spec.name + ": no input gradient on a device yet"); }
void RunMoeWgrad(const NodeContext& c) { throw std::logic_error(c.spec.name + ": no parameter gradient on a device yet"); }

}  // namespace shardproof::device
