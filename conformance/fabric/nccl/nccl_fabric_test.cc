// Does NcclFabric keep the rules of fabric.h? On the stand-in, under all strategies of the simulator.
#include "conformance/fabric/nccl/nccl_fabric.h"

#include <gtest/gtest.h>

#include <cstring>

#include "conformance/fabric/nccl/gpu_before.h"
#include "conformance/fabric/nccl/standin_testing.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

StandinOptions Under(Strategy strategy, uint64_t seed = 1) {
  StandinOptions options;
  options.sim = With(strategy, seed);
  return options;
}

// Runs main under every strategy and some seeds; nothing may end it, and nothing may be left.
void RunAll(int world, const std::function<void(BodiesOnDevice&)>& main) {
  for (const Strategy strategy : kStrategies) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const StandinRun run = RunStandin(world, Under(strategy, seed), main);
      EXPECT_FALSE(run.ended()) << "strategy " << static_cast<int>(strategy) << " seed " << seed << "\n" << run.Text();
      EXPECT_FALSE(run.sim.deadlock);
      for (const std::string& error : run.sim.errors) EXPECT_EQ(error, "");
      for (const StandinGpu::Live& live : run.live) {
        EXPECT_EQ(live.streams + live.events + live.blocks + live.comms + live.registrations, 0)
            << live.streams << " " << live.events << " " << live.blocks << " " << live.comms;
      }
      for (const int32_t blocks : run.sim.live_blocks) EXPECT_EQ(blocks, 0);
    }
  }
}

TEST(NcclFabric, AllReducesOverAStream) {
  RunAll(3, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = p.Floats(s, 4);
    p.Fill(s, block, static_cast<float>(f.rank() + 1));
    p.AllReduce(p.world, s, block);
    std::vector<float> seen;
    p.Read(s, block, &seen);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>(4, 6.0f));
    f.Free(s, block);
  });
}

// A group call is one operation on all streams that it names, also on those whose operations have no elements, and for groups
// of one, for which nothing of NCCL runs.
TEST(NcclFabric, AGroupCallJoinsAllItsStreams) {
  for (const int members : {1, 2}) {
    for (const bool empty : {false, true}) {
      RunAll(2, [&](BodiesOnDevice& f) {
        Program p(f);
        const int32_t group = members == 2 ? p.world : f.OpenGroup("alone " + std::to_string(f.rank()), {f.rank()});
        const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0);
        const Block x = p.Floats(a, 4), y = p.Floats(b, 4), z = p.Floats(a, 4);
        p.After(b, a);
        p.Fill(a, x, 1);
        p.Fill(b, y, 2);
        std::string log;
        f.Enqueue(a, "before", [&log] { log += "a"; });
        f.Enqueue(b, "before", [&log] { log += "b"; });
        const uint64_t count = empty ? 0 : 4;
        f.Communicate({p.Op(SPF_ALL_REDUCE, group, a, x, z, 4), p.Op(SPF_ALL_REDUCE, group, b, y, y, count)});
        f.Enqueue(a, "behind", [&log] { log += "A"; });
        f.Enqueue(b, "behind", [&log] { log += "B"; });
        std::vector<float> on_b;
        p.Read(b, z, &on_b);  // ordered behind the operation on a by the group call alone
        EXPECT_EQ(f.SyncStream(a), SPF_OK);
        EXPECT_EQ(f.SyncStream(b), SPF_OK);
        EXPECT_TRUE(log == "abAB" || log == "abBA" || log == "baAB" || log == "baBA") << log;
        EXPECT_EQ(on_b, std::vector<float>(4, static_cast<float>(members)));
        for (const Block& block : {x, y, z}) f.Free(a, block);
      });
    }
  }
}

// Kernels of one communicator run in issue order, whatever their streams: also copies of a group of one.
TEST(NcclFabric, KernelsOfAGroupOfOneRunInIssueOrder) {
  RunAll(1, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0);
    const Block x = p.Floats(a, 1), y = p.Floats(a, 1), z = p.Floats(a, 1);
    p.Fill(a, x, 5);
    p.After(b, a);
    f.Communicate({p.Op(SPF_ALL_GATHER, p.world, a, x, y, 1)});
    f.Communicate({p.Op(SPF_BROADCAST, p.world, b, y, z, 1, 0)});  // no event between a and b
    std::vector<float> seen;
    p.Read(b, z, &seen);
    EXPECT_EQ(f.SyncStream(b), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>{5});
    p.After(a, b);
    for (const Block& block : {x, y, z}) f.Free(a, block);
  });
}

TEST(NcclFabric, MessagesToOneselfAreCopiedInsideAGroupCall) {
  RunAll(1, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block x = p.Floats(s, 3), y = p.Floats(s, 3);
    p.Fill(s, x, 5);
    f.Communicate({p.Op(SPF_SEND, p.world, s, x, x, 3, 0), p.Op(SPF_RECV, p.world, s, y, y, 3, 0)});
    std::vector<float> seen;
    p.Read(s, y, &seen);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>(3, 5));
    f.Free(s, x);
    f.Free(s, y);
  });
}

TEST(NcclFabric, BlocksArePoisonAndEmptyOnesAreBlocksToo) {
  RunAll(1, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = f.Alloc(s, 10, false), empty = f.Alloc(s, 0, false), pinned = f.Alloc(s, 10, true),
                no_pinned = f.Alloc(s, 0, true);
    EXPECT_NE(empty.host, nullptr);
    EXPECT_NE(block.address, empty.address);
    EXPECT_NE(no_pinned.host, pinned.host);
    EXPECT_EQ(pinned.address, reinterpret_cast<uint64_t>(pinned.host));
    EXPECT_EQ(f.nccl().live_blocks(), 4);
    std::string seen;
    f.Enqueue(s, "look", [&seen, block] { seen.assign(reinterpret_cast<char*>(block.host), 10); });
    f.Free(s, block);
    f.Enqueue(s, "look", [&seen, block] { seen.append(reinterpret_cast<char*>(block.host), 10); });
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::string(20, '\xFF'));
    EXPECT_EQ(std::string(reinterpret_cast<char*>(pinned.host), 10), std::string(10, '\xFF'));
    std::memset(pinned.host, 1, 10);
    f.Free(s, pinned);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(pinned.host), 10), std::string(10, '\xFF'));
    EXPECT_EQ(f.Alloc(s, 7, true).host, pinned.host);  // again at once: pinned memory is host-ordered
  });
}

// Looks at what is freed before the simulator's own poison comes over it.
class LooksAtFreed : public GpuBefore {
 public:
  LooksAtFreed(Gpu& inner, std::string* seen) : GpuBefore(inner, [](const char*) {}), seen_(seen) {}
  void Free(int32_t stream, std::byte* data) override {
    QueueOf(stream).Run([seen = seen_, data] { seen->append(reinterpret_cast<char*>(data), 8); });
    GpuBefore::Free(stream, data);
  }

 private:
  std::string* seen_;
};

TEST(NcclFabric, WhatIsFreedIsPoison) {
  std::string freed;
  StandinOptions options = Under(Strategy::kRandom);
  options.before = [&](Gpu& inner, int32_t) { return std::make_unique<LooksAtFreed>(inner, &freed); };
  RunStandin(1, options, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = p.Floats(s, 2);
    p.Fill(s, block, 1);
    f.Free(s, block);
  });
  EXPECT_EQ(freed, std::string(8, '\xFF'));
}

TEST(NcclFabric, RegisteredMemoryHasTheSameOffsetsOnAllRanksAndIsUsedAgain) {
  std::vector<uint64_t> offsets[2];
  StandinOptions options = Under(Strategy::kRandom);
  const StandinRun run = RunStandin(2, options, [&](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0), t = f.CreateStream("t", 0);
    const int32_t alone = f.OpenGroup("alone " + std::to_string(f.rank()), {f.rank()});
    const Block other = p.Floats(t, 1);  // no registered memory yet
    ASSERT_EQ(f.nccl().RegisterMemory(4096, {p.world, alone, p.world}), SPF_OK);
    std::vector<Block> blocks;
    for (const uint64_t bytes : {1000u, 16u, 1024u}) blocks.push_back(f.nccl().AllocRegistered(s, bytes));
    f.Free(s, blocks[0]);
    f.Free(t, blocks[2]);
    blocks.push_back(f.nccl().AllocRegistered(s, 513));
    for (const Block& block : blocks) offsets[f.rank()].push_back(block.address - blocks[0].address);
    EXPECT_EQ(offsets[f.rank()], (std::vector<uint64_t>{0, 1024, 1280, 0}));
    const Block large = f.nccl().AllocRegistered(s, 3000);  // no room: from elsewhere
    EXPECT_GE(large.id, 0);
    p.Fill(s, blocks[1], 2);
    p.AllReduce(p.world, s, blocks[1]);
    std::vector<float> seen, poison;
    p.Read(s, blocks[1], &seen);
    p.Read(s, blocks[3], &poison);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>(4, 4));
    EXPECT_NE(poison[0], poison[0]);  // NaN
    for (const Block& block : {blocks[1], blocks[3], large}) f.Free(s, block);
    f.Free(t, other);
    EXPECT_EQ(f.DestroyGroup(p.world), SPF_OK);  // takes its registration with it
    EXPECT_EQ(f.nccl().live_blocks(), 0);
  });
  EXPECT_FALSE(run.ended()) << run.Text();
  EXPECT_EQ(offsets[0], offsets[1]);
  for (const StandinGpu::Live& live : run.live) EXPECT_EQ(live.registrations + live.comms + live.blocks, 0);
}

TEST(NcclFabric, MemoryIsRegisteredOnce) {
  const StandinRun run = RunStandin(1, Under(Strategy::kEager), [&](BodiesOnDevice& f) {
    EXPECT_EQ(f.nccl().RegisterMemory(4096, {}), SPF_OK);
    EXPECT_EQ(f.nccl().RegisterMemory(4096, {}), SPF_ABORTED);
  });
  EXPECT_NE(run.ends[0].reason.find("registered already"), std::string::npos);
}

TEST(NcclFabric, WhatAnEngineLeavesBehindIsGivenBack) {
  RunAll(2, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0), gone = f.CreateStream("gone", 0);
    p.AllReduce(p.world, s, p.Floats(s, 4));
    p.Fill(gone, p.Floats(gone, 4), 1);
    f.Record(f.CreateEvent(), s);
    f.DestroyStream(gone);
    f.Alloc(s, 100, true);
    EXPECT_EQ(f.nccl().live_blocks(), 3);
  });
}

TEST(NcclFabric, AKeyMayComeAgainAfterItsGroupIsDestroyed) {
  RunAll(2, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block x = p.Floats(s, 1);
    int32_t last = -1;
    for (int round = 0; round < 3; ++round) {
      const int32_t group = f.OpenGroup("again", {1, 0});
      EXPECT_EQ(f.OpenGroup("again", {1, 0}), group);
      EXPECT_NE(group, last);
      last = group;
      p.Fill(s, x, 1);
      p.AllReduce(group, s, x);
      std::vector<float> seen;
      p.Read(s, x, &seen);
      EXPECT_EQ(f.DestroyGroup(group), SPF_OK);
      EXPECT_EQ(f.SyncStream(s), SPF_OK);
      EXPECT_EQ(seen, std::vector<float>{2});
    }
    f.Free(s, x);
  });
}

TEST(NcclFabric, StampsTellTimeInStreamOrder) {
  RunAll(1, [](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    const int32_t begin = f.nccl().Stamp(s);
    f.Enqueue(s, "work", [] {});
    const int32_t end = f.nccl().Stamp(s);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_GT(f.nccl().MillisecondsBetween(begin, end), 0);
  });
}

// A body is called at once, so that device code finds its stream.
TEST(NcclFabric, BodiesAreCalledAtOnce) {
  RunAll(1, [](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    bool called = false, ran = false;
    f.nccl().Enqueue(s, "kernel", [&] {
      called = true;
      f.nccl().QueueOf(s).Run([&ran] { ran = true; });
    });
    EXPECT_TRUE(called);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_TRUE(ran);
  });
}

// Long runs do not grow the books: what is complete is forgotten without any wait of the host, and its events serve again.
TEST(NcclFabric, OldEntriesAreForgotten) {
  int events = 0;
  StandinOptions options = Under(Strategy::kEager);
  options.before = [&](Gpu& inner, int32_t) {
    return std::make_unique<GpuBefore>(inner, [&](const char* call) { events += std::string(call) == "CreateEvent"; });
  };
  const StandinRun run = RunStandin(2, options, [&](BodiesOnDevice& f) {
    Program p(f);
    const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0), event = f.CreateEvent();
    const Block x = p.Floats(a, 1);
    for (int step = 0; step < 200; ++step) {
      for (int i = 0; i < 10; ++i) p.Fill(a, x, 1);
      f.Record(event, a);
      f.Wait(event, b);
      p.AllReduce(p.world, b, x);
      f.Record(event, b);
      f.Wait(event, a);
    }
    EXPECT_LT(f.nccl().pending_entries(), 400);
    f.Free(a, x);
  });
  EXPECT_FALSE(run.ended()) << run.Text();
  EXPECT_LT(events, 100);
}

TEST(NcclFabric, OldEntriesOfAStreamThatNobodyWaitsForAreForgottenToo) {
  RunStandin(1, Under(Strategy::kEager), [&](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    for (int i = 0; i < 2000; ++i) f.Enqueue(s, "work", [] {});
    EXPECT_LT(f.nccl().pending_entries(), 400);
  });
}

}  // namespace
}  // namespace shardproof
