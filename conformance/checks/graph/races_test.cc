#include "conformance/checks/graph/races.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/gathering_rank.h"

namespace shardproof {
namespace {

using graph::Check, graph::Found, graph::Ids;
using Rank = graph::GatheringRank;

TEST(Races, AGatherAndItsReaderOrderedByAnEventPass) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Gather(block);
  rank.Order(rank.comm, rank.compute);
  rank.Use(block);
  rank.Order(rank.compute, rank.comm);
  rank.trace.Free(rank.comm, block);
  const CheckResult result = Check(rank);
  EXPECT_EQ(Found(result), Ids{});
  EXPECT_TRUE(result.judged.contains("GE-05"));
}

TEST(Races, AReaderThatDoesNotWaitForTheGatherIsFound) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64, {SPF_FOR_PARAM_FULL, 3, -1});
  rank.Order(rank.comm, rank.compute);
  rank.Gather(block);
  rank.Use(block);
  const CheckResult result = Check(rank);
  ASSERT_EQ(Found(result), Ids{"GE-05"});
  const std::string& message = result.findings[0].message;
  EXPECT_NE(message.find("bytes [16, 32) of block 0 (full parameters, module 3"), std::string::npos)
      << message;
  EXPECT_NE(message.find("let stream compute wait"), std::string::npos) << message;
}

TEST(Races, ReuseThatDoesNotWaitForTheReaderIsFound) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Gather(block);
  rank.Order(rank.comm, rank.compute);
  rank.Use(block);
  rank.Gather(block);
  EXPECT_EQ(Found(Check(rank)), Ids{"GE-05"});
}

// A release is no write: a race is with who takes the bytes.
TEST(Races, AReleaseIsNoneAndTheFreeAfterItIs) {
  for (const bool taken : {false, true}) {
    Rank rank(0, 1);
    const int block = rank.trace.Alloc(rank.comm, 64);
    rank.Gather(block);
    rank.Order(rank.comm, rank.compute);
    rank.Use(block);
    rank.trace.Release(block);
    if (taken) rank.trace.Free(rank.comm, block);
    EXPECT_EQ(Found(Check(rank)), taken ? Ids{"GE-11"} : Ids{});
  }
}

TEST(Races, AFindingTellsTheLinesOfTheProgram) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Gather(block);
  rank.trace.Place("model.py:12");
  rank.Use(block);
  rank.trace.Place("train.py:37");
  const CheckResult result = Check(rank);
  ASSERT_EQ(Found(result), Ids{"GE-05"});
  const Finding& finding = result.findings[0];
  EXPECT_NE(finding.operation.find("at train.py:37"), std::string::npos) << finding.operation;
  EXPECT_NE(finding.message.find("at model.py:12"), std::string::npos) << finding.message;
}

TEST(Races, FreeOnAnotherStreamThanTheLastReaderIsFound) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Gather(block);
  rank.Order(rank.comm, rank.compute);
  rank.Use(block);
  rank.trace.Free(rank.comm, block);
  EXPECT_EQ(Found(Check(rank)), Ids{"GE-11"});
}

TEST(Races, UseOnAnotherStreamThanTheAllocationIsFound) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.compute, 64);
  rank.Gather(block);
  EXPECT_EQ(Found(Check(rank)), Ids{"GE-11"});
}

TEST(Races, DisjointRangesDoNotRace) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Order(rank.comm, rank.compute);
  rank.trace.Launch(rank.comm, SPF_K_FILL, {Writes(block, 0, 32)});
  rank.trace.Launch(rank.compute, SPF_K_FILL, {Writes(block, 32, 32)});
  EXPECT_EQ(Found(Check(rank)), Ids{});
}

TEST(Races, TwoReadersDoNotRace) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Order(rank.comm, rank.compute);
  rank.Use(block);
  rank.trace.Launch(rank.comm, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
  EXPECT_EQ(Found(Check(rank)), Ids{});
}

TEST(Races, TheEndOfARegistrationIsAfterTheGroupsWorkOnAllStreams) {
  for (const int end : {0, 1, 2}) {  // nothing, group_deregister, group_destroy
    Rank rank(0, 1);
    const int block = rank.trace.Alloc(rank.comm, 64, {}, SPF_REGISTRABLE);
    const int other = rank.trace.Alloc(rank.compute, 64);
    rank.Order(rank.comm, rank.compute);
    if (end == 1) rank.trace.GroupRegister(rank.dp, block);
    rank.Gather(block);
    rank.trace.Collective(SPF_ALL_GATHER, rank.dp, rank.compute, 8, {Writes(other, 0, 64)});
    if (end == 1) rank.trace.GroupDeregister(rank.dp, block);
    if (end == 2) rank.trace.GroupDestroy(rank.dp);
    rank.trace.Free(rank.compute, block);
    EXPECT_EQ(Found(Check(rank)), end == 0 ? Ids{"GE-11"} : Ids{});
  }
}

TEST(Races, TheHostMustWaitForTheCopy) {
  for (const bool sync : {false, true}) {
    Rank rank(0, 1);
    const int device = rank.trace.Alloc(rank.compute, 64);
    const int pinned = rank.trace.Alloc(rank.compute, 64, {}, SPF_PINNED);
    rank.trace.Copy(rank.compute, Reads(device, 0, 64), Writes(pinned, 0, 64));
    if (sync) rank.trace.StreamSync(rank.compute);
    rank.trace.HostAccess({Reads(pinned, 0, 64)});
    EXPECT_EQ(Found(Check(rank)), sync ? Ids{} : Ids{"GE-06"});
  }
}

TEST(Races, WhatTheHostWroteBeforeIssuingTheCopyIsOrdered) {
  for (const bool freed : {false, true}) {
    Rank rank(0, 1);
    const int device = rank.trace.Alloc(rank.compute, 64);
    const int pinned = rank.trace.Alloc(rank.compute, 64, {}, SPF_PINNED);
    rank.trace.HostAccess({Writes(pinned, 0, 64)});
    rank.trace.Copy(rank.compute, Reads(pinned, 0, 64), Writes(device, 0, 64));
    if (freed) rank.trace.Free(rank.compute, pinned);  // in host order: the copy may still run
    EXPECT_EQ(Found(Check(rank)), freed ? Ids{"GE-11"} : Ids{});
  }
}

TEST(Races, AWaitForAnEventThatWasNeverRecordedIsFound) {
  Rank rank(0, 1);
  const int event = rank.trace.EventCreate();
  rank.trace.Wait(event, rank.compute);
  EXPECT_EQ(Found(Check(rank)), Ids{"GE-07"});
}

TEST(Races, OrderThroughAPeerCounts) {
  // Rank 1 writes on compute, gathers on compute; its peer then starts a second gather on its own
  // stream order.
  Rank a(0, 2), b(1, 2);
  const int twin_a = a.trace.Group("twin", {0, 1}), twin_b = b.trace.Group("twin", {0, 1});
  a.trace.Collective(SPF_ALL_GATHER, a.dp, a.comm, 8);
  a.trace.Collective(SPF_ALL_GATHER, twin_a, a.comm, 8);
  const int block = b.trace.Alloc(b.compute, 64);
  b.trace.Launch(b.compute, SPF_K_FILL, {Writes(block, 0, 64)});
  b.trace.Collective(SPF_ALL_GATHER, b.dp, b.compute, 8);
  b.trace.Collective(SPF_ALL_GATHER, twin_b, b.comm, 8);
  b.trace.Launch(b.comm, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
  EXPECT_EQ(Found(CheckRaces(std::vector<Trace>{a.trace.Done(), b.trace.Done()})), Ids{});
}

TEST(Races, AGatherOfNothingFromThePeerOrdersNothing) {
  for (const int64_t sent : {0, 4}) {
    Rank a(0, 2), b(1, 2);
    const int twin_a = a.trace.Group("twin", {0, 1}), twin_b = b.trace.Group("twin", {0, 1});
    CollectiveOptions first;
    first.recv_counts = {4, sent};  // what the peer waits for: rank 1's part
    a.trace.Collective(SPF_ALL_GATHER_V, a.dp, a.comm, 0, {}, first);
    a.trace.Collective(SPF_ALL_GATHER, twin_a, a.comm, 8);
    const int block = b.trace.Alloc(b.compute, 64);
    b.trace.Launch(b.compute, SPF_K_FILL, {Writes(block, 0, 64)});
    b.trace.Collective(SPF_ALL_GATHER_V, b.dp, b.compute, 0, {}, first);
    b.trace.Collective(SPF_ALL_GATHER, twin_b, b.comm, 8);
    b.trace.Launch(b.comm, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
    const Ids found = Found(CheckRaces(std::vector<Trace>{a.trace.Done(), b.trace.Done()}));
    EXPECT_EQ(found.empty(), sent > 0);
  }
}

TEST(Races, AnAllReduceOfNothingOrdersNothing) {
  for (const int64_t count : {0, 4}) {
    Rank a(0, 2), b(1, 2);
    const int twin_a = a.trace.Group("twin", {0, 1}), twin_b = b.trace.Group("twin", {0, 1});
    a.trace.Collective(SPF_ALL_REDUCE, a.dp, a.comm, count);
    a.trace.Collective(SPF_ALL_GATHER, twin_a, a.comm, 8);
    const int block = b.trace.Alloc(b.compute, 64);
    b.trace.Launch(b.compute, SPF_K_FILL, {Writes(block, 0, 64)});
    b.trace.Collective(SPF_ALL_REDUCE, b.dp, b.compute, count);
    b.trace.Collective(SPF_ALL_GATHER, twin_b, b.comm, 8);
    b.trace.Launch(b.comm, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
    EXPECT_EQ(Found(CheckRaces(std::vector<Trace>{a.trace.Done(), b.trace.Done()})).empty(),
              count > 0);
  }
}

TEST(Races, ARaceWithAnEarlierWriteIsReportedBesideTheOneWithTheLast) {
  Rank rank(0, 1);
  const int third = rank.trace.Stream("third");
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Order(rank.comm, rank.compute);
  rank.trace.Launch(rank.comm, SPF_K_FILL, {Writes(block, 0, 64)});
  rank.trace.Launch(rank.compute, SPF_K_FILL, {Writes(block, 0, 64)});
  rank.Order(rank.compute, third);
  rank.trace.Launch(third, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
  EXPECT_EQ(Found(Check(rank)), (Ids{"GE-05", "GE-05"}));
}

TEST(Races, TheOrderOfACommunicatorAcrossStreamsIsNoOrder) {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64);
  rank.Order(rank.comm, rank.compute);
  rank.Gather(block);
  rank.trace.Collective(SPF_ALL_GATHER, rank.dp, rank.compute, 8, {Reads(block, 0, 64)});
  EXPECT_EQ(Found(Check(rank)), Ids{"GE-05"});
}

TEST(Races, TheSameMistakeInEveryLayerIsOneFinding) {
  Rank rank(0, 1);
  for (int layer = 0; layer < 5; ++layer) {
    const int block = rank.trace.Alloc(rank.comm, 64);
    rank.Order(rank.comm, rank.compute);
    rank.Gather(block);
    rank.Use(block);
  }
  const CheckResult result = Check(rank);
  ASSERT_EQ(Found(result), Ids{"GE-05"});
  EXPECT_NE(result.findings[0].message.find("4 more"), std::string::npos);
}

TEST(Races, TracesWithoutMemoryAreNotCheckable) {
  Rank rank(0, 1);
  rank.trace.provides().memory = false;
  EXPECT_TRUE(Check(rank).judged.empty());
}

// A random program of one rank or two: the linear search finds a race in a block exactly if trying
// all pairs does.
TEST(Races, TheLinearSearchMissesNoBlockAndInventsNone) {
  std::mt19937 random(11);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int racy = 0, clean = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<Rank> ranks;
    ranks.emplace_back(0, 2), ranks.emplace_back(1, 2);
    std::vector<int> extra;
    for (Rank& rank : ranks) extra.push_back(rank.trace.Stream("third"));
    const int steps = 3 + pick(12);
    for (int step = 0; step < steps; ++step) {
      const bool joint = pick(5) == 0;
      for (Rank& rank : ranks) {
        const int streams[] = {rank.compute, rank.comm, extra[0]};
        const int stream = streams[pick(3)];
        const int block = pick(2);
        const int64_t offset = 16 * pick(4), length = 16 * (1 + pick(4));
        const Range range{block, static_cast<uint8_t>(1 + pick(3)), offset, length};
        const int action = joint ? 9 : pick(6);
        if (action == 9) rank.trace.Collective(SPF_ALL_REDUCE, rank.dp, stream, 8, {range});
        if (action < 3) rank.trace.Launch(stream, SPF_K_AXPBY, {range});
        if (action == 3 || action == 4) rank.Order(stream, streams[pick(3)]);
        if (action == 5) rank.trace.StreamSync(stream), rank.trace.HostAccess({range});
      }
    }
    const std::vector<Trace> traces = {ranks[0].trace.Done(), ranks[1].trace.Done()};
    const graph::Program program = graph::Lower(traces);
    if (!graph::Safe(program, graph::Profile::kE0)) continue;
    graph::MustOrder order(program);
    std::set<std::pair<int32_t, int32_t>> all, fast;
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    for (const graph::Race& race : graph::FindAllRaces(program, order)) {
      all.insert({program.entries[race.first].rank, race.alloc});
      pairs.insert({race.first, race.second});
    }
    for (const graph::Race& race : graph::FindRaces(program, order, {}).races) {
      fast.insert({program.entries[race.first].rank, race.alloc});
      EXPECT_TRUE(pairs.contains({race.first, race.second}));
    }
    ASSERT_EQ(all, fast) << "round " << round;
    ++(all.empty() ? clean : racy);
  }
  EXPECT_GT(racy, 500);
  EXPECT_GT(clean, 10);
}

// 40 streams that write one block, 780 pairs of GE-05; and one pair of GE-06.
Rank ManyStreamsAndTheHost() {
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.comm, 64), other = rank.trace.Alloc(rank.comm, 64);
  rank.trace.DeviceSync();
  for (int i = 0; i < 40; ++i)
    rank.trace.Launch(rank.trace.Stream("s" + std::to_string(i)), SPF_K_AXPBY,
                      {Writes(block, 0, 64)});
  rank.Gather(other);
  rank.trace.HostAccess({Reads(other, 0, 64)});
  return rank;
}

TEST(Races, BeyondALimitPairsAreOnlyCounted) {
  const std::vector<Trace> traces = {ManyStreamsAndTheHost().trace.Done()};
  const graph::Program program = graph::Lower(traces);
  graph::MustOrder order(program);
  const graph::RacesFound all = graph::FindRaces(program, order, {});
  EXPECT_EQ(all.races.size(), 780 + 1);
  EXPECT_EQ(all.left_out, (std::array<int64_t, 3>{}));
  const graph::RacesFound few = graph::FindRaces(program, order, {}, {.told = 10});
  EXPECT_EQ(few.races.size(), 10 + 1);
  EXPECT_GT(few.left_out[static_cast<size_t>(graph::RaceKind::kDevice)], 0);
  EXPECT_EQ(few.left_out[static_cast<size_t>(graph::RaceKind::kHost)], 0);

  CheckResult result;
  graph::ReportRaces(program, few, result);
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.find("(GE-05), which was only counted") != std::string::npos;
  }));
}

// Each pair of streams is a kind of its own.
TEST(Races, FindingsAreLimitedForEachRequirement) {
  Rank rank = ManyStreamsAndTheHost();
  const Ids found = Found(Check(rank));
  EXPECT_EQ(std::count(found.begin(), found.end(), "GE-05"), 20);
  EXPECT_EQ(std::count(found.begin(), found.end(), "GE-06"), 1);
}

// Rows of times would hold 10,000,000,000 of them.
TEST(Races, AnEventThatManyStreamsWaitForCostsWhatItIs) {
  for (const bool waits : {true, false}) {
    Rank rank(0, 1);
    const int block = rank.trace.Alloc(rank.comm, 64), event = rank.trace.EventCreate();
    rank.Gather(block);
    rank.trace.Record(event, rank.comm);
    int last = 0;
    for (int i = 0; i < 100'000; ++i) {
      last = rank.trace.Stream("s");
      rank.trace.Wait(event, last);
    }
    rank.trace.Launch(waits ? last : rank.compute, SPF_K_AXPBY, {Reads(block, 0, 64)});
    EXPECT_EQ(Found(Check(rank)), waits ? Ids{} : Ids{"GE-05"});
  }
}

}  // namespace
}  // namespace shardproof
