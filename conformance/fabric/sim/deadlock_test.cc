// Hangs are seen exactly and said in words; ranks that fail end the others; everything unwinds.
#include <gtest/gtest.h>

#include <stdexcept>

#include "conformance/fabric/in_device_work.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Deadlock, AMissingMemberIsNamed) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(3, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t stream = f.CreateStream("comm", 0);
      const Block block = p.Floats(stream, 1);
      if (f.rank() != 2) p.AllReduce(p.world, stream, block);
      EXPECT_EQ(f.SyncStream(stream), f.rank() == 2 ? SPF_OK : SPF_ABORTED);
      EXPECT_EQ(f.aborted(), f.rank() != 2);
    });
    EXPECT_TRUE(result.deadlock && result.aborted);
    EXPECT_TRUE(
        Has(result.blocked[0], "rank 0: host waits in stream_sync of comm (stream 0) for op"))
        << result.blocked[0];
    EXPECT_TRUE(Has(result.blocked[1], "waits for rank 2 to start collective #0 on world"))
        << result.blocked[1];
    EXPECT_EQ(result.blocked[2], "");
  }
}

// twin_opposite_order_two_streams: hangs only where starts are serial, so never here.
TEST(Deadlock, OppositeOrderOnTwoStreamsIsNone) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const SimResult result = RunSim(2, With(policy, seed), [](Fabric& f) {
        Program p(f);
        const int32_t twin = f.OpenGroup("twin", Everybody(2));
        const int32_t s0 = f.CreateStream("a", 0), s1 = f.CreateStream("b", 0);
        const Block x = p.Floats(s0, 1), y = p.Floats(s1, 1);
        if (f.rank() == 0) p.AllReduce(p.world, s0, x);
        p.AllReduce(twin, s1, y);
        if (f.rank() == 1) p.AllReduce(p.world, s0, x);
        EXPECT_EQ(f.Drain(), SPF_OK);
      });
      EXPECT_FALSE(result.deadlock);
    }
  }
}

// wait_after_record: hangs under every timing in which both need both.
TEST(Deadlock, AnInvertedOrderBehindAWaitIsFoundByTheStrategiesThatNeedAllMembers) {
  for (const TimingPolicy policy :
       {TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kLazyCompute}) {
    const SimResult result = RunSim(2, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t twin = f.OpenGroup("twin", Everybody(2));
      const int32_t s0 = f.CreateStream("a", 0), s1 = f.CreateStream("b", 0);
      const Block x = p.Floats(s0, 1), y = p.Floats(s1, 1);
      p.AllReduce(f.rank() == 0 ? p.world : twin, s0, x);
      p.After(s1, s0);
      p.AllReduce(f.rank() == 0 ? twin : p.world, s1, y);
      EXPECT_EQ(f.Drain(), SPF_ABORTED);
    });
    EXPECT_TRUE(result.deadlock);
    EXPECT_TRUE(Has(result.blocked[0], "host waits in all its device work")) << result.blocked[0];
    EXPECT_TRUE(Has(result.blocked[0],
                    "wait for event 0 on b (stream 1) cannot start: its record on a (stream 0)"));
    EXPECT_TRUE(Has(result.blocked[1], "waits for rank 0 to start collective #0 on twin"))
        << result.blocked[1];
  }
}

// Two communicators on two streams, issued in opposite order: harmless. If the first one has work
// behind it on its stream, that work holds a queue which all streams share until the first one is
// complete, and the second never starts.
void OneQueueProgram(Fabric& f, bool holds) {
  Program p(f);
  const int32_t twin = f.OpenGroup("twin", Everybody(2));
  const int32_t s0 = f.CreateStream("a", 0), s1 = f.CreateStream("b", 0);
  const Block x = p.Floats(s0, 1), y = p.Floats(s1, 1);
  p.AllReduce(f.rank() == 0 ? p.world : twin, s0, x);
  if (holds) p.Fill(s0, x, 1);  // waits for its stream, and the queue with it
  p.AllReduce(f.rank() == 0 ? twin : p.world, s1, y);
  f.Drain();
}

TEST(Deadlock, OneHardwareQueueHangsWhereTwoDoNot) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      for (const int queues : {0, 1, 2}) {
        SimOptions options = With(policy, seed);
        options.queues = queues;
        const SimResult held = RunSim(2, options, [](Fabric& f) { OneQueueProgram(f, true); });
        EXPECT_EQ(held.deadlock, queues == 1);
        EXPECT_FALSE(RunSim(2, options, [](Fabric& f) { OneQueueProgram(f, false); }).deadlock);
        if (queues != 1) continue;
        EXPECT_TRUE(Has(held.blocked[0], "the hardware queue serves fill on a (stream 0) first"))
            << held.blocked[0];
        EXPECT_TRUE(Has(held.blocked[0], "waits for rank 1 to start collective #0 on world"))
            << held.blocked[0];
        EXPECT_TRUE(Has(held.blocked[1], "waits for rank 0 to start collective #0 on twin"))
            << held.blocked[1];
      }
    }
  }
}

TEST(Deadlock, FewerThanNoQueuesAreRefused) {
  SimOptions options;
  options.queues = -1;
  EXPECT_THROW(RunSim(1, options, [](Fabric&) {}), std::invalid_argument);
}

TEST(Deadlock, UngroupedExchangeHangsUnlessSendsAreEager) {
  const auto exchange = [](Fabric& f) {
    Program p(f);
    const int32_t s = f.CreateStream("comm", 0);
    const Block out = p.Floats(s, 1), in = p.Floats(s, 1);
    f.Communicate({p.Op(SPF_SEND, p.world, s, out, {}, 1, 1 - f.rank())});
    f.Communicate({p.Op(SPF_RECV, p.world, s, {}, in, 1, 1 - f.rank())});
    f.Drain();
  };
  EXPECT_TRUE(RunSim(2, With(TimingPolicy::kEager), exchange).deadlock);
  EXPECT_TRUE(RunSim(2, With(TimingPolicy::kLazyComm), exchange).deadlock);
  EXPECT_FALSE(RunSim(2, With(TimingPolicy::kRandom), exchange).deadlock);
  const SimResult result = RunSim(2, With(TimingPolicy::kEager), exchange);
  EXPECT_TRUE(Has(result.blocked[0], "waits for rank 1 to start its side of message #0 on world"))
      << result.blocked[0];
}

TEST(Deadlock, WorkLeftByHostsThatReturnedIsOneToo) {
  const SimResult result = RunSim(2, With(TimingPolicy::kEager), [](Fabric& f) {
    Program p(f);
    const int32_t s = f.CreateStream("comm", 0);
    if (f.rank() == 0) p.AllReduce(p.world, s, p.Floats(s, 1));
  });
  EXPECT_TRUE(result.deadlock);
  EXPECT_TRUE(Has(result.blocked[0], "host is done, device work is left")) << result.blocked[0];
}

TEST(Deadlock, AGroupCreatedByOnlySomeMembersIsOne) {
  const SimResult result = RunSim(3, With(TimingPolicy::kPct), [](Fabric& f) {
    Program p(f);
    int32_t group = -1;
    std::string key;
    if (f.rank() == 1) return;
    EXPECT_EQ(f.CreateGroup(p.world, {f.rank()}, &group, &key), SPF_ABORTED);
  });
  EXPECT_TRUE(result.deadlock);
  EXPECT_TRUE(Has(result.blocked[2], "group_create #0 on world: 2 of 3 members have called"))
      << result.blocked[2];
}

TEST(Deadlock, ABlockRegisteredByOnlySomeMembersIsOne) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(3, With(policy), [](Fabric& f) {
      Program p(f);
      const Block block = f.AllocRegistrable(f.CreateStream("comm", 0), 64);
      EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_OK);
      if (f.rank() == 1) return;
      EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_ABORTED);
      EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_ABORTED);
      EXPECT_EQ(f.DeregisterBlock(p.world, block), SPF_ABORTED);
    });
    EXPECT_TRUE(result.deadlock);
    EXPECT_TRUE(Has(result.blocked[2], "group_register #1 on world: 2 of 3 members have called"))
        << result.blocked[2];
  }
}

TEST(Deadlock, BlocksRegisteredWithTwoGroupsInOppositeOrderAreOne) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (const bool opposite : {false, true}) {
      const SimResult result = RunSim(2, With(policy), [opposite](Fabric& f) {
        Program p(f);
        const int32_t twin = f.OpenGroup("twin", Everybody(2));
        const Block block = f.AllocRegistrable(f.CreateStream("comm", 0), 64);
        const bool twin_first = opposite && f.rank() == 1;
        f.RegisterBlock(twin_first ? twin : p.world, block);
        EXPECT_EQ(f.RegisterBlock(twin_first ? p.world : twin, block),
                  opposite ? SPF_ABORTED : SPF_OK);
      });
      EXPECT_EQ(result.deadlock, opposite);
      if (!opposite) continue;
      EXPECT_TRUE(Has(result.blocked[0], "group_register #0 on world: 1 of 2 members have called"))
          << result.blocked[0];
      EXPECT_TRUE(Has(result.blocked[1], "group_register #0 on twin: 1 of 2 members have called"))
          << result.blocked[1];
    }
  }
}

TEST(Deadlock, DeregisteringWaitsForAMemberThatNeverComes) {
  const SimResult result = RunSim(2, With(TimingPolicy::kEager), [](Fabric& f) {
    Program p(f);
    const int32_t s = f.CreateStream("comm", 0);
    const Block block = f.AllocRegistrable(s, 64);
    EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_OK);
    if (f.rank() == 0) p.AllReduce(p.world, s, block);
    EXPECT_EQ(f.DeregisterBlock(p.world, block), f.rank() == 0 ? SPF_ABORTED : SPF_OK);
  });
  EXPECT_TRUE(result.deadlock);
  EXPECT_TRUE(Has(result.blocked[0], "group_deregister of world, for the work on it"))
      << result.blocked[0];
}

TEST(Abort, EveryStackUnwindsAndQueuedBodiesAreDropped) {
  struct Guard {
    explicit Guard(int* count) : alive(count) { ++*alive; }
    ~Guard() { --*alive; }
    int* alive;
  };
  for (const TimingPolicy policy : kTimingPolicies) {
    int alive = 0, ran = 0;
    const SimResult result = RunSim(4, With(policy), [&](Fabric& f) {
      const Guard guard(&alive);
      Program p(f);
      const int32_t s = f.CreateStream("comm", 0);
      if (f.rank() != 3) p.AllReduce(p.world, s, p.Floats(s, 1));
      const auto token = std::make_shared<Guard>(&alive);
      if (f.rank() != 3) f.Enqueue(s, "never", [token, &ran] { ++ran; });
      f.SyncStream(s);
      if (f.rank() != 3) {
        // After an abort everything answers and nothing happens.
        EXPECT_EQ(f.SyncStream(s), SPF_ABORTED);
        EXPECT_EQ(f.Drain(), SPF_ABORTED);
        f.Enqueue(s, "ignored", [&ran] { ++ran; });
        f.Free(s, f.Alloc(s, 64, false));
        f.DestroyStream(f.CreateStream("late", 0));
        p.After(s, s);
      }
    });
    EXPECT_TRUE(result.deadlock);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(ran, 0);
  }
}

TEST(Abort, ARankThatThrowsEndsOthersOnlyWhenNothingElseCanHappen) {
  for (const TimingPolicy policy : kTimingPolicies) {
    int finished = 0;
    const SimResult result = RunSim(3, With(policy), [&](Fabric& f) {
      Program p(f);
      if (f.rank() == 0) throw std::runtime_error("engine broke");
      const int32_t s = f.CreateStream("comm", 0);
      f.Enqueue(s, "work", [&] { ++finished; });
      EXPECT_EQ(f.SyncStream(s), SPF_OK);
      if (f.rank() == 1) return;
      p.AllReduce(p.world, s, p.Floats(s, 1));
      EXPECT_EQ(f.SyncStream(s), SPF_ABORTED);
    });
    EXPECT_EQ(finished, 2);
    EXPECT_EQ(result.errors, (std::vector<std::string>{"engine broke", "", ""}));
    EXPECT_FALSE(result.deadlock);  // a consequence, not a cause
    EXPECT_TRUE(result.aborted);
    EXPECT_TRUE(Has(result.blocked[2], "waits for ranks 0, 1 to start collective #0 on world"))
        << result.blocked[2];
  }
}

TEST(Abort, FailWakesWhoWaits) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(2, With(policy), [&](Fabric& f) {
      Program p(f);
      const int32_t s = f.CreateStream("comm", 0);
      if (f.rank() == 0) f.Fail("refused: not a member");
      if (f.rank() == 1) {
        p.AllReduce(p.world, s, p.Floats(s, 1));
        EXPECT_EQ(f.SyncStream(s), SPF_ABORTED);
      }
    });
    EXPECT_EQ(result.errors[0], "refused: not a member");
    EXPECT_FALSE(result.deadlock);
  }
}

TEST(Abort, WhatAnEngineThrowsInDeviceWorkFailsItsRank) {
  const SimResult result = RunSim(2, With(TimingPolicy::kEager), [&](Fabric& f) {
    const int32_t s = f.CreateStream("comm", 0);
    f.Enqueue(s, "bad", [] { throw EngineThrew("no such kernel"); });
    f.Enqueue(s, "never", [] { ADD_FAILURE(); });
    EXPECT_EQ(f.SyncStream(s), SPF_ABORTED);
  });
  EXPECT_EQ(result.errors[0] + result.errors[1], "no such kernel");
  EXPECT_EQ(result.threw[0] + result.threw[1], "no such kernel");
}

// All else that device work throws is the suite's, and so is this exception: of RunSim.
TEST(Abort, WhatTheSuiteThrowsInDeviceWorkEndsTheSimulation) {
  int ended = 0;
  const auto run = [&] {
    RunSim(2, With(TimingPolicy::kEager), [&](Fabric& f) {
      const int32_t s = f.CreateStream("comm", 0);
      f.Enqueue(s, "bad", [] { throw std::runtime_error("no memory"); });
      f.Enqueue(s, "never", [] { ADD_FAILURE(); });
      EXPECT_EQ(f.SyncStream(s), SPF_ABORTED);
      ++ended;
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
  EXPECT_EQ(ended, 2) << "each rank comes to its end";
}

TEST(Abort, RanksMaySwitchWhileTheyHandleExceptions) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SimResult result = RunSim(4, With(TimingPolicy::kRandom, seed), [&](Fabric& f) {
      Program p(f);
      const int32_t s = f.CreateStream("comm", 0);
      const std::string mine = "rank " + std::to_string(f.rank());
      for (int i = 0; i < 3; ++i) {
        try {
          throw std::runtime_error(mine);
        } catch (const std::runtime_error&) {
          p.AllReduce(p.world, s, p.Floats(s, 1));
          f.SyncStream(s);  // other ranks throw and catch meanwhile
          try {
            throw;
          } catch (const std::exception& again) {
            EXPECT_EQ(again.what(), mine);
          }
        }
      }
    });
    EXPECT_FALSE(result.aborted);
  }
}

}  // namespace
}  // namespace shardproof
