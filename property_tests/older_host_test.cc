// older_host_test: what does the reference say to a host that lacks what a case needs?
//
// The tables of hosts grow; an engine tests what it uses (SPF_HAS). The host here ends where that
// of ABI 1.0 did.
#include <gtest/gtest.h>

#include <cstddef>

#include "conformance/runner/sim_run.h"
#include "reference/plugin.h"

namespace shardproof {
namespace {

const spf_plugin& Reference() { return *reference::ReferencePlugin(SPF_ABI_MAJOR); }

std::vector<EngineOutcome> OutcomesOf(const char* id) {
  const Case c = ParseId(id);
  const Models models = MakeModels(c);
  const Plugin plugin("builtin:reference");
  return RunOnSim(c, models, plugin, {}).run.outcomes;
}

TEST(OlderHost, WithoutRegistrationsUserBuffersAreUnsupported) {
  for (const EngineOutcome& outcome : OutcomesOf("w2.zero3.ub")) {
    EXPECT_EQ(outcome.kind, EngineOutcome::Kind::kUnsupported) << outcome.reason;
    EXPECT_NE(outcome.reason.find("group_register"), std::string::npos) << outcome.reason;
  }
}

TEST(OlderHost, EverythingElseRuns) {
  for (const EngineOutcome& outcome : OutcomesOf("w2.zero3"))
    EXPECT_EQ(outcome.kind, EngineOutcome::Kind::kOk) << outcome.reason;
}

}  // namespace
}  // namespace shardproof

extern "C" const spf_plugin* shardproof_plugin(uint32_t) {
  static const spf_plugin plugin = [] {
    spf_plugin p = shardproof::Reference();
    p.create = [](spf_host* host, spf_engine** out) {
      host->size = offsetof(spf_host, group_register);
      return shardproof::Reference().create(host, out);
    };
    return p;
  }();
  return &plugin;
}
