// Does NcclFabric keep the rules of fabric.h? On the stand-in, under all policies of the
// simulator.
#include "conformance/fabric/nccl/nccl_fabric.h"

#include <gtest/gtest.h>

#include "conformance/fabric/nccl/gpu_before.h"
#include "conformance/fabric/nccl/run_all_for_test.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

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

// A group call is one operation on all streams that it names, also on those whose operations have
// no elements, and for groups of one, for which nothing of NCCL runs.
TEST(NcclFabric, AGroupCallJoinsAllItsStreams) {
  for (const int members : {1, 2}) {
    for (const bool empty : {false, true}) {
      RunAll(2, [&](BodiesOnDevice& f) {
        Program p(f);
        const int32_t group =
            members == 2 ? p.world : f.OpenGroup("alone " + std::to_string(f.rank()), {f.rank()});
        const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0);
        const Block x = p.Floats(a, 4), y = p.Floats(b, 4), z = p.Floats(a, 4);
        p.After(b, a);
        p.Fill(a, x, 1);
        p.Fill(b, y, 2);
        std::string log;
        f.Enqueue(a, "before", [&log] { log += "a"; });
        f.Enqueue(b, "before", [&log] { log += "b"; });
        const uint64_t count = empty ? 0 : 4;
        f.Communicate(
            {p.Op(SPF_ALL_REDUCE, group, a, x, z, 4), p.Op(SPF_ALL_REDUCE, group, b, y, y, count)});
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

// Kernels of one communicator run in issue order, whatever their streams: also copies of a group of
// one.
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

// Long runs do not grow the books: what is complete is forgotten without any wait of the host, and
// its events serve again.
TEST(NcclFabric, OldEntriesAreForgotten) {
  int events = 0;
  StandinOptions options = Under(TimingPolicy::kEager);
  options.before = [&](Gpu& inner, int32_t) {
    return std::make_unique<GpuBefore>(
        inner, [&](const char* call) { events += std::string(call) == "CreateEvent"; });
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
  RunStandin(1, Under(TimingPolicy::kEager), [&](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    for (int i = 0; i < 2000; ++i) f.Enqueue(s, "work", [] {});
    EXPECT_LT(f.nccl().pending_entries(), 400);
  });
}

}  // namespace
}  // namespace shardproof
