// loss.h: cross-entropy on a device, summed over tokens; kNextLoss takes the labels shifted by one.
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void LossForward(const NodeContext& c);
void LossDgrad(const NodeContext& c);

}  // namespace shardproof::device
