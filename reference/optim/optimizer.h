// optimizer.h: how do reduced gradients change the main weights?
//
// On this rank's shards in fp32, element by element but for Muon, the operations and their order as
// conformance/abi/KNOBS.md fixes them:
//   sgd    x = g*s ; x = x + wd*w ; w = w - lr*x
//   adamw  x = g*s ; SPF_K_ADAMW, t = 1 in the first step that updates
//   muon   x = g*s ; muon.h for matrices inside layers, adamw for everything else
// Padding is zero in weight, gradient and state, and stays zero.
#pragma once
#include "reference/core/context.h"

namespace reference {

class Optimizer {
 public:
  explicit Optimizer(Context& context) : c_(context) {}

  // clip_scale: s, 1 without clipping.
  void Step(double clip_scale);

  // Updates so far: Adam's t. Saved and restored with the state.
  int64_t updates() const { return updates_; }
  void set_updates(int64_t updates) { updates_ = updates; }

 private:
  void Sgd(const Bucket& bucket, spf_addr x);
  void AdamW(const Bucket& bucket, spf_addr x);

  Context& c_;
  int64_t updates_ = 0;
};

// min(1, clip_grad / (norm + 1e-6)), or 1 without clipping.
double ClipScale(const Config& config, double norm);

// Whether the gradient is too long for a step. Every rank has the same norm, so all decide alike.
bool SkipsStep(const Config& config, double norm);

}  // namespace reference
