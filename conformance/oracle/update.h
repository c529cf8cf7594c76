// update.h: how do gradients change weights? abi/KNOBS.md, operation by operation in fp32.
#pragma once
#include <optional>

#include "conformance/oracle/muon.h"
#include "conformance/oracle/trainer.h"

namespace shardproof {

struct UpdateRule {
  bool adamw = false;            // with muon: of what Muon does not step
  std::optional<MuonRule> muon;  // first_moment is its momentum
  float lr = 0, weight_decay = 0;
  float beta1 = 0.5f, beta2 = 0.75f, epsilon = 0.0078125f;
  double clip_grad = 0;  // 0: off
  double skip_norm = 0;  // 0: off
};

struct GradFacts {
  double norm = 0;   // of all trainable parameters
  double zeros = 0;  // how many of their elements are zero
  double elements = 0;
};
GradFacts Measure(const OracleState& state);

// Whether a step with this norm (Measure's) changes nothing at all. Throws std::invalid_argument
// for a norm so near to the threshold that an engine's rounding would decide.
bool SkipsStep(const UpdateRule& rule, double norm);

// Changes the weights of trainable parameters. norm is Measure's.
void Update(const UpdateRule& rule, double norm, OracleState& state);

}  // namespace shardproof
