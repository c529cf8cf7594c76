// run_all_for_test.h: how does a program on NcclFabric fare over the stand-in, under every policy
// of the simulator?
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "conformance/fabric/nccl/standin_testing.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {

inline StandinOptions Under(TimingPolicy policy, uint64_t seed = 1) {
  StandinOptions options;
  options.sim = With(policy, seed);
  return options;
}

// Runs main under every policy and some seeds; nothing may end it, and nothing may be left.
inline void RunAll(int world, const std::function<void(BodiesOnDevice&)>& main) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const StandinRun run = RunStandin(world, Under(policy, seed), main);
      EXPECT_FALSE(run.ended()) << "policy " << static_cast<int>(policy) << " seed " << seed << "\n"
                                << run.Text();
      EXPECT_FALSE(run.sim.deadlock);
      for (const std::string& error : run.sim.errors) EXPECT_EQ(error, "");
      for (const StandinGpu::Live& live : run.live) {
        EXPECT_EQ(live.streams + live.events + live.blocks + live.comms + live.registrations, 0)
            << live.streams << " " << live.events << " " << live.blocks << " " << live.comms;
      }
      for (const int32_t blocks : run.sim.live_blocks) EXPECT_EQ(blocks, 0);
    }
  }
}

}  // namespace shardproof
