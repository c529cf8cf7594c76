// determinism_test: does the same seed give the same run, byte for byte, and another seed the same
// results?
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/runner/lab/fault_lab.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

constexpr TimingPolicy kTimingPolicies[] = {TimingPolicy::kEager, TimingPolicy::kLazyComm,
                                            TimingPolicy::kLazyCompute, TimingPolicy::kRandom,
                                            TimingPolicy::kPct};
constexpr const char* kCases[] = {"w4.zero3.n2.twin.k2.adamw.do=tt",
                                  "w4.zero2.ep2.experts.ogr.do=te",
                                  "w4.zero3.name=policy+zero3.name=value.twin.do=tet",
                                  "w3.zero1.opg.do=tsl",
                                  "w4.zero3.ep2.k2.moe4.mtp.1f1b.dw.do=te",
                                  "w4.lw.ep2.k2.ogr.opg.bs1000.muon.do=tte.moe4"};

std::vector<std::string> Texts(const RunData& data) {
  std::vector<std::string> texts;
  for (const Trace& trace : data.run.traces) texts.push_back(TraceToText(trace));
  return texts;
}

std::string FirstMessage(const CheckResult& result) {
  return result.findings.empty() ? "" : result.findings.front().message;
}

class Determinism : public testing::TestWithParam<const char*> {};

TEST_P(Determinism, EqualSeedsGiveEqualTraces) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(GetParam(), plugin, testing::TempDir() + "determinism");
  for (const TimingPolicy policy : kTimingPolicies) {
    const RunData a = lab.Run(std::nullopt, 11, policy), b = lab.Run(std::nullopt, 11, policy);
    ASSERT_FALSE(a.deadlock) << TimingPolicyName(policy);
    EXPECT_EQ(a.timing_hash, b.timing_hash) << TimingPolicyName(policy);
    const std::vector<std::string> left = Texts(a), right = Texts(b);
    for (size_t rank = 0; rank < left.size(); ++rank) {
      EXPECT_GT(left[rank].size(), 10000u);
      EXPECT_TRUE(left[rank] == right[rank]) << TimingPolicyName(policy) << ", rank " << rank;
    }
  }
}

TEST_P(Determinism, OtherSeedsGiveOtherTimingsAndEqualResults) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(GetParam(), plugin, testing::TempDir() + "determinism");
  for (const TimingPolicy policy : {TimingPolicy::kRandom, TimingPolicy::kPct}) {
    std::set<uint64_t> timings;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const RunData data = lab.Run(std::nullopt, seed, policy);
      timings.insert(data.timing_hash);
      EXPECT_EQ(FirstMessage(CompareResults(lab.good().run, data.run, "GE-32")), "")
          << TimingPolicyName(policy) << ", seed " << seed;
    }
    EXPECT_EQ(timings.size(), 8u) << TimingPolicyName(policy);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Determinism, testing::ValuesIn(kCases));

}  // namespace
}  // namespace shardproof
