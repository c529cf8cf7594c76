// Races with what the host does: in several threads, in requests, and before collectives that it
// waits in.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/checks/graph/gathering_rank.h"

namespace shardproof {
namespace {

using graph::Check, graph::Found, graph::Ids;
using Rank = graph::GatheringRank;

// Rank 0 gathers only after an all-reduce that rank 1's host joins last. So what rank 1's host does
// before that is over before the gather is, and before the kernel behind the gather.
struct LateGather {
  LateGather() {
    a.trace.Collective(SPF_ALL_REDUCE, a_host, -1, 1);
    a.trace.Collective(SPF_ALL_GATHER, a.dp, a.comm, 8);
    block = b.trace.Alloc(b.comm, 64, {}, SPF_PINNED);
    b.trace.Collective(SPF_ALL_GATHER, b.dp, b.comm, 8);
  }
  void Meet() { b.trace.Collective(SPF_ALL_REDUCE, b_host, -1, 1); }
  CheckResult Judge() { return CheckRaces(std::vector<Trace>{a.trace.Done(), b.trace.Done()}); }
  Rank a{0, 2}, b{1, 2};
  const int a_host = a.trace.Group("host", {0, 1}), b_host = b.trace.Group("host", {0, 1});
  int block = 0;
};

TEST(HostRaces, AnAccessIssuedLaterCanBeOverFirst) {
  for (const bool meet_first : {false, true}) {
    LateGather run;
    run.b.trace.Launch(run.b.comm, SPF_K_SUM_SQUARES, {Reads(run.block, 0, 64)});
    if (meet_first) run.Meet();
    run.b.trace.HostAccess({Writes(run.block, 0, 64)});
    if (!meet_first) run.Meet();
    EXPECT_EQ(Found(run.Judge()), meet_first ? Ids{"GE-06"} : Ids{}) << meet_first;
  }
}

// The write in the middle is issued first of the three, and starts last.
TEST(HostRaces, ARaceIsNotHiddenBehindAnAccessThatStartsLater) {
  LateGather run;
  run.b.trace.Launch(run.b.compute, SPF_K_SUM_SQUARES, {Reads(run.block, 0, 64)});
  const std::string kernel = "(event " + std::to_string(run.b.trace.size() - 1) + ")";
  run.b.Order(run.b.compute, run.b.comm);
  run.b.trace.Launch(run.b.comm, SPF_K_FILL, {Writes(run.block, 0, 64)});
  run.b.trace.HostAccess({Writes(run.block, 0, 64)});  // races with the first kernel only
  run.Meet();
  const CheckResult result = run.Judge();
  ASSERT_EQ(Found(result), Ids{"GE-06"});
  EXPECT_TRUE(result.findings[0].expected.ends_with(kernel)) << result.findings[0].expected;
}

// Rank 1 ends before its gather, so nothing behind rank 0's gather ever runs.
TEST(HostRaces, AnAccessBeforeOlderWorkThatNeverRanIsFound) {
  for (const bool synchronised : {false, true}) {
    Rank a(0, 2), b(1, 2);
    a.trace.Collective(SPF_ALL_GATHER, a.dp, a.comm, 8);
    const int block = a.trace.Alloc(a.comm, 64, {}, SPF_PINNED);
    a.trace.Launch(a.comm, SPF_K_FILL, {Writes(block, 0, 64)});
    if (synchronised) a.trace.StreamSync(a.comm);
    a.trace.HostAccess({Reads(block, 0, 64)});
    const std::vector<Trace> traces = {a.trace.Done(TraceEnd::kAborted),
                                       b.trace.Done(TraceEnd::kAborted)};
    EXPECT_EQ(Found(CheckRaces(traces)), synchronised ? Ids{} : Ids{"GE-06"}) << synchronised;
  }
}

// Thread 1 waits for the request; until thread 0 hears of that, its buffer is in use.
TEST(HostRaces, ARequestIsOverWhenAnotherThreadHasWaitedForItAndSaidSo) {
  for (const bool said : {false, true}) {
    Rank rank(0, 1);
    const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
    rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, -1, 1, {Reads(block, 0, 64)}, {.request = 0});
    rank.trace.ThreadPost(0);
    rank.trace.Thread(1).ThreadAwait(0);
    rank.trace.RequestWait(0);
    rank.trace.ThreadPost(1);
    rank.trace.Thread(0);
    if (said) rank.trace.ThreadAwait(1);
    rank.trace.HostAccess({});
    rank.trace.HostAccess({Writes(block, 0, 64)});
    EXPECT_EQ(Found(Check(rank)), said ? Ids{} : Ids{"GE-06"});
  }
}

// The first wait orders thread 1 behind the request, and not behind what thread 0 did before the
// second wait.
TEST(HostRaces, ASecondWaitForARequestOrdersNothingMore) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
  const int other = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
  rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, -1, 1, {Reads(block, 0, 64)}, {.request = 0});
  rank.trace.RequestWait(0);
  rank.trace.ThreadPost(0);
  rank.trace.HostAccess({Writes(other, 0, 64)});
  rank.trace.RequestWait(0);
  rank.trace.Thread(1).ThreadAwait(0);
  rank.trace.HostAccess({Writes(block, 0, 64)});
  rank.trace.HostAccess({Writes(other, 0, 64)});
  const CheckResult result = Check(rank);
  ASSERT_EQ(Found(result), Ids{"GE-06"});
  EXPECT_NE(result.findings[0].message.find("of block 1"), std::string::npos)
      << result.findings[0].message;
}

// The next request is enough to show that one was never over: pairs do not grow with the square.
TEST(HostRaces, RequestsThatNobodyWaitsForRaceWithTheNext) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
  for (int i = 0; i < 10; ++i) {
    rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, -1, 1, {Updates(block, 0, 64)}, {.request = i});
  }
  const CheckResult result = Check(rank);
  ASSERT_EQ(Found(result), Ids{"GE-05"});
  EXPECT_TRUE(result.findings[0].message.ends_with("(and 8 more such pairs)"))
      << result.findings[0].message;
}

// Pinned memory that threads share is theirs to hand over.
TEST(HostRaces, TwoThreadsThatShareMemoryWithoutAHandOverAreFound) {
  for (const bool handed : {false, true}) {
    Rank rank(0, 1);
    const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
    rank.trace.ThreadPost(0);
    rank.trace.Thread(1).ThreadAwait(0);  // the allocation is known to thread 1
    rank.trace.HostAccess({Writes(block, 0, 64)});
    rank.trace.ThreadPost(1);
    rank.trace.Thread(0);
    if (handed) rank.trace.ThreadAwait(1);
    rank.trace.HostAccess({Reads(block, 0, 64)});
    EXPECT_EQ(Found(Check(rank)), handed ? Ids{} : Ids{"GE-06"});
  }
}

// Each reads three times; the writer hears of all threads but one.
TEST(HostRaces, OfManyThreadsThatReadAgainTheOneThatSaysNothingIsFound) {
  for (const int threads : {30, 100}) {  // by clocks that are rows, and trees
    for (const int silent : {1, 3, threads / 2, threads, 0}) {
      Rank rank(0, 1);
      const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_PINNED);
      rank.trace.ThreadPost(0);
      for (int t = 1; t <= threads; ++t) rank.trace.Thread(t).ThreadAwait(0);
      std::string last;
      for (int read = 0; read < 3; ++read) {
        for (int t = 1; t <= threads; ++t) {
          rank.trace.Thread(t).HostAccess({Reads(block, 0, 64)});
          if (t == silent) last = "(event " + std::to_string(rank.trace.size() - 1) + ")";
        }
      }
      for (int t = 1; t <= threads; ++t) {
        if (t != silent) rank.trace.Thread(t).ThreadPost(t);
      }
      rank.trace.Thread(0);
      for (int t = 1; t <= threads; ++t) {
        if (t != silent) rank.trace.ThreadAwait(t);
      }
      rank.trace.HostAccess({Writes(block, 0, 64)});
      const CheckResult result = Check(rank);
      ASSERT_EQ(Found(result), silent == 0 ? Ids{} : Ids{"GE-06"}) << silent;
      if (silent == 0) continue;
      EXPECT_EQ(result.findings[0].message.find("more such"), std::string::npos);
      EXPECT_TRUE(result.findings[0].expected.ends_with(last)) << result.findings[0].expected;
    }
  }
}

// What the two threads of a rank do; the trace shows them in this order, which hand-overs hold or
// nothing does.
CheckResult InTwoThreads(bool handed, const std::function<void(Rank&)>& first,
                         const std::function<void(Rank&)>& second) {
  Rank rank(0, 1);
  first(rank);
  if (handed) rank.trace.ThreadPost(0);
  rank.trace.Thread(1);
  if (handed) rank.trace.ThreadAwait(0);
  second(rank);
  return Check(rank);
}

// Which thread comes first decides what is ordered, and the trace shows one of the two.
TEST(HostRaces, ThreadsThatShareWhatOrdersWithoutAHandOverAreNotCheckable) {
  const auto kernel = [](Rank& rank) { rank.trace.Launch(rank.comm, SPF_K_FILL, {}); };
  const auto sync = [](Rank& rank) { rank.trace.DeviceSync(); };
  const auto reduce = [](Rank& rank) { rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, -1, 1); };
  const auto start = [](Rank& rank) {
    rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, -1, 1, {}, {.request = 0});
  };
  const auto gather = [](Rank& rank) {
    rank.trace.Collective(SPF_ALL_GATHER, rank.dp, rank.comm, 8);
  };
  const auto create = [](Rank& rank) { rank.trace.GroupCreate(rank.dp, "other", {0}); };
  const auto destroy = [](Rank& rank) { rank.trace.GroupDestroy(rank.dp); };
  const std::tuple<std::string, std::function<void(Rank&)>, std::function<void(Rank&)>> rows[] = {
      {"stream 1", kernel, kernel},        {"all streams", kernel, sync},
      {"stream 1", sync, kernel},          {"a communicator", reduce, reduce},
      {"a communicator", reduce, start},   {"a communicator", gather, destroy},
      {"a communicator", destroy, gather}, {"a communicator", create, create}};
  for (const auto& [what, first, second] : rows) {
    EXPECT_TRUE(InTwoThreads(true, first, second).not_checkable.empty()) << what;
    const CheckResult result = InTwoThreads(false, first, second);
    EXPECT_TRUE(result.judged.empty()) << what;
    EXPECT_EQ(result.not_checkable.size(), 4u) << what;
    for (const NotCheckable& one : result.not_checkable)
      EXPECT_NE(one.why.find("two host threads touch " + what), std::string::npos) << one.why;
  }
}

}  // namespace
}  // namespace shardproof
