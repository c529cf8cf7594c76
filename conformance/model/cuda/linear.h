// linear.h: how are linear modules computed on a device? y = x W^T + b, its input and parameter
// gradients.
//
// Also onto the residual stream (kLinearResidual), of two inputs side by side (kConcatLinear), and
// split over tensor-parallel ranks (kColumnLinear, kRowLinear, kResidualAdd).
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void LinearForward(const NodeContext& c);
void LinearDgrad(const NodeContext& c);  // of all but kConcatLinear and kResidualAdd
void ResidualAddForward(const NodeContext& c);
void ResidualAddDgrad(const NodeContext& c);
void ConcatDgrad(const NodeContext& c);  // kConcatLinear
void LinearWgrad(const NodeContext& c);

}  // namespace shardproof::device
