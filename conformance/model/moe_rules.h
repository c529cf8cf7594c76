// moe_rules.h: what do a model's config and tables say about a routed node?
#pragma once
#include "conformance/model/moe_kernels.h"
#include "conformance/model/network.h"

namespace shardproof {

RouterRule RouterRuleOf(const ModelConfig& config);

// Of a grouped linear node, at loss scale 1: grids of its output's and of its input's gradient.
struct GroupedGrids {
  Grid out, in;
};
GroupedGrids GroupedGridsOf(const NodeSpec& spec);

// How many rows a value has in this microbatch. Throws std::invalid_argument, naming the value, if
// args do not say or say more than it can have.
int64_t RowsOf(const Network& network, const NodeArgs& args, int32_t value);

}  // namespace shardproof
