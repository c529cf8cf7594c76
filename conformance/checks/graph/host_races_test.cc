// Races with what the host does: in several threads, in requests, and before collectives that it
// waits in.
#include <gtest/gtest.h>

#include <string>
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

}  // namespace
}  // namespace shardproof
