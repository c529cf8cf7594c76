// device_kernels_test: does an engine see any difference if device code does the work?
//
// Cases of the core profile, twice under the same timing of the simulated machine: with the CPU's
// executor, and with the device's, whose kernels run as loops in stream order. Traces must agree
// byte for byte, digests and published values included, and so must verdicts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "conformance/cases/profiles.h"
#include "conformance/cuda/immediate_queue.h"
#include "conformance/host/cuda/device_executor.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/sim_run.h"
#include "property_tests/same_traces.h"

namespace shardproof {
namespace {

std::shared_ptr<Executor> OnDevice(Fabric&) {
  return std::make_shared<DeviceExecutor>(
      [queue = std::make_shared<ImmediateQueue>()](int32_t) -> Queue& { return *queue; });
}

class DeviceKernels : public testing::TestWithParam<const char*> {
 protected:
  RunData Run(const Case& c, bool on_device, RecordLevel level = RecordLevel::kDigests) {
    SimRunOptions options;
    options.rank.folder = folder_.path();
    options.rank.level = level;
    options.policy = TimingPolicy::kRandom;
    options.seed = 11;
    if (on_device) options.rank.executor = OnDevice;
    return RunOnSim(c, models_, plugin_, options);
  }
  void ExpectSame(const RunData& host, const RunData& device) {
    EXPECT_EQ(host.timing_hash, device.timing_hash);
    ExpectSameTraces(host, device);
  }
  void Make(const Case& c) { models_ = MakeModels(c); }

  Models models_;
  Plugin plugin_{"builtin:reference"};
  ScratchFolder folder_;
};

TEST_P(DeviceKernels, GiveTheTraceAndTheVerdictOfTheCpu) {
  const Case c = ParseId(GetParam());
  Make(c);
  RunData host = Run(c, false), device = Run(c, true);
  ExpectSame(host, device);
  const Verdict want = JudgeRun(c, host.run), seen = JudgeRun(c, device.run);
  EXPECT_EQ(want.outcome, Outcome::kPass);
  EXPECT_EQ(seen.outcome, want.outcome);
  EXPECT_EQ(seen.result.judged, want.result.judged);
  for (const Finding& finding : seen.result.findings)
    ADD_FAILURE() << finding.requirement << ": " << finding.message;
}

INSTANTIATE_TEST_SUITE_P(
    Core, DeviceKernels,
    testing::Values(
        // dense: strategies, optimizers, dtypes, what models may have
        "w2.ddp", "w3.zero2.k2.tied", "w4.zero3.twin.adamw", "w8.zero3.n2.twin.k2.recompute",
        "w8.zero3.n2.hfsdp.bf16", "w4.zero3.do=ttsrlt",
        "w4.zero3.name=policy.n2+zero2.name=value.tp2.etp2", "w4.zero3.k2.bf16.wire16.acc16",
        "w4.zero2.k2.adamw.clip0p5.zeros.nan.bias.root", "w3.zero3.odd.reused",
        // Muon, on the whole matrix
        "w3.ddp.muon.nesterov.k2.clip0p5.wd0p125.do=tttt",
        "w2.ddp.muon.coef=deepseekv4.ns10.extra0p25.bf16",
        "w4.ddp.muon.prec=medium.nesterov.do=tett", "w4.ddp.muon.ep2.moe4.shared.mtp.norm",
        // experts: dense, dispatched, with all that routers know, behind the 1F1B schedule
        "w4.zero3.ep2.experts", "w4.zero3.ep2.k2.moe4",
        "w4.zero3.ep2.k2.moe4.sigmoid.groups2.aux.zloss.shared.mtp",
        "w4.zero3.ep2.k2.moe4.cap125.pad.skew=rank", "w4.zero3.ep2.k2.moe4.1f1b.dw",
        "w4.zero2.ep2.k2.layers3.moe4.shared.1f1b", "w8.ddp.ep2.pp2.k2.layers4.moe4.vpp2.1f1b",
        // layer-wise
        "w3.lw.lr0p0625.bcast", "w8.lw.k2.ogr.opg.bs300.muon.lr0p0625.tied.gradbuf",
        "w4.lw.ogr.opg.adamw.lr0p0625.do=tetslett.aligned"));

TEST_F(DeviceKernels, GiveTheBytesOfTheCpu) {
  const Case c = ParseId("w2.zero3.k2.adamw.bf16");
  Make(c);
  ExpectSame(Run(c, false, RecordLevel::kBytes), Run(c, true, RecordLevel::kBytes));
}

// The comparison is not of nothing.
TEST_F(DeviceKernels, TracesTellDigests) {
  const Case c = ParseId("w2.ddp");
  Make(c);
  const RunData run = Run(c, true);
  const std::vector<Event>& events = run.run.traces[0].events;
  EXPECT_GT(std::count_if(events.begin(), events.end(),
                          [](const Event& event) { return event.digest != 0; }),
            20);
}

}  // namespace
}  // namespace shardproof
