#include "conformance/checks/graph/deadlock.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

// Ranks of a pipeline. A row is a launch: who is sent to, as a positive number, and who is received
// from, as a negative one, by rank + 1; 0: the host waits for the stream.
using Launches = std::vector<std::vector<int>>;

CheckResult CheckMessages(const std::vector<Launches>& ranks) {
  std::vector<Trace> traces;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    TraceBuilder trace(static_cast<int>(rank), static_cast<int>(ranks.size()));
    std::vector<int32_t> all;
    for (size_t one = 0; one < ranks.size(); ++one) all.push_back(static_cast<int32_t>(one));
    const int pp = trace.Group("pp", all), stream = trace.Stream("messages");
    for (const std::vector<int>& launch : ranks[rank]) {
      if (launch == std::vector{0}) {
        trace.StreamSync(stream);
        trace.Record(trace.EventCreate(), stream);  // between the wait and the next launch
        continue;
      }
      trace.GroupBegin();
      for (const int peer : launch) {
        CollectiveOptions with;
        with.peer = std::abs(peer) - 1;
        trace.Collective(peer > 0 ? SPF_SEND : SPF_RECV, pp, stream, 8, {}, with);
      }
      trace.GroupEnd();
    }
    traces.push_back(trace.Done());
  }
  return Shown(CheckDeadlock(traces));
}

bool NotesAMeeting(const std::vector<Launches>& ranks) {
  const CheckResult result = CheckMessages(ranks);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_GE(result.notes.size(), 1u);
  return result.notes.size() == 2;
}

TEST(Deadlock, AFirstMessageThatWaitsForWhatItsLaunchSendsIsNoted) {
  // Rank 0 sends to rank 1, and receives from it, in one launch; rank 1 answers when it has that.
  const CheckResult result = CheckMessages({{{2, -2}}, {{-1}, {0}, {1}}, {}});
  EXPECT_TRUE(result.findings.empty());
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_NE(result.notes[0].find("E0, E1, E2s: safe"), std::string::npos) << result.notes[0];
  EXPECT_EQ(
      result.notes[1],
      "deadlock: it hangs, or fails, where the first message between two ranks is a meeting of "
      "their hosts, as with NCCL: launch of message of rank 1 to rank 0 on pp (#0); a host "
      "waits meanwhile: rank 1 in host sync of its stream (stream messages) (event 4)");
}

TEST(Deadlock, RanksThatAreConnectedMeetNoMore) {
  EXPECT_FALSE(NotesAMeeting({{{2}, {-2}, {2, -2}}, {{-1}, {1}, {-1}, {0}, {1}}, {}}));
}

TEST(Deadlock, LaunchesThatConnectTheSameMeet) {
  EXPECT_FALSE(NotesAMeeting({{{2}, {-2}}, {{-1}, {0}, {1}}, {}}));
  EXPECT_FALSE(NotesAMeeting({{{2, -2}}, {{-1, 1}}, {}}));
  EXPECT_FALSE(NotesAMeeting({{{2, -2}}, {{-1, 1}}}));
}

// A launch ends when those that it connects have made all their connections.
TEST(Deadlock, ALaunchWaitsForTheConnectionsOfThoseThatItConnects) {
  EXPECT_TRUE(NotesAMeeting({{{2, -2}}, {{-1}, {1}}, {}})) << "no host waits";
  // Rank 2 has something of rank 0 before it receives from rank 1, which rank 1 has in the launch
  // that receives from rank 0.
  EXPECT_TRUE(NotesAMeeting({{{2}, {3}}, {{-1, 3}}, {{-1}, {0}, {-2}}}));
  EXPECT_FALSE(NotesAMeeting({{{2}, {3}}, {{-1}, {3}}, {{-1}, {0}, {-2}}}));
}

// Of two ranks that are opposite each other both directions are one message.
TEST(Deadlock, OppositeRanksConnectBothDirectionsAlike) {
  EXPECT_TRUE(NotesAMeeting({{{2, -2}}, {{-1}, {1}}}));
  EXPECT_FALSE(NotesAMeeting({{{2}, {-2}}, {{-1}, {1}}}));
  EXPECT_TRUE(NotesAMeeting({{{3, -3}}, {}, {{-1}, {1}}, {}}));
}

// Messages of hosts connect nothing.
TEST(Deadlock, RequestsOfHostsMeetNobody) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder trace(rank, 2);
    const int pp = trace.Group("pp", {0, 1});
    for (const int kind : {SPF_RECV, SPF_SEND}) {
      CollectiveOptions with;
      with.peer = 1 - rank;
      with.request = kind == SPF_RECV ? 0 : 1;
      trace.Collective(kind, pp, -1, 8, {}, with);
    }
    for (const int request : {0, 1}) trace.RequestWait(request);
    traces.push_back(trace.Done());
  }
  const CheckResult result = Shown(CheckDeadlock(traces));
  EXPECT_TRUE(result.findings.empty());
  EXPECT_EQ(result.notes.size(), 1u);
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
