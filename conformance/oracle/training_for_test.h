// training_for_test.h: are two trainings by the oracle the same, call by call?
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "conformance/oracle/oracle.h"

namespace shardproof {

inline OracleRun RunId(const std::string& id, bool check_bounds = false) {
  return RunOracle(ParseId(id), 0, {check_bounds});
}

inline void ExpectEqualTraining(const OracleRun& a, const OracleRun& b) {
  ASSERT_EQ(a.calls.size(), b.calls.size());
  for (size_t i = 0; i < a.calls.size(); ++i) {
    EXPECT_EQ(a.calls[i].losses, b.calls[i].losses) << i;
    EXPECT_EQ(a.calls[i].grads, b.calls[i].grads) << i;
    EXPECT_EQ(a.calls[i].weights, b.calls[i].weights) << i;
    EXPECT_EQ(a.calls[i].grad_norm, b.calls[i].grad_norm) << i;
  }
}

}  // namespace shardproof
