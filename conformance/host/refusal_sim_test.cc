#include <gtest/gtest.h>

#include "conformance/fabric/sim/sim.h"
#include "conformance/host/refusal_cases.h"

namespace shardproof {
namespace {

std::string RunOn(int world, const std::vector<RefusalCase>& cases) {
  std::string wrong;
  RunSim(world, SimOptions{}, [&](Fabric& fabric) { wrong += RunRefusalCases(fabric, cases); });
  return wrong;
}

TEST(RefusalOnSim, LocalCallsAreRefusedWithCallEntryRankAndRemedy) {
  std::vector<RefusalCase> local;
  for (const RefusalCase& c : RefusalCases()) {
    if (c.call != "communicate") local.push_back(c);
  }
  EXPECT_GT(local.size(), 40u);
  EXPECT_EQ(RunOn(3, local), "");
}

TEST(RefusalOnSim, EachWrongCollectiveIsRefusedAndEndsTheRun) {
  for (const RefusalCase& c : RefusalCases()) {
    if (c.call != "communicate") continue;
    EXPECT_EQ(RunOn(1, {c}), "") << c.name;
    std::string wrong;
    int aborted = 0;
    RunSim(3, SimOptions{}, [&](Fabric& fabric) {
      if (fabric.rank() == 0) wrong += RunRefusalCases(fabric, {c});
      // The others wait for a collective that rank 0 will never join.
      if (fabric.rank() != 0) {
        const int32_t group = fabric.OpenGroup("w", {0, 1, 2});
        int32_t made = -1;
        std::string key;
        aborted += fabric.CreateGroup(group, {1, 2}, &made, &key) == SPF_ABORTED ? 1 : 0;
      }
    });
    EXPECT_EQ(wrong, "") << c.name;
    EXPECT_EQ(aborted, 2) << c.name;
  }
}

TEST(RefusalOnSim, CallFromAKernelFunctionIsRefused) {
  struct Arg {
    spf_host* h;
    spf_status* status;
  };
  spf_status status = SPF_OK;
  int refusals = 0;
  RunSim(1, SimOptions{}, [&](Fabric& fabric) {
    const Model model(ModelConfig{}, 64);
    Recorder recorder(0, 1, "custom", RecordLevel::kOrder);
    HostConfig config;
    config.model = &model;
    Host host(config, fabric, recorder);
    host.BeginCall("create", -1);
    spf::Host h(host.table());
    const spf_stream stream = h.Stream("main");
    const spf_addr block = h.Alloc(stream, 64, spf::For(SPF_FOR_SCRATCH));
    const spf_span span = {block, 16, SPF_F32, SPF_WRITE};
    const Arg arg = {host.table(), &status};
    spf_launch launch{};
    launch.size = sizeof launch;
    launch.kernel = SPF_K_CUSTOM;
    launch.spans = &span;
    launch.n_spans = 1;
    launch.arg = &arg;
    launch.arg_bytes = sizeof arg;
    launch.fn = [](void*, void* const*, const void* data) {
      const Arg* a = static_cast<const Arg*>(data);
      *a->status = a->h->stream_create(a->h, "late", 0, nullptr);
    };
    spf::Check(host.table()->launch(host.table(), stream, &launch));
    h.Sync(stream);
    host.EndCall(SPF_OK);
    refusals = host.refusals();
  });
  EXPECT_EQ(status, SPF_REFUSED);
  EXPECT_EQ(refusals, 1);
}

}  // namespace
}  // namespace shardproof
