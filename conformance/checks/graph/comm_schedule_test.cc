#include "conformance/checks/graph/comm_schedule.h"

#include <gtest/gtest.h>

#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

using Ids = std::set<std::string>;

// A step on two ranks: an all-to-all of tokens on a stream, a reduction of gradients over another
// communicator on another, and what keeps them apart.
struct Shape {
  bool chained = true;          // by an event behind the first of them
  bool recorded_early = false;  // that event is recorded ahead of it
  bool recorded_only = false;   // nobody waits for that event
  bool one_stream = false;
  bool one_group = false;
  bool last_first_on_rank_1 = false;  // the other order
  bool third = false;                 // one more all-to-all that nothing orders
  bool host = false;                  // the host waits in between, no event
};

Trace StepOf(int rank, const Shape& shape) {
  TraceBuilder t(rank, 2);
  const int dp = t.Group("dp_cp", {0, 1}), ep = shape.one_group ? dp : t.Group("ep", {0, 1});
  const int reduce = t.Stream("reduce"), a2a = shape.one_stream ? reduce : t.Stream("a2a");
  t.CallBegin("train_step", 0);
  const bool swapped = shape.last_first_on_rank_1 && rank == 1;
  const int first = swapped ? dp : ep, second = swapped ? ep : dp;
  const int first_on = swapped ? reduce : a2a, second_on = swapped ? a2a : reduce;
  const auto issue = [&](int group, int stream) {
    if (group == dp && !shape.one_group) {
      t.Collective(SPF_REDUCE_SCATTER, group, stream, 8, {}, {.label = {SPF_FOR_GRAD, 1, 0}});
    } else {
      t.Collective(SPF_ALL_REDUCE, group, stream, 8, {}, {});
    }
  };
  const int event = t.EventCreate();
  if (shape.recorded_early) t.Record(event, first_on);
  issue(first, first_on);
  if ((shape.chained && !shape.recorded_early) || shape.recorded_only) t.Record(event, first_on);
  if (shape.chained) t.Wait(event, second_on);
  if (shape.host) t.StreamSync(first_on);
  issue(second, second_on);
  if (shape.third) issue(ep, t.Stream("late"));
  t.CallEnd("train_step", 0);
  return t.Done();
}

Case Asked(CommSchedule schedule) {
  Case c;
  c.world = 2;
  c.instances[0].span = 2;
  c.instances[0].schedule = schedule;
  return c;
}

CheckResult Judged(CommSchedule schedule, const Shape& shape) {
  const std::vector<Trace> traces = {StepOf(0, shape), StepOf(1, shape)};
  return Shown(CheckCommSchedule(Asked(schedule), traces));
}

Ids Found(const CheckResult& result) {
  Ids ids;
  for (const Finding& finding : result.findings) ids.insert(finding.requirement);
  return ids;
}

constexpr auto kOne = CommSchedule::kOneCommunicator, kQueue = CommSchedule::kOneQueue;

TEST(OneCommunicator, CollectivesThatAreKeptApartPass) {
  const Shape kept[] = {{},
                        {.chained = false, .one_stream = true},
                        {.chained = false, .one_group = true},
                        {.chained = false, .host = true}};
  for (const Shape& shape : kept) {
    const CheckResult result = Judged(kOne, shape);
    EXPECT_EQ(Found(result), Ids{});
    EXPECT_EQ(result.judged, Ids{"GE-41"});
  }
}

TEST(OneCommunicator, TwoInFlightAreFound) {
  const CheckResult result = Judged(kOne, {.chained = false});
  ASSERT_EQ(Found(result), Ids{"GE-41"});
  EXPECT_NE(result.findings[0].operation.find("reduce_scatter"), std::string::npos);
  EXPECT_NE(result.findings[0].expected.find("all_reduce"), std::string::npos);
  EXPECT_NE(result.findings[0].message.find("2 of 2 pairs"), std::string::npos);
}

TEST(OneCommunicator, AnEventAheadOfItsCollectiveKeepsNothingApart) {
  EXPECT_EQ(Found(Judged(kOne, {.recorded_early = true})), Ids{"GE-41"});
}

// Two kernels that are in order with a third one need not be with each other.
TEST(OneCommunicator, EveryPairCounts) {
  const CheckResult result = Judged(kOne, {.third = true});
  ASSERT_EQ(Found(result), Ids{"GE-41"});
  EXPECT_NE(result.findings[0].message.find("2 of 4 pairs"), std::string::npos);
}

TEST(OneCommunicator, WithoutTwoCollectivesNothingIsJudged) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp_cp", {0, 1}), alone = t.Group("ep", {rank});
    t.Collective(SPF_ALL_REDUCE, dp, t.Stream("reduce"), 8, {}, {});
    t.Collective(SPF_ALL_REDUCE, alone, t.Stream("a2a"), 8, {}, {});
    traces.push_back(t.Done());
  }
  Case c = Asked(kOne);
  CheckResult result = Shown(CheckCommSchedule(c, traces));
  EXPECT_TRUE(result.judged.empty());
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].kind, NotCheckable::Kind::kMissing);
  c.instances[0].script = "t";  // which need not communicate twice
  result = Shown(CheckCommSchedule(c, traces));
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].kind, NotCheckable::Kind::kNotAsked);
}

TEST(OneCommunicator, ARunThatCanHangIsNotJudged) {
  const CheckResult result = Judged(kOne, {.last_first_on_rank_1 = true});
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(result.not_checkable.size(), 1u);
}

TEST(OneQueue, OneOrderOnAllRanksPasses) {
  for (const bool chained : {true, false}) {
    const CheckResult result = Judged(kQueue, {.chained = chained});
    EXPECT_EQ(Found(result), Ids{});
    EXPECT_EQ(result.judged, Ids{"GE-42"});
  }
}

// Streams of their own hide it: no timing hangs there.
TEST(OneQueue, AnotherOrderOnARankHangs) {
  const CheckResult result =
      Judged(kQueue, {.chained = false, .recorded_only = true, .last_first_on_rank_1 = true});
  ASSERT_EQ(Found(result), Ids{"GE-42"});
  EXPECT_NE(result.findings[0].message.find("one queue"), std::string::npos);
}

// Where nothing stands between them a queue starts both, and each finds its peer (GE-04 is about
// devices that run one at a time).
TEST(OneQueue, AnotherOrderOfNeighboursDoesNotHang) {
  const CheckResult result = Judged(kQueue, {.chained = false, .last_first_on_rank_1 = true});
  EXPECT_EQ(Found(result), Ids{});
  EXPECT_EQ(result.judged, Ids{"GE-42"});
}

TEST(CommSchedule, IsNotSpokenOfWhereNotAskedFor) {
  const CheckResult result = Judged(CommSchedule::kCommunicators, {.chained = false});
  EXPECT_TRUE(result.judged.empty());
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.not_checkable.empty());
}

TEST(CommSchedule, TracesWithoutSynchronisationAreNotJudged) {
  std::vector<Trace> traces = {StepOf(0, {}), StepOf(1, {})};
  traces[1].provides.sync = false;
  for (const CommSchedule schedule : {kOne, kQueue}) {
    const CheckResult result = Shown(CheckCommSchedule(Asked(schedule), traces));
    EXPECT_TRUE(result.judged.empty());
    EXPECT_EQ(result.not_checkable.size(), 1u);
  }
}

}  // namespace
}  // namespace shardproof
