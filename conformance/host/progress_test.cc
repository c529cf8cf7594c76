// progress_test: what does the host tell of where the engine is?
#include "conformance/host/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/abi/spf.hpp"
#include "conformance/fabric/sim/testing.h"
#include "conformance/host/host.h"

namespace shardproof {
namespace {

TEST(Progress, NamesTheEntryCallAndTheLastHostCall) {
  RunSim(1, With(TimingPolicy::kEager), [&](Fabric& fabric) {
    const Model model(ModelConfig{}, 64);
    Recorder recorder(0, 1, "progress", RecordLevel::kDigests);
    Progress progress;
    HostConfig config;
    config.model = &model;
    config.data_rank = 0;
    config.progress = &progress;
    Host host(config, fabric, recorder);
    spf::Host h(host.table());
    host.BeginCall("create", -1);
    EXPECT_EQ(progress.Where(), "create, before a host call of it returned");
    h.Stream("main");
    EXPECT_EQ(progress.Where(), "create, after stream_create");
    host.EndCall(SPF_OK);
    for (int step = 0; step < 2; ++step) {  // without a call of its own
      const std::string call = "train_step " + std::to_string(step);
      host.BeginCall("train_step", step);
      EXPECT_EQ(
          progress.Where(),
          call + ", before a host call of it returned (the last one: stream_create in create)");
      host.EndCall(SPF_OK);
    }
    host.BeginCall("save", 2);
    EXPECT_EQ(h.raw()->stream_sync(h.raw(), nullptr), SPF_REFUSED);
    EXPECT_EQ(progress.Where(), "save 2, after stream_sync") << "a refused call is one too";
    host.EndCall(SPF_OK);
  });
}

// Ranks of sim share what is told of them.
TEST(Progress, IsThatOfTheRankThatRuns) {
  Progress progress;
  RunSim(2, With(TimingPolicy::kEager), [&](Fabric& fabric) {
    const Model model(ModelConfig{}, 64);
    Recorder recorder(fabric.rank(), 2, "progress", RecordLevel::kDigests);
    HostConfig config;
    config.model = &model;
    config.data_rank = fabric.rank();
    config.groups = {{"world", "world", {0, 1}}};
    config.progress = &progress;
    Host host(config, fabric, recorder);
    spf::Host h(host.table());
    const std::string call = fabric.rank() == 0 ? "save" : "load";
    host.BeginCall(call, -1);
    const spf_group world = h.raw()->group(h.raw(), "world");
    spf_group mine = nullptr;
    const int32_t ranks[] = {0, 1};
    EXPECT_EQ(h.raw()->group_create(h.raw(), world, "mine", 2, ranks, &mine), SPF_OK);  // waits
    EXPECT_EQ(progress.rank, fabric.rank());
    EXPECT_EQ(progress.Where(), call + ", after group_create");
    host.EndCall(SPF_OK);
  });
}

}  // namespace
}  // namespace shardproof
