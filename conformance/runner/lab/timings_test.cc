// timings_test: do two hundred timings of one HSDP case give one result?
#include "conformance/runner/timings.h"

#include <gtest/gtest.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/metamorphic/metamorphic.h"
#include "conformance/runner/lab/fault_lab.h"

namespace shardproof {
namespace {

constexpr char kHsdp[] = "w4.zero3.n2.twin.k2.do=tt";
constexpr uint64_t kSeeds = 100;  // under each of two policies

// Digests of all that a rank published and of every parameter that its nodes read, in the order of
// the calls.
std::vector<uint64_t> Digests(const Trace& trace) {
  std::vector<uint64_t> digests;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kPublish) digests.push_back(event.digest);
    for (uint32_t i = event.reads.begin; event.kind == EventKind::kCompute && i < event.reads.end;
         ++i) {
      digests.push_back(trace.reads[i].digest);
    }
  }
  return digests;
}

// What differs, or nothing.
std::string Difference(const Run& a, const Run& b) {
  CheckResult result = CompareResults(a, b, "GE-32");
  result.Merge(CompareCollectiveSequences(a, b, "GE-32"));
  if (!result.findings.empty()) return result.findings.front().message;
  if (result.judged.count("GE-32") == 0) return "nothing was compared";
  for (size_t rank = 0; rank < a.traces.size(); ++rank) {
    if (Digests(a.traces[rank]) != Digests(b.traces[rank]))
      return "digests of rank " + std::to_string(rank);
  }
  return "";
}

TEST(Timings, TwoHundredOfThemGiveEqualResultsSequencesAndDigests) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(kHsdp, plugin, testing::TempDir() + "timings");
  ASSERT_GT(Digests(lab.good_trace(0)).size(), 100u);
  std::set<uint64_t> timings;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const TimingPolicy policy : {TimingPolicy::kRandom, TimingPolicy::kPct}) {
      const RunData data = lab.Run(std::nullopt, seed, policy);
      timings.insert(data.timing_hash);
      ASSERT_EQ(Difference(lab.good().run, data.run), "")
          << kHsdp << " --timing " << TimingPolicyName(policy) << " --seed " << seed;
    }
  }
  std::cout << timings.size() << " different timings of " << 2 * kSeeds << '\n';
  EXPECT_EQ(timings.size(), 2 * kSeeds);
}

// --timings: every seed but the first is in exactly one range.
TEST(Timings, RangesHoldEverySeedOnce) {
  for (const int timings : {1, 2, 7, 500}) {
    for (const int jobs : {1, 2, 16}) {
      uint64_t next = 11;
      for (const TimingRange& range : SplitTimings(10, timings, jobs)) {
        EXPECT_EQ(range.first_seed, next);
        EXPECT_GE(range.count, 1);
        next += static_cast<uint64_t>(range.count);
      }
      EXPECT_EQ(next, 10 + static_cast<uint64_t>(timings));
    }
  }
}

TEST(Timings, OneThatDiffersFailsTheCase) {
  Verdict good, differs;
  good.outcome = Outcome::kPass;
  good.timings = {1};
  differs.outcome = Outcome::kFail;
  differs.timings = {1, 2};
  differs.result.findings.push_back({});
  Verdict both = good;
  MergeTimings(good, &both);
  NoteTimings(2, "pct", &both);
  EXPECT_EQ(both.outcome, Outcome::kPass);
  ASSERT_EQ(both.result.notes.size(), 1u);
  EXPECT_NE(both.result.notes[0].find("2 timings (pct), 1 different"), std::string::npos)
      << both.result.notes[0];
  both = good;
  MergeTimings(differs, &both);
  NoteTimings(3, "pct", &both);
  EXPECT_EQ(both.outcome, Outcome::kFail);
  EXPECT_EQ(both.result.findings.size(), 1u);
  EXPECT_TRUE(both.result.notes.empty());
}

// The comparison must be able to fail: a damaged sum is another result, a doubled gather another
// sequence.
TEST(Timings, AreToldApartFromADamagedRun) {
  const Plugin plugin("builtin:reference");
  const FaultLab lab(kHsdp, plugin, testing::TempDir() + "timings");
  const auto damaged =
      lab.Find(0, "communicate", OnStream("reduce"), 0, Fault::Action::kCorrupt, 1);
  const auto doubled = lab.Find(0, "launch", AllOf({InStep(1), OnStream("reduce")}), 0,
                                Fault::Action::kDuplicate, 1);
  ASSERT_TRUE(damaged && doubled);
  for (const Fault& fault : {*damaged, *doubled}) {
    const RunData data = lab.Run(fault, 1, TimingPolicy::kRandom);
    EXPECT_NE(Difference(lab.good().run, data.run), "") << FaultText(fault);
  }
}

}  // namespace
}  // namespace shardproof
