// Does NcclFabric keep the rules of fabric.h? On the stand-in, under all strategies of the simulator.
#include "conformance/fabric/nccl/nccl_fabric.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/fabric/nccl/standin_testing.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

StandinOptions Under(Strategy strategy, uint64_t seed = 1) {
  StandinOptions options;
  options.sim = With(strategy, seed);
  return options;
}

// Runs main under every strategy and some seeds; nothing may end it, and nothing may be left.
void RunAll(int world, const std::function<void(BodiesOnDevice&)>& main) {
  for (const Strategy strategy : kStrategies) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const StandinRun run = RunStandin(world, Under(strategy, seed), main);
      EXPECT_FALSE(run.ended()) << "strategy " << static_cast<int>(strategy) << " seed " << seed << "\n" << run.Text();
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

TEST(NcclFabric, AllReducesOverAStream) {
  RunAll(3, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = p.Floats(s, 4);
    p.Fill(s, block, static_cast<float>(f.rank() + 1));
    p.AllReduce(p.world, s, block);
    std::vector<float> seen;
    p.Read(s, block, &seen);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>(4, 6.0f));
    f.Free(s, block);
  });
}

}  // namespace
}  // namespace shardproof
