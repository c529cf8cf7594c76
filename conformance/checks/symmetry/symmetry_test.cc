// Does a world say the same through its shapes as through the traces of all its ranks?
//
// On random worlds, most of them with some ranks that differ. One recorded run of 100,000:
//
//   bazel test --test_output=all --test_env=SHARDPROOF_SYMMETRY_WORLDS=100000
//       //conformance/checks/symmetry:symmetry_test
//
// SHARDPROOF_SYMMETRY_SEED=N draws others.
#include "conformance/checks/symmetry/symmetry.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/symmetry/partition.h"
#include "conformance/checks/symmetry/random_world.h"
#include "conformance/checks/symmetry/rewritten.h"
#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace shardproof::symmetry {
namespace {

int Wanted(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

CompactWorld Compacted(const std::vector<Trace>& traces) {
  CompactWorldBuilder builder;
  for (const Trace& trace : traces) builder.Add(trace, {});
  return builder.Take();
}

// Which requirements are broken; which are judged.
struct Said {
  std::set<std::string> broken, judged;
  bool operator==(const Said&) const = default;
};
Said SaidBy(const CheckResult& result) {
  Said said;
  for (const Finding& finding : result.findings) said.broken.insert(finding.requirement);
  std::set<std::string> open;
  for (const NotCheckable& row : result.not_checkable) open.insert(row.requirement);
  for (const std::string& id : result.judged) {
    if (!open.contains(id)) said.judged.insert(id);
  }
  return said;
}

CheckResult OfAll(const std::vector<Trace>& traces) {
  const graph::Lowered lowered(traces);
  CheckResult result = CheckMatching(lowered);
  if (result.findings.empty()) result.Merge(CheckDeadlock(lowered));
  return result;
}

std::string Text(const Said& said) {
  std::string text = "broken";
  for (const std::string& id : said.broken) text += " " + id;
  text += "; judged";
  for (const std::string& id : said.judged) text += " " + id;
  return text;
}

TEST(SymmetryTest, SaysWhatTheGraphOfAllRanksSays) {
  const int worlds = Wanted("SHARDPROOF_SYMMETRY_WORLDS", 400);
  const int seed = Wanted("SHARDPROOF_SYMMETRY_SEED", 1);
  int broken = 0, hang = 0, fewer = 0, whole = 0, other_id = 0;
  for (int i = 0; i < worlds && !HasFailure(); ++i) {
    std::mt19937 random(static_cast<unsigned>(seed) * 1000003u + static_cast<unsigned>(i));
    const std::vector<Trace> traces = DrawWorld(random);
    const CompactWorld world = Compacted(traces);
    const Said want = SaidBy(OfAll(traces));
    const CheckResult through = CheckManyRanks(world);
    const Said got = SaidBy(through);
    EXPECT_EQ(got.broken.empty(), want.broken.empty())
        << "world " << i << ": " << Text(want) << " / " << Text(got);
    other_id += got.broken == want.broken ? 0 : 1;
    if (want.broken.empty()) {
      EXPECT_EQ(got.judged, want.judged)
          << "world " << i << ": " << Text(want) << " / " << Text(got);
    }
    broken += want.broken.empty() ? 0 : 1;
    hang += want.broken.contains("GE-03") || want.broken.contains("GE-04") ? 1 : 0;
    fewer += world.shapes.size() < traces.size() ? 1 : 0;
    for (const std::string& note : through.notes) {
      if (note.find("the graph of all ranks") != std::string::npos) ++whole;
    }
  }
  std::printf(
      "%d worlds: %d break a requirement, %d of them hang; in %d there are fewer shapes than "
      "ranks; of %d the whole graph was made; %d are broken under another id\n",
      worlds, broken, hang, fewer, whole, other_id);
  // Who is odd one out is judged among some members of a large communicator.
  EXPECT_LE(other_id, worlds / 1000);
  EXPECT_GT(broken, worlds / 10);
  EXPECT_LT(broken, worlds * 9 / 10);
  EXPECT_GT(hang, worlds / 50);
  EXPECT_GT(fewer, worlds / 2);
  EXPECT_LE(whole, worlds / 1000) << "who differs is found without it";
}

TEST(SymmetryTest, NothingIsLost) {
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    const std::vector<Trace> traces = DrawWorld(random);
    const CompactWorld world = Compacted(traces);
    for (size_t rank = 0; rank < traces.size(); ++rank)
      EXPECT_EQ(TraceToText(world.Expand(static_cast<int32_t>(rank))), TraceToText(traces[rank]));
  }
}

TEST(SymmetryTest, RanksThatAreNotNamedAreCounted) {
  std::vector<Trace> traces;
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < 30; ++rank) all.push_back(rank);
  for (const int32_t rank : all) {
    TraceBuilder t(rank, 30);
    const int dp = t.Group("dp", all), compute = t.Stream("compute");
    t.CallBegin("create");
    const int block = t.Alloc(compute, 64);
    if (rank == 0) t.Collective(SPF_ALL_REDUCE, dp, compute, 16, {Updates(block, 0, 64)});
    t.CallEnd("create");
    traces.push_back(t.Done());
  }
  const CheckResult result = CheckManyRanks(Compacted(traces));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("ranks 1, 2 and 3 issue none"), std::string::npos);
  EXPECT_TRUE(result.findings[0].message.ends_with("; and 26 more ranks do what rank 1 does"))
      << result.findings[0].message;
}

// Two ranks that only look alike: each condition of the proof, broken by hand.
TEST(SymmetryTest, APartitionThatIsNoneIsRefused) {
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const CompactWorld world = Compacted(DrawWorld(random));
    Partition partition = Refine(world);
    ASSERT_EQ(Breaks(world, partition), "");
    if (partition.ranks < 2) continue;
    // Two colours of ranks are made one.
    Partition merged = partition;
    for (int32_t& colour : merged.of_rank) colour = colour == 1 ? 0 : colour;
    refused += Breaks(world, merged).empty() ? 0 : 1;
    EXPECT_NE(Breaks(world, merged), "") << "the coarsest partition had one colour too many";
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace shardproof::symmetry
