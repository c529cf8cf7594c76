// nccl_standin_test: does the reference conform on the nccl fabric, as far as that can be asked
// without a GPU?
//
// Cases of the core profile on NcclFabric over the stand-in, with device kernels as loops in stream
// order, under several timings. Verdicts must pass, and traces must agree byte for byte with
// those of the simulated machine and the CPU's executor, digests and published values included.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/profiles.h"
#include "conformance/fabric/nccl/standin_testing.h"
#include "conformance/host/cuda/device_executor.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/sim_run.h"
#include "property_tests/same_traces.h"

namespace shardproof {
namespace {

class NcclStandin : public testing::TestWithParam<const char*> {
 protected:
  RunData OnSim(const Case& c) {
    SimRunOptions options;
    options.rank.folder = folder_.path();
    options.policy = TimingPolicy::kEager;
    return RunOnSim(c, models_, plugin_, options);
  }

  RunData OnStandin(const Case& c, TimingPolicy policy, uint64_t seed) {
    for (size_t i = 0; i < c.instances.size(); ++i)  // a run finds no checkpoint of a run before it
      std::filesystem::remove_all(folder_.path() + "/" + std::to_string(i));
    RunData data;
    data.run.spec = &c;
    data.run.traces.resize(static_cast<size_t>(c.world));
    data.run.outcomes.resize(static_cast<size_t>(c.world));
    StandinOptions options;
    options.sim.policy = policy;
    options.sim.seed = seed;
    options.sim.drift = true;
    options.sim.stack_bytes = std::max<uint32_t>(plugin_.table().stack_bytes, 512u << 10);
    std::vector<std::shared_ptr<Executor>> executors;  // until no queue can write to them any more
    const StandinRun run = RunStandin(c.world, options, [&](BodiesOnDevice& device) {
      NcclFabric& fabric = device.nccl();
      RankOptions rank;
      rank.folder = folder_.path();
      rank.executor = [&](Fabric&) {
        executors.push_back(std::make_shared<DeviceExecutor>(
            [&fabric](int32_t stream) -> Queue& { return fabric.QueueOf(stream); }));
        return executors.back();
      };
      const auto index = static_cast<size_t>(fabric.rank());
      RankOutput output = RunRank(fabric, c, models_, plugin_, rank);
      data.run.traces[index] = std::move(output.trace);
      data.run.outcomes[index] = std::move(output.outcome);
    });
    EXPECT_FALSE(run.ended()) << run.Text();
    EXPECT_FALSE(run.sim.deadlock);
    EXPECT_TRUE(run.mismatches.empty());
    EXPECT_TRUE(run.sim.mismatches.empty());
    for (const StandinGpu::Live& live : run.live)
      EXPECT_EQ(live.blocks + live.comms + live.streams + live.events, 0);
    return data;
  }
  void Make(const Case& c) { models_ = MakeModels(c); }

  Models models_;
  Plugin plugin_{"builtin:reference"};
  ScratchFolder folder_;
};

TEST_P(NcclStandin, ConformsWithTheTraceOfTheSimulatedMachine) {
  const Case c = ParseId(GetParam());
  Make(c);
  const RunData sim = OnSim(c);
  for (const auto& [policy, seed] : {std::pair{TimingPolicy::kRandom, 11},
                                     {TimingPolicy::kLazyComm, 1},
                                     {TimingPolicy::kLazyCompute, 1}}) {
    RunData nccl = OnStandin(c, policy, static_cast<uint64_t>(seed));
    ExpectSameTraces(sim, nccl);
    const Verdict verdict = JudgeRun(c, nccl.run);
    EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.reason;
    for (const Finding& finding : verdict.result.findings)
      ADD_FAILURE() << finding.requirement << ": " << finding.message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Core, NcclStandin,
    testing::Values("w1.ddp", "w2.ddp", "w3.zero2.k2.tied", "w4.zero3.twin.adamw",
                    "w4.zero3.n2.hfsdp.twin.ub", "w3.zero1.ub.tied",
                    "w4.zero3.n2.twin.k2.recompute", "w4.zero3.k2.bf16.wire16.acc16",
                    "w4.zero2.k2.adamw.clip0p5.zeros.nan.bias.root", "w3.zero3.odd.reused",
                    "w3.ddp.muon.nesterov.k2.clip0p5.wd0p125.do=tttt", "w4.zero3.ep2.experts",
                    "w4.zero3.ep2.k2.moe4.cap125.pad.skew=rank", "w4.zero3.ep2.k2.moe4.1f1b.dw",
                    "w8.ddp.ep2.pp2.k2.layers4.moe4.vpp2.1f1b", "w3.lw.lr0p0625.bcast",
                    "w4.lw.ogr.opg.adamw.lr0p0625.do=tetslett.aligned"));

}  // namespace
}  // namespace shardproof
