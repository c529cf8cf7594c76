#include "conformance/report/html/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

std::string NameOf(int32_t rank, int64_t event) {
  return "rank " + std::to_string(rank) + "'s #" + std::to_string(event);
}

// A gather on a stream of its own, for which compute waits or not; then many kernels.
Trace Gathering(int rank, bool waits, int kernels = 3) {
  TraceBuilder t(rank, 2);
  const int dp = t.Group("dp_cp", {0, 1});
  const int main = t.Stream("main"), comm = t.Stream("comm");
  const int shard = t.Alloc(main, 32), full = t.Alloc(main, 64);
  const int ready = t.EventCreate();
  t.Collective(SPF_ALL_GATHER, dp, comm, 8, {Reads(shard, 0, 32), Writes(full, 0, 64)});  // 5
  t.Record(ready, comm);
  if (waits) t.Wait(ready, main);
  for (int i = 0; i < kernels; ++i)
    t.Collective(SPF_ALL_REDUCE, dp, main, 8, {Reads(full, 0, 32), Writes(full, 0, 32)});
  return t.Done();
}

const Drawing::Node* NodeAt(const Drawing& drawing, int32_t rank, int64_t event) {
  const auto found =
      std::find_if(drawing.nodes.begin(), drawing.nodes.end(), [&](const Drawing::Node& node) {
        return node.event == event && drawing.lanes[node.lane].rank == rank;
      });
  return found == drawing.nodes.end() ? nullptr : &*found;
}

size_t Links(const Drawing& drawing, Drawing::LinkKind kind) {
  return static_cast<size_t>(
      std::count_if(drawing.links.begin(), drawing.links.end(),
                    [&](const Drawing::Link& link) { return link.kind == kind; }));
}

int64_t Find(const Trace& trace, uint8_t collective) {
  for (size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == EventKind::kCollective && trace.events[i].collective == collective)
      return static_cast<int64_t>(i);
  }
  return -1;
}

TEST(Drawing, ShowsThePairThatNothingOrdersAndWhoMeetsIt) {
  const std::vector<Trace> traces = {Gathering(0, false), Gathering(1, false)};
  Finding finding;
  finding.requirement = "GE-05";
  finding.rank = 0;
  finding.begins = Find(traces[0], SPF_ALL_GATHER);
  finding.event = Find(traces[0], SPF_ALL_REDUCE);
  const Drawing drawing = DrawFinding(traces, finding, NameOf);
  const Drawing::Node* late = NodeAt(drawing, 0, finding.event);
  const Drawing::Node* early = NodeAt(drawing, 0, finding.begins);
  const Drawing::Node* other = NodeAt(drawing, 1, finding.begins);
  ASSERT_TRUE(late != nullptr && early != nullptr && other != nullptr);
  EXPECT_EQ(late->role, Drawing::Role::kFinding);
  EXPECT_EQ(early->role, Drawing::Role::kPartner);
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kUnordered), 1u);
  EXPECT_EQ(early->column, other->column);  // one collective
  EXPECT_LT(early->column, late->column);
  EXPECT_NE(early->lane, late->lane);
  EXPECT_EQ(drawing.lanes[early->lane].name, "stream comm");
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kMeets), 4u);
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kEvent), 0u);
}

TEST(Drawing, MemoryIsDrawnWhereItIsBounded) {
  const std::vector<Trace> traces = {Gathering(0, false), Gathering(1, false)};
  Finding race, held;
  race.rank = held.rank = 1;
  race.begins = held.begins = Find(traces[1], SPF_ALL_GATHER);
  race.event = held.event = Find(traces[1], SPF_ALL_REDUCE);
  race.requirement = "GE-05";
  held.requirement = "FS-03";
  const auto drawn = DrawFindings(traces, {race, held}, NameOf);
  ASSERT_EQ(drawn.size(), 2u);
  EXPECT_EQ(drawn.at(0).find("\"memory\""), std::string::npos);
  EXPECT_NE(drawn.at(1).find("\"peak\":[3,96]"), std::string::npos) << drawn.at(1);
  EXPECT_EQ(Links(DrawFinding(traces, held, NameOf), Drawing::LinkKind::kUnordered), 0u);
}

TEST(Drawing, JoinsARecordToItsWait) {
  const std::vector<Trace> traces = {Gathering(0, true), Gathering(1, true)};
  Finding finding;
  finding.rank = 0;
  finding.event = Find(traces[0], SPF_ALL_REDUCE);
  EXPECT_EQ(Links(DrawFinding(traces, finding, NameOf), Drawing::LinkKind::kEvent), 2u);
}

TEST(Drawing, StaysSmall) {
  const std::vector<Trace> traces = {Gathering(0, true, 500), Gathering(1, true, 500)};
  Finding finding;
  finding.rank = 1;
  finding.event = 300;
  finding.begins = 20;
  const Drawing drawing = DrawFinding(traces, finding, NameOf);
  EXPECT_LE(drawing.nodes.size(), 2 * kDrawnOfARank);
  EXPECT_TRUE(NodeAt(drawing, 1, 300) && NodeAt(drawing, 1, 20) && NodeAt(drawing, 0, 300));
  EXPECT_FALSE(NodeAt(drawing, 1, 150));
}

TEST(Drawing, ShowsAGroupOperationAsItsCollectives) {
  TraceBuilder t(0, 2);
  const int dp = t.Group("dp", {0, 1});
  const int main = t.Stream("main");
  t.GroupBegin();
  t.Collective(SPF_ALL_GATHER, dp, main, 8, {});
  t.Collective(SPF_ALL_REDUCE, dp, main, 8, {});
  t.GroupEnd();
  t.Collective(SPF_BROADCAST, dp, main, 8, {}, {.peer = 0});
  const std::vector<Trace> traces = {t.Done()};
  Finding finding;
  finding.rank = 0;
  finding.begins = Find(traces[0], SPF_ALL_REDUCE) + 1;
  finding.event = Find(traces[0], SPF_BROADCAST);
  const Drawing drawing = DrawFinding(traces, finding, NameOf);
  for (const uint8_t kind : {SPF_ALL_GATHER, SPF_ALL_REDUCE}) {
    const Drawing::Node* node = NodeAt(drawing, 0, Find(traces[0], kind));
    ASSERT_NE(node, nullptr);
    EXPECT_EQ(node->role, Drawing::Role::kPartner);
  }
  EXPECT_EQ(NodeAt(drawing, 0, finding.begins), nullptr);
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kUnordered), 1u);
}

// Two communicators in opposite orders: no columns fit both.
TEST(Drawing, DrawsACircle) {
  std::vector<Trace> traces;
  for (const int rank : {0, 1}) {
    TraceBuilder t(rank, 2);
    const int a = t.Group("a", {0, 1}, "a"), b = t.Group("b", {0, 1}, "b");
    const int main = t.Stream("main");
    for (const int group : rank == 0 ? std::vector<int>{a, b} : std::vector<int>{b, a})
      t.Collective(SPF_ALL_REDUCE, group, main, 8, {});
    traces.push_back(t.Done());
  }
  Finding finding;
  finding.rank = 0;
  finding.event = 1;
  finding.seen = "rank 0, event 1 waits for rank 1, event 2, and so on: rank 1, event 1";
  const Drawing drawing = DrawFinding(traces, finding, NameOf);
  EXPECT_EQ(drawing.nodes.size(), 4u);
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kCircle), 3u);
  EXPECT_EQ(Links(drawing, Drawing::LinkKind::kMeets), 2u);
}

TEST(Drawing, OfFindingsWithoutAnEventShowsHowRanksEnded) {
  const std::vector<Trace> traces = {Gathering(0, true), Gathering(1, true)};
  const Drawing drawing = DrawFinding(traces, Finding{}, NameOf);
  const auto last = static_cast<int64_t>(traces[1].events.size()) - 1;
  EXPECT_TRUE(NodeAt(drawing, 0, last) && NodeAt(drawing, 1, last));
  Finding elsewhere;
  elsewhere.rank = 9;
  elsewhere.event = 1000;
  EXPECT_TRUE(DrawFinding(traces, elsewhere, NameOf).nodes.empty());
  EXPECT_TRUE(DrawFinding({}, Finding{}, NameOf).nodes.empty());
}

TEST(Drawing, OfACaseTheFirstOfEachRequirementThatStandForThemselves) {
  const std::vector<Trace> traces = {Gathering(0, true), Gathering(1, true)};
  std::vector<Finding> findings(4);
  for (Finding& finding : findings) finding.requirement = "GE-05";
  findings[1].requirement = "FS-01";
  findings[1].follows = 0;
  findings[2].requirement = "LW-01";
  const auto drawn = DrawFindings(traces, findings, NameOf);
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_TRUE(drawn.contains(0) && drawn.contains(2));
  EXPECT_EQ(drawn, DrawFindings(traces, findings, NameOf));
}

TEST(Drawing, NamedEventsAreReadFromTexts) {
  using Places = std::vector<std::pair<int32_t, int64_t>>;
  EXPECT_EQ(NamedEvents("rank 3, event 17 (x); rank 4's; rank 0, event 2"),
            (Places{{3, 17}, {0, 2}}));
  EXPECT_EQ(NamedEvents("(event 1) rank 2, event 7: x (event 5), wait for event 3 (event x)"),
            (Places{{2, 7}, {2, 5}}));
  EXPECT_EQ(NamedEvents("rank 3, event; rank , event 2; rank 99999999999999999999, event 1"),
            Places{});
}

}  // namespace
}  // namespace shardproof
