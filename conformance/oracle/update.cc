#include "conformance/oracle/update.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace shardproof {

GradFacts Measure(const OracleState& state) {
  GradFacts facts;
  double squares = 0;
  for (const OracleParam& param : state.params) {
    if (param.frozen) continue;
    for (float value : param.grad) {
      const auto g = static_cast<double>(value);
      squares += g * g;
      facts.zeros += value == 0 ? 1 : 0;
    }
    facts.elements += static_cast<double>(param.grad.size());
  }
  facts.norm = std::sqrt(squares);
  return facts;
}

namespace {

void UpdateSgd(const UpdateRule& rule, float scale, OracleParam& param) {
  for (size_t i = 0; i < param.weight.size(); ++i) {
    float& w = param.weight[i];
    float x = param.grad[i] * scale;
    x = x + rule.weight_decay * w;
    w = w - rule.lr * x;
  }
}

void UpdateAdamW(const UpdateRule& rule, float scale, int64_t t, OracleParam& param) {
  float power1 = 1, power2 = 1;
  for (int64_t i = 0; i < t; ++i) {
    power1 = power1 * rule.beta1;
    power2 = power2 * rule.beta2;
  }
  const float c1 = 1.0f - power1, c2 = 1.0f - power2;
  for (size_t i = 0; i < param.weight.size(); ++i) {
    float &w = param.weight[i], &m = param.first_moment[i], &v = param.second_moment[i];
    const float x = param.grad[i] * scale;
    m = rule.beta1 * m + (1.0f - rule.beta1) * x;
    v = rule.beta2 * v + (1.0f - rule.beta2) * (x * x);
    const float u = (m / c1) / (std::sqrt(v / c2) + rule.epsilon);
    w = w - (rule.lr * rule.weight_decay) * w;
    w = w - rule.lr * u;
  }
}

}  // namespace

bool SkipsStep(const UpdateRule& rule, double norm) {
  if (rule.skip_norm <= 0) return false;
  if (std::abs(norm - rule.skip_norm) <= 1e-6 * rule.skip_norm) {
    throw std::invalid_argument("the gradient norm " + std::to_string(norm) +
                                " is that of grad_norm_skip_threshold but for 1e-6: rounding would "
                                "decide whether the step is skipped; ask for another threshold");
  }
  return !(norm <= rule.skip_norm);  // one that is no number is above every threshold
}

void Update(const UpdateRule& rule, double norm, OracleState& state) {
  const double clip = rule.clip_grad > 0 ? std::min(1.0, rule.clip_grad / (norm + 1e-6)) : 1.0;
  const auto scale = static_cast<float>(clip);
  ++state.updates;
  for (OracleParam& param : state.params) {
    if (param.frozen) continue;
    if (rule.muon && param.shape.cols > 0) {
      UpdateMuon(*rule.muon, clip, param.shape, param.grad, param.first_moment, param.weight);
    } else if (rule.adamw) {
      UpdateAdamW(rule, scale, state.updates, param);
    } else {
      UpdateSgd(rule, scale, param);
    }
  }
}

}  // namespace shardproof
