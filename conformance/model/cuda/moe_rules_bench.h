// moe_rules_bench.h: which rules do routers follow in tests, and did two sides give the same bits?
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "conformance/model/cuda/common.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/moe_grouped.h"
#include "conformance/model/moe_bench.h"

namespace shardproof {

inline Numerics NumericsOf(const device::Rules& rules) {
  Numerics n;
  n.quantised = rules.quantised;
  n.narrow = rules.narrow;
  n.d_odd = rules.d_odd;
  n.scale_e = rules.scale_e;
  return n;
}

// The wide and the narrow profile, with divisors and loss scales.
inline std::vector<device::Rules> AllRules() {
  return {{true, false, 1, 0}, {true, false, 3, -3}, {true, true, 5, 0}, {true, true, 1, 4}};
}

// Any two NaNs are the same.
inline ::testing::AssertionResult SameBits(const Floats& found, const Floats& wanted) {
  if (found.size() != wanted.size()) return ::testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::memcmp(&found[i], &wanted[i], sizeof(float)) == 0) continue;
    if (std::isnan(found[i]) && std::isnan(wanted[i])) continue;
    return ::testing::AssertionFailure()
           << "[" << i << "] is " << found[i] << " instead of " << wanted[i];
  }
  return ::testing::AssertionSuccess();
}

// The activation of experts and its gradients on a device that is far behind, against the host's.
inline void ExpectSwigluOfTheHost(const device::Rules& rules, int64_t rows, int64_t ffn,
                                  const Floats& x, const Floats& dy, const Floats& probs) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Numerics n = NumericsOf(rules);
  Floats wanted_y(dy.size()), wanted_dx(x.size()), wanted_dprobs(probs.size());
  GatedSwigluForward(n, rows, ffn, x.data(), probs.data(), wanted_y.data());
  GatedSwigluDgrad(n, rows, ffn, x.data(), probs.data(), dy.data(), wanted_dx.data(),
                   wanted_dprobs.data());
  Floats found_y(dy.size(), kNaN), found_dx(x.size(), kNaN), found_dprobs(probs.size(), kNaN);
  LateQueue queue;
  device::GatedSwigluForward(queue, rules, rows, ffn, x.data(), probs.data(), found_y.data());
  device::GatedSwigluDgrad(queue, rules, rows, ffn, x.data(), probs.data(), dy.data(),
                           found_dx.data(), found_dprobs.data());
  queue.Flush();
  EXPECT_TRUE(SameBits(found_y, wanted_y));
  EXPECT_TRUE(SameBits(found_dx, wanted_dx));
  EXPECT_TRUE(SameBits(found_dprobs, wanted_dprobs));
}

// Every score, with groups, capacities, padding, skews and auxiliary losses; 8 experts, 8 tokens.
inline std::vector<RouterRule> AllRoutings() {
  std::vector<RouterRule> rules;
  for (Score score : {Score::kSoftmax, Score::kPreSoftmax, Score::kSigmoid}) {
    for (int64_t k : {1, 2, 4, 8}) {
      RouterRule rule = SmallRule(score, k);
      rules.push_back(rule);
      rule.z_loss = true;
      rule.capacity = 1;
      rules.push_back(rule);
      rule.aux_loss = true;
      rule.z_loss = k > 2;
      rule.capacity = 3;
      rule.pad = true;
      rule.selection = {512, 512, 0, 0, -512, 0, 0.5f, 0};
      rules.push_back(rule);
      rule.capacity = 50;
      rule.pad = k == 1;
      rule.selection = {};
      rules.push_back(rule);
      rule.groups = 4;
      rule.top_groups = k == 1 ? 1 : k == 8 ? 4 : 2;
      rule.capacity = 0;
      rule.pad = false;
      rules.push_back(rule);
    }
  }
  return rules;
}

}  // namespace shardproof
