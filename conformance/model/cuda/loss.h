// loss.h: how is cross-entropy computed on a device? Summed over tokens; kNextLoss: labels shifted
// by one.
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void LossForward(const NodeContext& c);
void LossDgrad(const NodeContext& c);

}  // namespace shardproof::device
