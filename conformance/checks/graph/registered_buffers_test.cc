#include "conformance/checks/graph/registered_buffers.h"

#include "conformance/checks/graph/registering_rank.h"

namespace shardproof {
namespace {

using Rank = RegisteringRank;

TEST(Registered, BlocksThatAllRegisterAndUseAlikePass) {
  const CheckResult result = Check([](Rank& r) {
    r.RegisterBoth();
    r.AllGather(Reads(r.small, 16, 16), Writes(r.large, 64, 48));
    r.ReduceScatter(Reads(r.large, 0, 48), Writes(r.small, 0, 16));
    r.AllReduce(r.plain);
    r.trace.GroupDeregister(r.dp, r.large), r.trace.GroupDeregister(r.dp, r.small);
  });
  Expect(result, "");
  for (const char* id : {"GE-15", "GE-16", "GE-17"}) EXPECT_TRUE(result.judged.contains(id)) << id;
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("used by 2 of 3 operations"), std::string::npos)
      << result.notes[0];
}

TEST(Registered, WithoutAUseThereIsNoEvidence) {
  const CheckResult result = Check([](Rank& r) { r.RegisterBoth(); });
  Expect(result, "");
  EXPECT_TRUE(result.judged.contains("GE-15"));
  EXPECT_FALSE(result.judged.contains("GE-16"));
}

TEST(Registered, OneMembersUnregisteredBufferIsFound) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.small, 0, 16), Writes(r.rank == 1 ? r.plain : r.large, 0, 48));
         }),
         "GE-16", 1,
         {"all_gather on dp_cp (#0): recv of rank 1", "not registered with dp_cp,",
          "recv of ranks 0 and 2 in a block registered with dp_cp"});
}

TEST(Registered, OneMembersRegisteredBufferIsFound) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.rank == 2 ? r.small : r.plain, 0, 16), Writes(r.large, 0, 48));
         }),
         "GE-16", 2, {"send of rank 2", "send of ranks 0 and 1 in a block not registered"});
}

TEST(Registered, SendAndRecvAreJudgedApart) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.plain, 16 * r.rank, 16), Writes(r.large, 0, 48));
           r.ReduceScatter(Reads(r.large, 0, 48), Writes(r.plain, 16 * r.rank, 16));
         }),
         "");
}

TEST(Registered, OneMemberDeregisteredBeforeTheUse) {
  Expect(Check([](Rank& r) {
           r.trace.GroupRegister(r.dp, r.large);
           r.AllReduce(r.large);
           if (r.rank == 0) r.trace.GroupDeregister(r.dp, r.large);
           r.AllReduce(r.large);
           if (r.rank != 0) r.trace.GroupDeregister(r.dp, r.large);
         }),
         "GE-16", 0, {"(#1)", "not registered with dp_cp (deregistered at event 6)"});
}

TEST(Registered, OneMemberRegistersOnlyAfterTheUse) {
  Expect(Check([](Rank& r) {
           if (r.rank != 1) r.trace.GroupRegister(r.dp, r.large);
           r.AllReduce(r.large);
           if (r.rank == 1) r.trace.GroupRegister(r.dp, r.large);
         }),
         "GE-16", 1, {"(registered only at event 5)"});
}

TEST(Registered, ABlockThatIsRegisteredAgainCounts) {
  Expect(Check([](Rank& r) {
           for (int step = 0; step < 3; ++step) {
             r.trace.GroupRegister(r.dp, r.large);
             r.AllReduce(r.large);
             r.trace.GroupDeregister(r.dp, r.large);
             r.AllReduce(r.large, 32 * r.rank);  // none is registered
           }
         }),
         "");
}

TEST(Registered, ABlockOfTheTwinIsFound) {
  // The same sizes in the same order, but rank 2 has mixed up which block is for which group.
  Expect(Check([](Rank& r) {
           const int other = r.trace.Alloc(r.stream, 256, {}, SPF_REGISTRABLE);
           r.trace.GroupRegister(r.dp, r.rank == 2 ? other : r.large);
           r.trace.GroupRegister(r.twin, r.rank == 2 ? r.large : other);
           r.AllReduce(r.large);
         }),
         "GE-16", 2, {"not registered with dp_cp (but with dp_cp_ag)"});
}

TEST(Registered, RegistrationWithAnotherGroupIsNone) {
  Expect(Check([](Rank& r) {
           r.trace.GroupRegister(r.twin, r.large);
           r.AllReduce(r.large, 32 * r.rank);
         }),
         "");
}

TEST(Registered, ABlockMayBeRegisteredWithTwoGroups) {
  Expect(Check([](Rank& r) {
           r.trace.GroupRegister(r.twin, r.large), r.trace.GroupRegister(r.dp, r.large);
           r.trace.GroupDeregister(r.twin, r.large);
           r.AllReduce(r.large);
         }),
         "");
}

TEST(Registered, ADifferentOffsetIsFound) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.small, r.rank == 1 ? 16 : 0, 16), Writes(r.large, 0, 48));
         }),
         "GE-16", 1,
         {"send of rank 1 (16 bytes at 16 of block 0) lies at offset 16",
          "send of ranks 0 and 2 at offset 0"});
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.small, 0, 16), Writes(r.large, r.rank == 2 ? 64 : 0, 48));
         }),
         "GE-16", 2, {"recv of rank 2"});
}

TEST(Registered, InPlaceSlicesMayLieAtDifferentOffsets) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.large, 64 + 16 * r.rank, 16), Writes(r.large, 64, 48));
           r.ReduceScatter(Reads(r.large, 0, 48), Writes(r.large, 16 * r.rank, 16));
         }),
         "");
}

TEST(Registered, TheLargerBufferOfAnOperationInPlaceMayNot) {
  for (const bool gather : {true, false}) {
    Expect(Check([gather](Rank& r) {
             r.RegisterBoth();
             const int64_t at = r.rank == 1 ? 64 : 0, slice = at + 16 * r.rank;
             if (gather) r.AllGather(Reads(r.large, slice, 16), Writes(r.large, at, 48));
             if (!gather) r.ReduceScatter(Reads(r.large, at, 48), Writes(r.large, slice, 16));
           }),
           "GE-16", 1, {gather ? "recv of rank 1" : "send of rank 1"});
  }
}

TEST(Registered, ChunksOfOneBlockAreNotInPlace) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.AllGather(Reads(r.large, r.rank == 0 ? 128 : 192, 16), Writes(r.large, 0, 48));
         }),
         "GE-16", 0, {"send of rank 0"});
}

TEST(Registered, AnExchangeIsJudgedForBeingRegisteredOnly) {
  for (const bool all : {true, false}) {
    Expect(Check([all](Rank& r) {
             r.RegisterBoth();
             r.Exchange({Reads(r.small, 16 * r.rank, 16),
                         Writes(all || r.rank != 0 ? r.large : r.plain, 16 * r.rank, 16)});
           }),
           all ? "" : "GE-16", 0, {"all_to_all_v", "recv of rank 0"});
  }
}

TEST(Registered, BuffersOfNoBytesAreNotJudged) {
  Expect(Check([](Rank& r) {
           r.RegisterBoth();
           r.Exchange(r.rank == 1
                          ? std::vector<Range>{{-1, kRead, 0, 0}, Writes(r.plain, 0, 0)}
                          : std::vector<Range>{Reads(r.small, 0, 16), Writes(r.large, 0, 16)});
         }),
         "");
}

TEST(Registered, OnlyTheRootSendsABroadcast) {
  for (const bool alike : {true, false}) {
    Expect(Check([alike](Rank& r) {
             r.RegisterBoth();
             CollectiveOptions options;
             options.peer = 1;
             const Range recv = Writes(r.large, alike || r.rank != 2 ? 0 : 64, 32);
             // What the others name is ignored.
             const Range send = r.rank == 1 ? Reads(r.small, 8, 32) : Reads(r.plain, 0, 32);
             r.trace.Collective(SPF_BROADCAST, r.dp, r.stream, 8, {send, recv}, options);
           }),
           alike ? "" : "GE-16", 2, {"recv of rank 2"});
  }
}

TEST(Registered, AGatherOfUnequalShardsIsJudgedAtItsReceiver) {
  for (const bool alike : {true, false}) {
    Expect(Check([alike](Rank& r) {
             r.RegisterBoth();
             CollectiveOptions options;
             options.recv_counts = {2, 4, 6};
             r.trace.Collective(SPF_ALL_GATHER_V, r.dp, r.stream, 0,
                                {Reads(r.small, 8 * r.rank, 8 * (r.rank + 1)),
                                 Writes(r.large, alike || r.rank != 0 ? 0 : 64, 48)},
                                options);
           }),
           alike ? "" : "GE-16", 0, {"all_gather_v", "recv of rank 0"});
  }
}

TEST(Registered, AMessageHasTwoEnds) {
  for (const bool alike : {true, false}) {
    Expect(Check([alike](Rank& r) {
             r.RegisterBoth();
             if (r.rank == 0) r.Message(SPF_SEND, 2, Reads(r.small, 16, 16));
             if (r.rank == 2) r.Message(SPF_RECV, 0, Writes(alike ? r.large : r.plain, 0, 16));
           }),
           alike ? "" : "GE-16", 2, {"recv of rank 2", "send of rank 0 in a block registered"});
  }
}

TEST(Registered, WithoutMemoryInATraceUseIsNotCheckable) {
  std::vector<Trace> traces = TracesOf([](Rank& r) {
    r.RegisterBoth();
    r.AllReduce(r.rank == 0 ? r.plain : r.large);
  });
  traces[1].provides.memory = false;
  const CheckResult result = CheckMatching(traces);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.judged.contains("GE-15"));
  ASSERT_EQ(result.not_checkable.size(), 2u);
  for (const NotCheckable& one : result.not_checkable) {
    EXPECT_FALSE(result.judged.contains(one.requirement));
    EXPECT_NE(one.why.find("rank 1 does not provide memory"), std::string::npos) << one.why;
  }
}

TEST(Registered, UseIsNotCheckableWhereOperationsDoNotMatch) {
  const CheckResult result = Check([](Rank& r) {
    r.RegisterBoth();
    if (r.rank != 1) r.AllReduce(r.large, 32 * r.rank);
  });
  Expect(result, "GE-01", 0);
  ASSERT_EQ(result.not_checkable.size(), 1u);
  EXPECT_EQ(result.not_checkable[0].requirement, "GE-16");
}

TEST(Registered, ARunThatEndedEarlyIsJudgedAsFarAsItWent) {
  std::vector<Trace> traces = TracesOf([](Rank& r) {
    r.RegisterBoth();
    r.AllReduce(r.rank == 1 ? r.plain : r.large);
    if (r.rank != 0) r.AllReduce(r.plain);
  });
  traces[0].end = TraceEnd::kDied;
  const CheckResult result = CheckMatching(traces);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_EQ(result.findings[0].requirement, "GE-16");
  EXPECT_EQ(result.findings[1].requirement, "GE-01");
}

}  // namespace
}  // namespace shardproof
