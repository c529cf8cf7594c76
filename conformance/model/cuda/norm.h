// norm.h: how are RMSNorm and the scalar gain computed on a device?
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void NormForward(const NodeContext& c);
void NormDgrad(const NodeContext& c);
void NormWgrad(const NodeContext& c);
void GainForward(const NodeContext& c);
void GainDgrad(const NodeContext& c);
void GainWgrad(const NodeContext& c);

}  // namespace shardproof::device
