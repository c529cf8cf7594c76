// What the two orders of a program say differently, and which entries its events are.
#include "conformance/checks/program/lowered.h"

#include <gtest/gtest.h>

#include "conformance/trace/trace_builder.h"

namespace shardproof::graph {
namespace {

// One collective on each of two streams of a rank.
std::vector<Trace> OnTwoStreams(bool twin) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1});
    const int second = twin ? t.Group("twin", {0, 1}) : dp;
    t.Collective(SPF_ALL_GATHER, dp, t.Stream("gather"), 8);
    t.Collective(SPF_ALL_GATHER, second, t.Stream("reduce"), 8);
    traces.push_back(t.Done());
  }
  return traces;
}

TEST(Order, OfACommunicatorAcrossStreamsMayBeButNeedNot) {
  const std::vector<Trace> traces = OnTwoStreams(false);
  const Lowered run(traces);
  EXPECT_TRUE(run.may().Precedes(0, 1));
  EXPECT_FALSE(run.must().Precedes(0, 1));
  EXPECT_EQ(run.must().Path(0, 1).size(), 0u);
}

TEST(Order, NoneBetweenCommunicatorsOnStreamsOfTheirOwn) {
  const std::vector<Trace> traces = OnTwoStreams(true);
  EXPECT_TRUE(Lowered(traces).may().Unordered(0, 1));
}

TEST(Order, ACycleIsSeen) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int first = t.Group("a", {0, 1}), second = t.Group("b", {0, 1}), stream = t.Stream("s");
    t.Collective(SPF_ALL_GATHER, rank == 0 ? first : second, stream, 8);
    t.Collective(SPF_ALL_GATHER, rank == 0 ? second : first, stream, 8);
    traces.push_back(t.Done());
  }
  EXPECT_TRUE(Lowered(traces).may().HasCycle());
  const std::vector<Trace> good = OnTwoStreams(true);
  EXPECT_FALSE(Lowered(good).may().HasCycle());
}

// So a search for what never comes passes the work in between, and not a whole stream that could
// have run ahead.
TEST(Order, PlacesFollowTheOrderOfIssueWhereTheyCan) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1});
    const int gather = t.Stream("gather"), compute = t.Stream("compute");
    for (int i = 0; i < 10; ++i) {
      t.Collective(SPF_ALL_GATHER, dp, gather, 8);
      t.Launch(compute, SPF_K_FILL, {});
    }
    traces.push_back(t.Done());
  }
  const Lowered run(traces);
  for (const uint32_t first : run.program()->first_entry) {
    for (uint32_t e = first + 1; e < first + 20 && first < run.program()->entries.size(); ++e)
      EXPECT_LT(run.must().StartPlace(e - 1), run.must().StartPlace(e));
  }
}

TEST(Lowered, OnceForAll) {
  const std::vector<Trace> traces = OnTwoStreams(false);
  const Lowered run(traces);
  ASSERT_NE(run.program(), nullptr);
  EXPECT_EQ(run.program(), run.program());
  EXPECT_EQ(&run.must(), &run.must());
}

TEST(Lowered, ARowThatRefersToNothingIsTheReasonWhyThereIsNoProgram) {
  std::vector<Trace> traces = OnTwoStreams(false);
  for (Event& event : traces[1].events) event.group = 7;
  const Lowered run(traces);
  EXPECT_EQ(run.program(), nullptr);
  EXPECT_NE(run.why().find("no such group: 7"), std::string::npos) << run.why();
}

TEST(Lowered, AnEventOfAGroupIsItsKernelAndAMarkIsNoWork) {
  TraceBuilder t(0, 1);
  const int dp = t.Group("dp", {0}), stream = t.Stream("s");
  t.Mark(SPF_HOOK_FORWARD, 0, 0);
  t.GroupBegin();
  t.Collective(SPF_ALL_GATHER, dp, stream, 8);
  t.Collective(SPF_ALL_GATHER, dp, stream, 8);
  t.GroupEnd();
  const std::vector<Trace> traces = {t.Done()};
  const Lowered run(traces);
  std::vector<uint32_t> found;
  for (size_t i = 0; i < traces[0].events.size(); ++i) {
    const EventKind kind = traces[0].events[i].kind;
    const uint32_t entry = run.EntryAt(0, static_cast<int64_t>(i));
    if (kind == EventKind::kMark) {
      EXPECT_EQ(entry, kNone);
    }
    if (kind == EventKind::kCollective) found.push_back(entry);
  }
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0], kNone);
  EXPECT_EQ(found[0], found[1]);
}

}  // namespace
}  // namespace shardproof::graph
