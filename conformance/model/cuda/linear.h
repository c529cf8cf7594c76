// linear.h: how are linear modules computed on a device? y = x W^T + b, its input and parameter
// gradients.
//
// Also onto the residual stream (kLinearResidual), and of two inputs side by side (kConcatLinear).
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void LinearForward(const NodeContext& c);
void LinearDgrad(const NodeContext& c);  // kLinear and kLinearResidual
void ConcatDgrad(const NodeContext& c);  // kConcatLinear
void LinearWgrad(const NodeContext& c);

}  // namespace shardproof::device
