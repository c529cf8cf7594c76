// swiglu.h: how is the MLP's activation computed on a device? silu(gate) * up, element by element.
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

// One element, before it is put on a grid; experts use them too.
constexpr float SwigluOf(float gate, float up) { return gate / (1.0f + Exp(-gate)) * up; }
struct SwigluGrad {
  float gate = 0, up = 0;
};
constexpr SwigluGrad SwigluGradOf(float gate, float up, float d) {
  const float sigmoid = 1.0f / (1.0f + Exp(-gate));
  const float silu = gate * sigmoid;
  return {d * up * (sigmoid + silu * (1.0f - sigmoid)), d * silu};
}

void SwigluForward(const NodeContext& c);
void SwigluDgrad(const NodeContext& c);

}  // namespace shardproof::device
