#include "conformance/checks/objects/objects.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/objects/extent.h"
#include "conformance/checks/testing/found_in.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// A rank of two with one communicator, one stream, and two blocks of 64 bytes.
struct Rank {
  explicit Rank(int me) : trace(me, 2), rank(me) {
    dp = trace.Group("dp", {0, 1});
    stream = trace.Stream("s");
    one = trace.Alloc(stream, 64);
    two = trace.Alloc(stream, 64);
  }
  // 4 elements of 4 bytes of each of two ranks.
  void Gather(int64_t sent = 16, int64_t received = 32) {
    trace.Collective(SPF_ALL_GATHER, dp, stream, 4,
                     {Reads(one, 0, sent), Writes(two, 0, received)});
  }
  void Fill(int block, int64_t offset = 0, int64_t bytes = 64) {
    trace.Launch(stream, SPF_K_FILL, {Writes(block, offset, bytes)});
  }
  void OnHost(int64_t count, int request = -1) {
    trace.Collective(SPF_ALL_REDUCE, dp, -1, count, {Updates(one, 0, count * 4)},
                     {.request = request});
  }
  TraceBuilder trace;
  int rank, dp = 0, stream = 0, one = 0, two = 0;
};

using Program = std::function<void(Rank&)>;

CheckResult Check(const Program& program, TraceEnd end = TraceEnd::kComplete) {
  Run run;
  for (int me = 0; me < 2; ++me) {
    Rank rank(me);
    program(rank);
    run.traces.push_back(rank.trace.Done(end));
  }
  return CheckObjects(run);
}

// The requirement, on both ranks alike, with these words in every finding; or nothing at all.
void Expect(const CheckResult& result, const std::string& requirement,
            const std::string& words = {}) {
  std::string all;
  for (const Finding& finding : result.findings)
    all += finding.requirement + ": " + finding.message + " | " + finding.seen + "\n";
  EXPECT_EQ(FoundIn(result), requirement) << all;
  for (const Finding& finding : result.findings)
    EXPECT_NE((finding.message + " | " + finding.seen).find(words), std::string::npos) << all;
}
void ExpectPasses(const Program& program) {
  const CheckResult result = Check(program);
  Expect(result, "");
  EXPECT_TRUE(result.judged.contains("GE-18"));
  EXPECT_TRUE(result.judged.contains("GE-19"));
}

TEST(Blocks, AreUsedFromAllocToFree) {
  ExpectPasses([](Rank& r) {
    r.Fill(r.one);
    r.Gather();
    r.trace.Copy(r.stream, Reads(r.one, 0, 8), Writes(r.two, 56, 8));
    r.trace.Free(r.stream, r.one);
    r.Fill(r.two);
  });
}

TEST(Blocks, UsedAfterTheirFreeOnOneStreamAreFound) {
  Expect(Check([](Rank& r) { r.trace.Free(r.stream, r.one), r.Fill(r.one); }), "GE-18",
         "a block that was freed");
  Expect(Check([](Rank& r) { r.trace.Free(r.stream, r.one), r.Gather(); }), "GE-18",
         "a block that was freed");
}

// A pool frees what was released when it gives the bytes to another block, or never.
TEST(Blocks, AreReleasedOnceAndThenLeftAlone) {
  ExpectPasses([](Rank& r) {
    r.Fill(r.one);
    r.trace.Release(r.one);
    r.trace.Free(r.stream, r.one);
    r.trace.Release(r.two);
  });
  Expect(Check([](Rank& r) { r.trace.Release(r.one), r.Fill(r.one); }), "GE-18",
         "given back to its pool");
  Expect(Check([](Rank& r) { r.trace.Release(r.one), r.trace.Release(r.one); }), "GE-18",
         "released twice");
  Expect(Check([](Rank& r) { r.trace.Free(r.stream, r.one), r.trace.Release(r.one); }), "GE-18",
         "released after it was freed");
  Expect(Check([](Rank& r) {
           r.trace.Release(r.one);
           r.trace.Free(r.stream, r.one);
           r.trace.Free(r.stream, r.one);
         }),
         "GE-18", "freed twice");
  Expect(Check([](Rank& r) { r.trace.Release(7); }), "GE-18", "never allocated");
}

TEST(Blocks, AreCopiedInRuns) {
  ExpectPasses([](Rank& r) {
    r.trace.Copy(r.stream, {Reads(r.one, 0, 8), Reads(r.one, 32, 8), Writes(r.two, 0, 16)});
  });
  Expect(Check([](Rank& r) {
           r.trace.Copy(r.stream, {Reads(r.one, 0, 8), Writes(r.two, 0, 16), Reads(r.one, 8, 8)});
         }),
         "GE-18", "a copy does not say");
}

TEST(Blocks, TouchedOutsideAreFound) {
  Expect(Check([](Rank& r) { r.Fill(r.one, 60, 8); }), "GE-18", "bytes [60, 68) of block 0");
  ExpectPasses([](Rank& r) { r.Fill(r.one, 56, 8); });
}

TEST(Blocks, NeverAllocatedAreFound) {
  Expect(Check([](Rank& r) { r.Fill(7); }), "GE-18", "never allocated");
  Expect(Check([](Rank& r) { r.trace.Free(r.stream, 7); }), "GE-18", "never allocated");
}

TEST(Blocks, AllocatedOrFreedTwiceAreFound) {
  Expect(Check([](Rank& r) { r.trace.Free(r.stream, r.one), r.trace.Free(r.stream, r.one); }),
         "GE-18", "freed twice");
  Expect(Check([](Rank& r) {
           r.trace.Alloc(r.stream, 64);
           r.trace.Last().alloc = r.one;
         }),
         "GE-18", "under the number of another");
}

TEST(Blocks, OfTheDeviceThatTheHostTouchesAreFound) {
  Expect(Check([](Rank& r) { r.trace.HostAccess({Reads(r.one, 0, 4)}); }), "GE-18",
         "the host touches device memory");
  ExpectPasses([](Rank& r) {
    const int pinned = r.trace.Alloc(r.stream, 64, {}, SPF_PINNED);
    r.trace.HostAccess({Reads(pinned, 0, 4)});
  });
}

TEST(Blocks, TouchedByNoAccessAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.Launch(r.stream, SPF_K_FILL, {{r.one, 0, 0, 8}});
         }),
         "GE-18", "access 0");
}

TEST(Blocks, ShorterThanTheOperationNeedsAreFound) {
  Expect(Check([](Rank& r) { r.Gather(12, 32); }), "GE-18", "shorter than what it reads");
  Expect(Check([](Rank& r) { r.Gather(16, 28); }), "GE-18", "shorter than what it writes");
  Expect(Check([](Rank& r) { r.trace.Collective(SPF_ALL_REDUCE, r.dp, r.stream, 4); }), "GE-18",
         "0 bytes");
  Expect(Check([](Rank& r) { r.trace.Init(r.stream, 0, 0, 4, Writes(r.one, 0, 12)); }), "GE-18",
         "shorter than what it writes");
  Expect(Check([](Rank& r) {
           r.trace.Publish(r.stream, SPF_RESULT_LOSS, 0, 0, 1, SPF_F32, 1, Reads(r.one, 0, 2));
         }),
         "GE-18", "shorter than what it reads");
}

TEST(Blocks, CopiedToAnotherLengthAreFound) {
  Expect(Check([](Rank& r) { r.trace.Copy(r.stream, Reads(r.one, 0, 8), Writes(r.two, 0, 4)); }),
         "GE-18", "a copy does not say");
}

TEST(Blocks, AreNotJudgedWhereMemoryIsNotProvided) {
  const CheckResult result = Check([](Rank& r) {
    r.trace.provides().memory = false;
    r.Fill(7);
  });
  Expect(result, "");
  EXPECT_FALSE(result.judged.contains("GE-18"));
  EXPECT_TRUE(NotCheckableIn(result).contains("GE-18"));
}

TEST(Handles, AreUsedFromCreationToDestruction) {
  ExpectPasses([](Rank& r) {
    const int sub = r.trace.GroupCreate(r.dp, "sub", {0, 1}), event = r.trace.EventCreate(),
              side = r.trace.Stream("side");
    r.trace.Collective(SPF_ALL_REDUCE, sub, side, 4, {Updates(r.one, 0, 16)});
    r.trace.Record(event, side), r.trace.Wait(event, r.stream);
    r.trace.EventDestroy(event), r.trace.GroupDestroy(sub), r.trace.StreamDestroy(side);
  });
}

TEST(Handles, StreamsThatAreGoneAreFound) {
  const auto gone = [](const Program& use) {
    return Check([&](Rank& r) { r.trace.StreamDestroy(r.stream), use(r); });
  };
  Expect(gone([](Rank& r) { r.Fill(r.one); }), "GE-19", "stream s is used after it was destroyed");
  Expect(gone([](Rank& r) { r.Gather(); }), "GE-19", "stream s is used after");
  Expect(gone([](Rank& r) { r.trace.StreamSync(r.stream); }), "GE-19", "stream s is used after");
  Expect(gone([](Rank& r) { r.trace.StreamDestroy(r.stream); }), "GE-19", "stream s is used after");
  Expect(gone([](Rank& r) { r.trace.Free(r.stream, r.one); }), "GE-19", "stream s is used after");
}

TEST(Handles, EventsThatAreGoneAreFound) {
  const auto gone = [](const std::function<void(Rank&, int)>& use) {
    return Check([&](Rank& r) {
      const int event = r.trace.EventCreate();
      r.trace.Record(event, r.stream);
      r.trace.EventDestroy(event);
      use(r, event);
    });
  };
  Expect(gone([](Rank& r, int event) { r.trace.Wait(event, r.stream); }), "GE-19", "used after");
  Expect(gone([](Rank& r, int event) { r.trace.EventSync(event); }), "GE-19", "used after");
  Expect(gone([](Rank& r, int event) { r.trace.Record(event, r.stream); }), "GE-19", "used after");
  Expect(gone([](Rank&, int) {}), "");
}

TEST(Handles, GroupsThatAreGoneAreFound) {
  const auto gone = [](const std::function<void(Rank&, int)>& use) {
    return Check([&](Rank& r) {
      const int sub = r.trace.GroupCreate(r.dp, "sub", {0, 1});
      r.trace.GroupDestroy(sub);
      use(r, sub);
    });
  };
  const auto reduce = [](Rank& r, int group) {
    r.trace.Collective(SPF_ALL_REDUCE, group, r.stream, 4, {Updates(r.one, 0, 16)});
  };
  Expect(gone(reduce), "GE-19", "group \"sub\" (1) is used after it was destroyed");
  Expect(gone([](Rank& r, int sub) { r.trace.GroupDestroy(sub); }), "GE-19", "used after");
  Expect(gone([](Rank& r, int sub) { r.trace.GroupCreate(sub, "leaf", {}); }), "GE-19",
         "used after");
  Expect(gone([&](Rank& r, int) { reduce(r, r.dp); }), "");
  // A second number of the same communicator does not bring it back.
  Expect(Check([&](Rank& r) {
           const int again = r.trace.Group("dp again", {0, 1}, "dp.0.1");
           r.trace.GroupDestroy(r.dp);
           reduce(r, again);
         }),
         "GE-19", "group \"dp again\" (1) is used after");
}

TEST(Handles, UsedBeforeTheirCreationAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.Record(0, r.stream);
           r.trace.EventCreate();
         }),
         "GE-19", "event object 0 is used before it is created");
  // Who writes no creations has events from the start.
  ExpectPasses([](Rank& r) { r.trace.Record(0, r.stream), r.trace.Wait(0, r.stream); });
}

TEST(Handles, CreatedTwiceAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.EventCreate(), r.trace.EventCreate();
           r.trace.Last().event = 0;
         }),
         "GE-19", "event object 0 is created twice");
}

TEST(Requests, AreWaitedForAndThenUsedAgain) {
  ExpectPasses([](Rank& r) {
    for (int i = 0; i < 2; ++i) r.OnHost(4, 3), r.trace.RequestWait(3);
    r.OnHost(4);
  });
}

TEST(Requests, NeverFinishedAreFoundInCompleteRuns) {
  const Program open = [](Rank& r) { r.OnHost(4, 3); };
  Expect(Check(open), "GE-19", "request 3 is never waited for");
  Expect(Check(open, TraceEnd::kAborted), "");
}

TEST(Requests, StartedAgainWhileUnderWayAreFound) {
  Expect(Check([](Rank& r) { r.OnHost(4, 3), r.OnHost(4, 3), r.trace.RequestWait(3); }), "GE-19",
         "request 3 is started again");
}

TEST(Communicators, OfTheHostAndOfStreamsAreFound) {
  const CheckResult result = Check([](Rank& r) { r.rank == 0 ? r.Gather() : r.OnHost(4); });
  Expect(result, "GE-19", "used by the host and from streams");
  EXPECT_EQ(result.findings.size(), 1u);
}

TEST(Communicators, OfTwoCreationsUnderOneNameAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.GroupCreate(r.dp, "sub", {0, 1});
           r.trace.GroupCreate(r.dp, "sub", {0, 1});
         }),
         "GE-19", "two communicators have one \"comm\"");
  Expect(Check([](Rank& r) {
           r.trace.Group("sub", {0, 1});
           r.trace.GroupCreate(r.dp, "sub", {0, 1});
         }),
         "GE-19", "that of another group of this rank too");
}

TEST(Communicators, ThatMembersNameDifferentlyAreFound) {
  Expect(Check([](Rank& r) {
           r.trace.GroupCreate(r.dp, r.rank == 0 ? "left" : "right", {0, 1});
         }),
         "GE-19", "different names");
}

TEST(Communicators, WhoseCreationTheEndOfTheRunCutAreNone) {
  const auto create = [](Rank& r) {
    return r.trace.GroupCreate(r.dp, r.rank == 0 ? "sub" : "unfinished", {0, 1});
  };
  Expect(Check(create, TraceEnd::kAborted), "");
  Expect(Check([&](Rank& r) { r.trace.GroupDestroy(create(r)); }, TraceEnd::kAborted), "GE-19",
         "different names");
}

// What each kind of collective must read and write, of 4 elements of 4 bytes, as rank 1 of 3.
TEST(Extents, AreThoseOfTheOperation) {
  struct Row {
    int op;
    int64_t read, write;
  };
  const auto extent = [](int op, int peer) {
    TraceBuilder t(1, 3);
    const int group = t.Group("three", {0, 1, 2}), stream = t.Stream("s");
    t.Collective(op, group, stream, 4, {},
                 {.peer = peer, .send_counts = {1, 2, 3}, .recv_counts = {4, 5, 6}});
    const Trace trace = t.Done();
    return *ExtentOf(trace, trace.events.back());
  };
  constexpr int kReduce = 101, kBarrier = 102, kGather = 103, kScatter = 104;
  for (const Row& row : std::vector<Row>{{SPF_ALL_GATHER, 16, 48},
                                         {SPF_ALL_GATHER_V, 20, 60},
                                         {SPF_REDUCE_SCATTER, 48, 16},
                                         {SPF_ALL_REDUCE, 16, 16},
                                         {SPF_BROADCAST, 0, 16},
                                         {SPF_ALL_TO_ALL_V, 24, 60},
                                         {SPF_SEND, 16, 0},
                                         {SPF_RECV, 0, 16},
                                         {kReduce, 16, 0},
                                         {kBarrier, 0, 0},
                                         {kGather, 16, 0},
                                         {kScatter, 0, 16}}) {
    EXPECT_EQ(extent(row.op, 0).read, row.read) << row.op;
    EXPECT_EQ(extent(row.op, 0).write, row.write) << row.op;
  }
  for (const Row& row : std::vector<Row>{
           {SPF_BROADCAST, 16, 0}, {kReduce, 16, 16}, {kGather, 16, 48}, {kScatter, 48, 16}}) {
    EXPECT_EQ(extent(row.op, 1).read, row.read) << row.op;
    EXPECT_EQ(extent(row.op, 1).write, row.write) << row.op;
  }
}

}  // namespace
}  // namespace shardproof
