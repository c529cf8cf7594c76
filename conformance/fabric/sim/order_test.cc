// Streams, events, communicators, memory: what is ordered, and what is not.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

// Runs under all policies and some seeds; returns what log held each time.
std::set<std::string> Logs(int world, const std::function<void(Program&, std::string*)>& main,
                           int seeds = 40) {
  std::set<std::string> logs;
  for (const TimingPolicy policy : kTimingPolicies) {
    for (int seed = 0; seed < seeds; ++seed) {
      std::string log;
      const SimResult result =
          RunSim(world, With(policy, static_cast<uint64_t>(seed)), [&](Fabric& f) {
            Program p(f);
            main(p, &log);
            EXPECT_EQ(f.Drain(), SPF_OK);
          });
      EXPECT_FALSE(result.deadlock);
      logs.insert(log);
    }
  }
  return logs;
}

Body Say(std::string* log, char what) {
  return [log, what] { log->push_back(what); };
}

TEST(Order, AStreamIsInOrderAndTwoStreamsAreNot) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    p.f.Enqueue(a, "1", Say(log, '1'));
    p.f.Enqueue(a, "2", Say(log, '2'));
    p.f.Enqueue(b, "x", Say(log, 'x'));
  });
  EXPECT_EQ(logs, (std::set<std::string>{"12x", "1x2", "x12"}));
}

TEST(Order, AWaitOrdersStreams) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    p.f.Enqueue(b, "x", Say(log, 'x'));
    p.After(a, b);
    p.f.Enqueue(a, "1", Say(log, '1'));
  });
  EXPECT_EQ(logs, (std::set<std::string>{"x1"}));
}

TEST(Order, AWaitBeforeTheRecordIsNoEdge) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    const int32_t event = p.f.CreateEvent();
    EXPECT_FALSE(p.f.Wait(event, a));
    p.f.Enqueue(b, "x", Say(log, 'x'));
    p.f.Record(event, b);
    p.f.Enqueue(a, "1", Say(log, '1'));
  });
  EXPECT_EQ(logs, (std::set<std::string>{"x1", "1x"}));
}

TEST(Order, AWaitTakesTheLatestRecordAtItsIssue) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    const int32_t event = p.f.CreateEvent();
    p.f.Enqueue(b, "x", Say(log, 'x'));
    p.f.Record(event, b);
    p.f.Enqueue(b, "y", Say(log, 'y'));
    EXPECT_TRUE(p.f.Wait(event, a));
    p.f.Record(event, b);  // too late for the wait
    p.f.Enqueue(a, "1", Say(log, '1'));
  });
  EXPECT_EQ(logs, (std::set<std::string>{"x1y", "xy1"}));
}

TEST(Order, SyncsWaitForExactlyWhatWasIssued) {
  Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0);
    const int32_t event = p.f.CreateEvent();
    bool recorded = true;
    EXPECT_EQ(p.f.SyncEvent(event, &recorded), SPF_OK);
    EXPECT_FALSE(recorded);
    p.f.Enqueue(a, "1", Say(log, '1'));
    p.f.Record(event, a);
    p.f.Enqueue(a, "2", Say(log, '2'));
    EXPECT_EQ(p.f.SyncEvent(event, &recorded), SPF_OK);
    EXPECT_TRUE(recorded);
    EXPECT_EQ(log->substr(0, 1), "1");
    EXPECT_EQ(p.f.SyncStream(a), SPF_OK);
    EXPECT_EQ(*log, "12");
  });
}

TEST(Order, ADestroyedStreamRunsWhatItHas) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0);
    p.f.Enqueue(a, "1", Say(log, '1'));
    p.f.DestroyStream(a);
  });
  EXPECT_EQ(logs, (std::set<std::string>{"1"}));
}

TEST(Order, DeviceWorkLeftByAHostThatReturnsStillRuns) {
  int ran = 0;
  RunSim(2, With(TimingPolicy::kLazyCompute),
         [&](Fabric& f) { f.Enqueue(f.CreateStream("a", 0), "1", [&] { ++ran; }); });
  EXPECT_EQ(ran, 2);
}

TEST(Order, KernelsOfACommunicatorFollowIssueOrderAcrossStreams) {
  // Both ranks issue A on one stream and B on the other, in the same order, with opposite delays:
  // no deadlock.
  Logs(2, [](Program& p, std::string*) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    const Block x = p.Floats(a, 1), y = p.Floats(b, 1);
    p.Fill(a, x, 1);
    p.Fill(b, y, 2);
    p.AllReduce(p.world, a, x);
    p.AllReduce(p.world, b, y);
    std::vector<float> got_x, got_y;
    p.Read(a, x, &got_x);
    p.Read(b, y, &got_y);
    EXPECT_EQ(p.f.Drain(), SPF_OK);
    EXPECT_EQ(got_x, std::vector<float>{2});
    EXPECT_EQ(got_y, std::vector<float>{4});
  });
}

TEST(Order, AGroupOnTwoStreamsWaitsForBothAndBlocksBoth) {
  const auto logs = Logs(1, [](Program& p, std::string* log) {
    const int32_t a = p.f.CreateStream("a", 0), b = p.f.CreateStream("b", 0);
    const Block x = p.Floats(a, 1);
    p.f.Enqueue(a, "1", Say(log, '1'));
    p.f.Enqueue(b, "2", Say(log, '2'));
    p.f.Communicate(
        {p.Op(SPF_ALL_REDUCE, p.world, a, x, x, 1), p.Op(SPF_ALL_REDUCE, p.world, b, x, x, 0)});
    p.f.Enqueue(a, "3", Say(log, '3'));
    p.f.Enqueue(b, "4", Say(log, '4'));
  });
  EXPECT_EQ(logs, (std::set<std::string>{"1234", "1243", "2134", "2143"}));
}

TEST(Memory, IsPoisonFromAllocAndFromFree) {
  Logs(1, [](Program& p, std::string*) {
    const int32_t a = p.f.CreateStream("a", 0);
    const Block block = p.Floats(a, 8), pinned = p.f.Alloc(a, 4, true);
    EXPECT_TRUE(std::isnan(*Program::At(pinned)));  // host order: at once
    std::vector<float> fresh, after;
    p.Read(a, block, &fresh);
    p.Fill(a, block, 3);
    p.f.Free(a, block);
    p.Read(a, block, &after);  // use after free
    EXPECT_EQ(p.f.SyncStream(a), SPF_OK);
    EXPECT_TRUE(std::isnan(fresh[7]));
    EXPECT_TRUE(std::isnan(after[0]) && std::isnan(after[7]));
    p.f.Free(a, pinned);
  });
}

TEST(Memory, RunsLeaveNothingBehind) {
  for (int run = 0; run < 3; ++run) {
    std::vector<uint64_t> addresses;
    const SimResult result = RunSim(2, With(TimingPolicy::kRandom), [&](Fabric& f) {
      Program p(f);
      const int32_t a = f.CreateStream("a", 0);
      const Block kept = p.Floats(a, 8), freed = p.Floats(a, 8);
      if (f.rank() == 0) addresses.push_back(kept.address);
      f.Free(a, freed);
      if (f.rank() == 0) f.Free(a, kept);
    });
    EXPECT_EQ(result.live_blocks, (std::vector<int32_t>{0, 1}));
  }
}

TEST(Memory, AnArenaThatIsUsedUpEndsTheRunWithAReason) {
  SimOptions options = With(TimingPolicy::kEager);
  options.arena_bytes = 1 << 20;
  const SimResult result = RunSim(2, options, [](Fabric& f) {
    Program p(f);
    const int32_t a = f.CreateStream("a", 0);
    if (f.rank() == 1) p.f.Free(a, f.Alloc(a, 2 << 20, false));
    EXPECT_EQ(f.Drain(), f.rank() == 1 ? SPF_ABORTED : SPF_ABORTED);
  });
  EXPECT_NE(result.errors[1].find("make the arena larger"), std::string::npos);
  EXPECT_TRUE(result.aborted);
  EXPECT_FALSE(result.deadlock);
}

TEST(Groups, CreateSplitsTheParentAndAgreesOnKeys) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(4, With(policy), [](Fabric& f) {
      Program p(f);
      const int me = f.rank();
      int32_t group = -1, none = -1;
      std::string key;
      const std::vector<int32_t> mine =
          me % 2 ? std::vector<int32_t>{3, 1} : std::vector<int32_t>{0, 2};
      EXPECT_EQ(f.CreateGroup(p.world, mine, &group, &key), SPF_OK);
      EXPECT_EQ(key, me % 2 ? "world/0/3" : "world/0/0");
      const int32_t stream = f.CreateStream("comm", 0);
      const Block one = p.Floats(stream, 1), both = p.Floats(stream, 2);
      p.Fill(stream, one, static_cast<float>(me));
      p.AllGather(group, stream, one, both);
      std::vector<float> got;
      p.Read(stream, both, &got);
      EXPECT_EQ(f.DestroyGroup(group), SPF_OK);
      EXPECT_EQ(f.SyncStream(stream), SPF_OK);
      EXPECT_EQ(got, me % 2 ? (std::vector<float>{3, 1}) : (std::vector<float>{0, 2}));
      EXPECT_EQ(f.CreateGroup(p.world, me == 0 ? std::vector<int32_t>{0} : std::vector<int32_t>{},
                              &none, &key),
                SPF_OK);
      EXPECT_EQ(none >= 0, me == 0);
      EXPECT_EQ(key, me == 0 ? "world/1/0" : "");
    });
    EXPECT_FALSE(result.deadlock);
    EXPECT_TRUE(result.mismatches.empty());
  }
}

TEST(Groups, RegisteringMeetsAllMembersInOrder) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      int arrived = 0;
      const SimResult result = RunSim(3, With(policy, seed), [&](Fabric& f) {
        Program p(f);
        const int32_t twin = f.OpenGroup("twin", Everybody(3)), s = f.CreateStream("comm", 0);
        const Block x = f.AllocRegistrable(s, 64), y = f.AllocRegistrable(s, 128);
        const std::pair<int32_t, const Block*> calls[] = {{p.world, &x}, {twin, &x}, {p.world, &y}};
        int due = 0;
        for (const auto& [group, block] : calls) {
          ++arrived;
          EXPECT_EQ(f.RegisterBlock(group, *block), SPF_OK);
          EXPECT_GE(arrived, due += 3);  // nobody leaves before everybody has come
        }
        for (const auto& [group, block] : calls)
          EXPECT_EQ(f.DeregisterBlock(group, *block), SPF_OK);
        f.Free(s, x);
        f.Free(s, y);
      });
      EXPECT_FALSE(result.deadlock || result.aborted);
    }
  }
}

TEST(Groups, DeregisteringWaitsForTheGroupsWorkOnAllStreams) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const SimResult result = RunSim(2, With(policy, seed), [](Fabric& f) {
        Program p(f);
        const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0);
        const Block x = f.AllocRegistrable(a, 4), y = f.AllocRegistrable(b, 4);
        for (const Block& block : {x, y}) EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_OK);
        p.Fill(a, x, 1);
        p.Fill(b, y, 2);
        p.AllReduce(p.world, a, x);
        p.AllReduce(p.world, b, y);
        for (const Block& block : {x, y}) EXPECT_EQ(f.DeregisterBlock(p.world, block), SPF_OK);
        EXPECT_EQ(*Program::At(x), 2);  // no other sync
        EXPECT_EQ(*Program::At(y), 4);
      });
      EXPECT_FALSE(result.deadlock || result.aborted);
    }
  }
}

TEST(Groups, DeregisteringWaitsForNoOtherWorkAndNoOtherRank) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(2, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t twin = f.OpenGroup("twin", Everybody(2)), s = f.CreateStream("comm", 0);
      const Block x = f.AllocRegistrable(s, 4);
      EXPECT_EQ(f.RegisterBlock(p.world, x), SPF_OK);
      p.AllReduce(twin, s, x);  // a communicator that is made when it is first used is there now
      EXPECT_EQ(f.SyncStream(s), SPF_OK);
      const auto reduce_and_end = [&] {
        p.AllReduce(twin, s, x);
        EXPECT_EQ(f.DeregisterBlock(p.world, x), SPF_OK);
      };
      if (f.rank() == 0) reduce_and_end();
      int32_t group = -1;
      std::string key;
      EXPECT_EQ(f.CreateGroup(p.world, {0, 1}, &group, &key), SPF_OK);  // meets
      if (f.rank() == 1) reduce_and_end();
      EXPECT_EQ(f.Drain(), SPF_OK);
    });
    EXPECT_FALSE(result.deadlock || result.aborted);
  }
}

TEST(Groups, OneKeyIsOneCommunicator) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(2, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t again = f.OpenGroup("world", Everybody(2));
      const int32_t stream = f.CreateStream("comm", 0);
      const Block x = p.Floats(stream, 1);
      p.AllReduce(f.rank() == 0 ? p.world : again, stream, x);
      p.AllReduce(f.rank() == 0 ? again : p.world, stream, x);
      EXPECT_EQ(f.DestroyGroup(again), SPF_OK);
      EXPECT_EQ(f.DestroyGroup(p.world), SPF_OK);
    });
    EXPECT_FALSE(result.deadlock);
  }
}

TEST(Groups, ListsThatDisagreeAreNoted) {
  const SimResult result = RunSim(2, With(TimingPolicy::kEager), [](Fabric& f) {
    Program p(f);
    int32_t group = -1;
    std::string key;
    f.CreateGroup(p.world, f.rank() == 0 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1},
                  &group, &key);
  });
  ASSERT_EQ(result.mismatches.size(), 1u);
  EXPECT_NE(result.mismatches[0].find("rank 0 lists [0 1], rank 1 lists [1]"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
