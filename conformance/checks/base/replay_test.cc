#include "conformance/checks/base/replay.h"

#include <gtest/gtest.h>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// Writes down what ran, in order: "0:3" is event 3 of rank 0, "[0:3 1:4]" a collective.
class Log : public ReplayVisitor {
 public:
  void OnLocal(int32_t rank, int64_t event) override {
    if (kinds.contains(At(rank, event).kind)) text += Name(rank, event) + " ";
  }
  void OnCollective(const std::vector<Member>& members) override {
    text += "[";
    for (const Member& member : members)
      text += Name(member.rank, member.event) + (&member == &members.back() ? "" : " ");
    text += "] ";
  }
  std::string Run(std::vector<Trace> given) {
    traces = std::move(given);
    result = Replay(traces, *this);
    return text;
  }
  std::set<EventKind> kinds{EventKind::kLaunch};
  std::vector<Trace> traces;
  ReplayResult result;

 private:
  const Event& At(int32_t rank, int64_t event) const {
    return traces[size_t(rank)].events[size_t(event)];
  }
  static std::string Name(int32_t rank, int64_t event) {
    return std::to_string(rank) + ":" + std::to_string(event);
  }
  std::string text;
};

TEST(Replay, AStreamRunsInOrder) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("s");
  t.Launch(s, SPF_K_FILL, {});
  t.Launch(s, SPF_K_FILL, {});
  EXPECT_EQ(Log().Run({t.Done()}), "0:1 0:2 ");
}

TEST(Replay, AWaitHoldsItsStreamUntilTheRecordRan) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    const int dp = b->Group("dp", {0, 1}), compute = b->Stream("compute"), comm = b->Stream("comm");
    const int done = b->EventCreate();
    b->Collective(SPF_ALL_REDUCE, dp, comm, 4);
    b->Record(done, comm);
    b->Wait(done, compute);
    b->Launch(compute, SPF_K_FILL, {});
  }
  Log log;
  EXPECT_EQ(log.Run({t.Done(), u.Done()}), "[0:3 1:3] 1:6 0:6 ");
  EXPECT_TRUE(log.result.complete);
}

TEST(Replay, HostWaitsForAStreamItSynchronises) {
  TraceBuilder t(0, 1);
  const int a = t.Stream("a"), b = t.Stream("b");
  t.Launch(a, SPF_K_FILL, {});
  t.StreamSync(a);
  t.Launch(b, SPF_K_FILL, {});
  EXPECT_EQ(Log().Run({t.Done()}), "0:2 0:4 ");
}

TEST(Replay, CollectivesOnTwoCommunicatorsMayCrossInIssueOrder) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    const int x = b->Group("x", {0, 1}), y = b->Group("y", {0, 1}), s = b->Stream("s"),
              r = b->Stream("r");
    const bool first = b == &t;
    b->Collective(SPF_ALL_REDUCE, first ? x : y, first ? s : r, 4);
    b->Collective(SPF_ALL_REDUCE, first ? y : x, first ? r : s, 4);
  }
  Log log;
  log.Run({t.Done(), u.Done()});
  EXPECT_TRUE(log.result.complete);
}

TEST(Replay, OperationsOfACommunicatorMeetByIssueOrderWhateverTheirStreams) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    const int dp = b->Group("dp", {0, 1}), s = b->Stream("s"), r = b->Stream("r");
    const bool first = b == &t;
    b->Collective(SPF_ALL_REDUCE, dp, first ? s : r, 4);
    b->Collective(SPF_ALL_GATHER, dp, first ? r : s, 4);
  }
  EXPECT_EQ(Log().Run({t.Done(), u.Done()}), "[0:2 1:2] [0:3 1:3] ");
}

TEST(Replay, SendAndReceiveInOneGroupMeet) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    const int pp = b->Group("pp", {0, 1}), s = b->Stream("s");
    CollectiveOptions to;
    to.peer = b == &t ? 1 : 0;
    b->GroupBegin();
    b->Collective(SPF_SEND, pp, s, 4, {}, to);
    b->Collective(SPF_RECV, pp, s, 4, {}, to);
    b->GroupEnd();
  }
  Log log;
  EXPECT_EQ(log.Run({t.Done(), u.Done()}), "[1:2 0:3] [0:2 1:3] ");
  EXPECT_TRUE(log.result.complete);
}

TEST(Replay, AMissingMemberLeavesTheReplayIncomplete) {
  TraceBuilder t(0, 2), u(1, 2);
  t.Collective(SPF_ALL_REDUCE, t.Group("dp", {0, 1}), t.Stream("s"), 4);
  Log log;
  log.Run({t.Done(), u.Done()});
  EXPECT_FALSE(log.result.complete);
  EXPECT_EQ(log.result.why, "rank 0, event 1 never gets to run when the traces are executed");
}

TEST(Replay, AHostBlockingCollectiveHoldsTheHost) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    b->Collective(SPF_ALL_REDUCE, b->Group("dp", {0, 1}), -1, 4);
    b->Launch(b->Stream("s"), SPF_K_FILL, {});
  }
  Log log;
  EXPECT_EQ(log.Run({t.Done(), u.Done()}), "[0:0 1:0] 1:2 0:2 ");
}

TEST(Replay, ANonBlockingRequestIsCompletedByItsWait) {
  TraceBuilder t(0, 2), u(1, 2);
  for (TraceBuilder* b : {&t, &u}) {
    CollectiveOptions request;
    request.request = 7;
    b->Collective(SPF_ALL_REDUCE, b->Group("dp", {0, 1}), -1, 4, {}, request);
    const int s = b->Stream("s");
    b->RequestWait(7);
    b->Launch(s, SPF_K_FILL, {});
  }
  Log log;
  EXPECT_EQ(log.Run({t.Done(), u.Done()}), "[0:0 1:0] 1:3 0:3 ");
}

}  // namespace
}  // namespace shardproof
