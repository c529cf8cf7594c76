#include "conformance/checks/graph/deadlock.h"

#include <gtest/gtest.h>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// Two ranks with a communicator and its twin on streams of their own.
struct Rank {
  explicit Rank(int rank) : trace(rank, 2) {
    dp = trace.Group("dp_cp", {0, 1});
    twin = trace.Group("dp_cp_ag", {0, 1});
    gather = trace.Stream("gather");
    reduce = trace.Stream("reduce");
  }
  void AllGather() { trace.Collective(SPF_ALL_GATHER, twin, gather, 8); }
  void ReduceScatter() { trace.Collective(SPF_REDUCE_SCATTER, dp, reduce, 8); }
  TraceBuilder trace;
  int dp = 0, twin = 0, gather = 0, reduce = 0;
};

CheckResult Check(Rank& a, Rank& b) {
  return Shown(CheckDeadlock(std::vector<Trace>{a.trace.Done(), b.trace.Done()}));
}

TEST(Deadlock, TheSameOrderOnAllRanksIsSafe) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) rank->AllGather(), rank->ReduceScatter(), rank->AllGather();
  const CheckResult result = Check(a, b);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.judged.contains("GE-03"));
  EXPECT_TRUE(result.judged.contains("GE-04"));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("k* 2"), std::string::npos) << result.notes[0];
}

TEST(Deadlock, OppositeOrdersNeedTwoSlots) {
  Rank a(0), b(1);
  a.AllGather(), a.ReduceScatter();
  b.ReduceScatter(), b.AllGather();
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-04");
  EXPECT_NE(result.findings[0].seen.find("dp_cp_ag"), std::string::npos);
}

TEST(Deadlock, HostSyncsThatWaitForEachOtherAreACycle) {
  Rank a(0), b(1);
  a.AllGather(), a.trace.StreamSync(a.gather), a.ReduceScatter();
  b.ReduceScatter(), b.trace.StreamSync(b.reduce), b.AllGather();
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
  // A line for each rank; what stands between on a stream or the host is left out.
  EXPECT_EQ(
      result.findings[0].seen,
      "rank 1, event 4: all_gather on dp_cp_ag (#0) (stream gather), which the host issues "
      "only after host sync of its stream (stream reduce) (event 3), which returns only after "
      "reduce_scatter on dp_cp (#0) (stream reduce) (event 2), which waits for rank 0\n"
      "rank 0, event 4: reduce_scatter on dp_cp (#0) (stream reduce), which the host issues "
      "only after host sync of its stream (stream gather) (event 3), which returns only after "
      "all_gather on dp_cp_ag (#0) (stream gather) (event 2), which waits for rank 1");
  EXPECT_TRUE(result.findings[0].message.starts_with(
      "a cyclic wait: rank 1 waits for rank 0, which waits for rank 1. "))
      << result.findings[0].message;
  EXPECT_NE(result.findings[0].message.find("every implementation"), std::string::npos);
}

TEST(Deadlock, ARunThatHungIsExplainedThoughItsTracesEndEarly) {
  Rank a(0), b(1);
  a.AllGather(), a.trace.StreamSync(a.gather);  // would issue the reduce-scatter next
  b.ReduceScatter(), b.trace.StreamSync(b.reduce);
  const std::vector<Trace> traces = {a.trace.Done(TraceEnd::kAborted),
                                     b.trace.Done(TraceEnd::kAborted)};
  const CheckResult result = Shown(CheckDeadlock(traces));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
  EXPECT_NE(result.findings[0].seen.find("never issued"), std::string::npos)
      << result.findings[0].seen;
  EXPECT_TRUE(CheckMatching(traces).findings.empty()) << "the cycle explains what is missing";
}

TEST(Deadlock, AnEventThatOrdersBothKeepsKStarAtOne) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) {
    rank->AllGather();
    const int done = rank->trace.EventCreate();
    rank->trace.Record(done, rank->gather);
    rank->trace.Wait(done, rank->reduce);
    rank->ReduceScatter();
  }
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("k* 1"), std::string::npos) << result.notes[0];
  EXPECT_NE(result.notes[0].find("E3: safe"), std::string::npos);
}

TEST(Deadlock, ThreadsThatShareAStreamUnorderedAreNotCheckable) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) rank->AllGather();
  a.trace.Thread(1);
  for (Rank* rank : {&a, &b}) rank->AllGather();
  const CheckResult result = Check(a, b);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.judged.empty());
  ASSERT_EQ(result.not_checkable.size(), 2u);
  EXPECT_NE(result.not_checkable[0].why.find("two host threads"), std::string::npos);
}

TEST(Deadlock, ThreadsThatHandOverAreCheckable) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) {
    rank->AllGather();
    rank->trace.ThreadPost(0);
    rank->trace.Thread(1);
    rank->trace.ThreadAwait(0);
    rank->AllGather();
  }
  const CheckResult result = Check(a, b);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.not_checkable.empty());
}

// ---- the first message between two ranks, where it is a meeting of their hosts

void Message(Rank& rank, int kind, int peer) {
  CollectiveOptions to;
  to.peer = peer;
  rank.trace.Collective(kind, rank.dp, rank.reduce, 8, {}, to);
}

// Rank 0 sends, and receives for the first time, in one launch; rank 1 answers when its host has
// what was sent. before: messages that have connected the two.
CheckResult SendAndReceiveInOneLaunch(bool before, bool host_waits) {
  Rank a(0), b(1);
  if (before) Message(b, SPF_SEND, 0), Message(a, SPF_RECV, 1);
  a.trace.GroupBegin(), Message(a, SPF_SEND, 1), Message(a, SPF_RECV, 1), a.trace.GroupEnd();
  Message(b, SPF_RECV, 0);
  if (host_waits) b.trace.StreamSync(b.reduce);
  b.trace.Record(b.trace.EventCreate(), b.reduce);
  Message(b, SPF_SEND, 0);
  return Check(a, b);
}

TEST(Deadlock, AFirstMessageThatWaitsForWhatItsLaunchSendsIsNoted) {
  const CheckResult result = SendAndReceiveInOneLaunch(false, true);
  EXPECT_TRUE(result.findings.empty());
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_NE(result.notes[0].find("E0, E1, E2s: safe"), std::string::npos) << result.notes[0];
  EXPECT_EQ(
      result.notes[1],
      "deadlock: it hangs where the first message between two ranks is a meeting of their "
      "hosts, as with NCCL: launch of message of rank 1 to rank 0 on dp_cp (#0); a host waits "
      "meanwhile: rank 1 in host sync of its stream (stream reduce) (event 3)");
}

TEST(Deadlock, AFirstMessageThatNobodyWaitsForIsNotNoted) {
  EXPECT_EQ(SendAndReceiveInOneLaunch(true, true).notes.size(), 1u) << "they are connected";
  EXPECT_EQ(SendAndReceiveInOneLaunch(false, false).notes.size(), 1u) << "no host waits";
}

TEST(Deadlock, DestroyingAGroupWaitsForItsWorkOnAllRanks) {
  Rank a(0), b(1);
  a.AllGather(), a.trace.GroupDestroy(a.twin), a.ReduceScatter();
  b.ReduceScatter(), b.trace.StreamSync(b.reduce), b.AllGather(), b.trace.GroupDestroy(b.twin);
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
}

TEST(Deadlock, GroupsCreatedInOppositeOrderUnderTwoParentsHang) {
  Rank a(0), b(1);
  a.trace.GroupCreate(a.dp, "x", {0, 1}), a.trace.GroupCreate(a.twin, "y", {0, 1});
  b.trace.GroupCreate(b.twin, "y", {0, 1}), b.trace.GroupCreate(b.dp, "x", {0, 1});
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
}

TEST(Deadlock, BlocksRegisteredWithTwoGroupsInOppositeOrderHang) {
  for (const bool opposite : {false, true}) {
    Rank a(0), b(1);
    for (Rank* rank : {&a, &b}) {
      const int block = rank->trace.Alloc(rank->gather, 64, {}, SPF_REGISTRABLE);
      const bool twin_first = opposite && rank == &b;
      rank->trace.GroupRegister(twin_first ? rank->twin : rank->dp, block);
      rank->trace.GroupRegister(twin_first ? rank->dp : rank->twin, block);
    }
    const CheckResult result = Check(a, b);
    ASSERT_EQ(result.findings.size(), opposite ? 1u : 0u);
    if (!opposite) continue;
    EXPECT_EQ(result.findings[0].requirement, "GE-03");
    EXPECT_NE(result.findings[0].seen.find("registration of block 0 with group dp_cp"),
              std::string::npos)
        << result.findings[0].message;
  }
}

TEST(Deadlock, ARegistrationBehindAHostSyncThatNeedsTheOtherRankHangs) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) rank->trace.Alloc(rank->gather, 64, {}, SPF_REGISTRABLE);
  a.trace.GroupRegister(a.dp, 0), a.AllGather();
  b.AllGather(), b.trace.StreamSync(b.gather), b.trace.GroupRegister(b.dp, 0);
  const CheckResult result = Check(a, b);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
}

TEST(Deadlock, ARunThatHungInARegistrationIsExplained) {
  Rank a(0), b(1);
  a.trace.GroupRegister(a.dp, a.trace.Alloc(a.gather, 64, {}, SPF_REGISTRABLE));
  b.AllGather(), b.trace.StreamSync(b.gather);  // would register next; rank 0 would gather next
  const std::vector<Trace> traces = {a.trace.Done(TraceEnd::kAborted),
                                     b.trace.Done(TraceEnd::kAborted)};
  const CheckResult result = Shown(CheckDeadlock(traces));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-03");
}

TEST(Deadlock, DeregisteringWaitsForThisRanksWorkOnTheGroup) {
  for (const bool deregisters : {false, true}) {
    Rank a(0), b(1);
    for (Rank* rank : {&a, &b}) {
      const int block = rank->trace.Alloc(rank->gather, 64, {}, SPF_REGISTRABLE);
      rank->trace.GroupRegister(rank->twin, block);
    }
    a.AllGather();
    if (deregisters) a.trace.GroupDeregister(a.twin, 0);
    a.ReduceScatter();
    b.ReduceScatter(), b.trace.StreamSync(b.reduce), b.AllGather();
    const CheckResult result = Check(a, b);
    const bool hangs = !result.findings.empty() && result.findings[0].requirement == "GE-03";
    EXPECT_EQ(hangs, deregisters);
  }
}

TEST(Deadlock, DeregisteringMeetsNobody) {
  Rank a(0), b(1);
  for (Rank* rank : {&a, &b}) {
    const int block = rank->trace.Alloc(rank->gather, 64, {}, SPF_REGISTRABLE);
    rank->trace.GroupRegister(rank->dp, block), rank->trace.GroupRegister(rank->twin, block);
  }
  a.trace.GroupDeregister(a.dp, 0), a.trace.GroupDeregister(a.twin, 0);
  b.trace.GroupDeregister(b.twin, 0), b.trace.GroupDeregister(b.dp, 0);
  EXPECT_TRUE(Check(a, b).findings.empty());
}

TEST(Deadlock, MalformedRowsAreNotCheckable) {
  Rank a(0), b(1);
  a.AllGather(), b.AllGather();
  a.trace.Last().group = 7;
  const CheckResult result = Check(a, b);
  ASSERT_FALSE(result.not_checkable.empty());
  EXPECT_NE(result.not_checkable[0].why.find("rank 0, event"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
