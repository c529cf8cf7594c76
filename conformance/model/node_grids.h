// node_grids.h: on which grids lie the gradients that a node takes and gives?
#pragma once
#include "conformance/model/network.h"
#include "conformance/model/quant.h"

namespace shardproof {

// log2 of a loss scale. Throws std::invalid_argument if it is no power of two in 2^-40..2^40.
int32_t ExponentOfScale(double scale);

// The node's output is on the residual stream, whose gradient is requantised before use.
bool FromStream(const NodeSpec& spec);
// Forward, a node of a vocabulary that is split over tp.
bool OfSplitVocabulary(const NodeSpec& spec);

// Of linear modules and norms, at loss scale 1: of the output's gradient as operand; of the input's
// gradient.
Grid OutGradGridOf(const Network& network, const NodeSpec& spec);
Grid InGradGridOf(const Network& network, const NodeSpec& spec);

}  // namespace shardproof
