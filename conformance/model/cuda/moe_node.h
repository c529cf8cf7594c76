// moe_node.h: how do routers, dispatchers and groups of experts run on a GPU?
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

// Nodes of kinds kRouter to kUnpermute, but for kExchange: std::logic_error, as for a phase that
// the node does not have.
void RunMoeForward(const NodeContext& c);
void RunMoeDgrad(const NodeContext& c);
void RunMoeWgrad(const NodeContext& c);

}  // namespace shardproof::device
