// Which bytes do engines get from NcclFabric, and what is in them?
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/fabric/nccl/gpu_before.h"
#include "conformance/fabric/nccl/run_all_for_test.h"

namespace shardproof {
namespace {

TEST(NcclMemory, BlocksArePoisonAndEmptyOnesAreBlocksToo) {
  RunAll(1, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = f.Alloc(s, 10, false), empty = f.Alloc(s, 0, false),
                pinned = f.Alloc(s, 10, true), no_pinned = f.Alloc(s, 0, true);
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
    EXPECT_EQ(f.Alloc(s, 7, true).host,
              pinned.host);  // again at once: pinned memory is host-ordered
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

TEST(NcclMemory, WhatIsFreedIsPoison) {
  std::string freed;
  StandinOptions options = Under(TimingPolicy::kRandom);
  options.before = [&](Gpu& inner, int32_t) {
    return std::make_unique<LooksAtFreed>(inner, &freed);
  };
  RunStandin(1, options, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = p.Floats(s, 2);
    p.Fill(s, block, 1);
    f.Free(s, block);
  });
  EXPECT_EQ(freed, std::string(8, '\xFF'));
}

TEST(NcclMemory, MemoryIsNotPoisonedIfNobodyWantsIt) {
  std::string freed;
  StandinOptions options = Under(TimingPolicy::kRandom);
  options.poison = false;
  options.before = [&](Gpu& inner, int32_t) {
    return std::make_unique<LooksAtFreed>(inner, &freed);
  };
  RunStandin(1, options, [](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    f.Free(s, f.Alloc(s, 8, false));
  });
  EXPECT_EQ(freed, std::string(8, '\x5A'));
}

TEST(NcclMemory, RegisteredBlocksAreUsedInCollectivesAndTheirMemoryAgain) {
  const StandinRun run = RunStandin(2, Under(TimingPolicy::kRandom), [&](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0), t = f.CreateStream("t", 0);
    const int32_t alone = f.OpenGroup("alone " + std::to_string(f.rank()), {f.rank()});
    const Block block = f.AllocRegistrable(s, 4 * sizeof(float));
    for (const int32_t group : {p.world, alone}) EXPECT_EQ(f.RegisterBlock(group, block), SPF_OK);
    p.Fill(s, block, 2);
    p.AllReduce(p.world, s, block);
    for (const int32_t group : {p.world, alone}) EXPECT_EQ(f.DeregisterBlock(group, block), SPF_OK);
    std::vector<float> seen, poison;
    p.Read(s, block, &seen);
    f.Free(s, block);
    const Block elsewhere = f.AllocRegistrable(t, block.bytes),
                larger = f.AllocRegistrable(s, 2 * block.bytes),
                again = f.AllocRegistrable(s, block.bytes);
    EXPECT_NE(elsewhere.host, block.host) << "another stream is not ordered behind the free";
    EXPECT_NE(larger.host, block.host);
    EXPECT_EQ(again.host, block.host);
    p.Read(s, again, &poison);
    EXPECT_EQ(f.SyncStream(s), SPF_OK);
    EXPECT_EQ(seen, std::vector<float>(4, 4));
    EXPECT_NE(poison[0], poison[0]);  // NaN
    f.Free(t, elsewhere);
    for (const Block& rest : {larger, again}) f.Free(s, rest);
    EXPECT_EQ(f.DestroyGroup(p.world), SPF_OK);
    EXPECT_EQ(f.nccl().live_blocks(), 0);
    EXPECT_TRUE(f.nccl().mismatches().empty());
  });
  EXPECT_FALSE(run.ended()) << run.Text();
  for (const StandinGpu::Live& live : run.live)
    EXPECT_EQ(live.registrations + live.comms + live.blocks, 0);
}

TEST(NcclMemory, ARegistrationThatIsLeftEndsWithItsGroup) {
  const StandinRun run = RunStandin(2, Under(TimingPolicy::kEager), [&](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    const Block block = f.AllocRegistrable(s, 256);
    EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_OK);
  });
  EXPECT_FALSE(run.ended()) << run.Text();
  for (const StandinGpu::Live& live : run.live) EXPECT_EQ(live.registrations, 0);
}

TEST(NcclMemory, RegistrationIsAMeetingAndComparesSizes) {
  std::string mismatch;
  RunStandin(2, Under(TimingPolicy::kRandom), [&](BodiesOnDevice& f) {
    Program p(f);
    const Block block = f.AllocRegistrable(f.CreateStream("s", 0), 256u << f.rank());
    EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_OK);
    if (f.rank() == 0) mismatch = f.nccl().mismatches().at(0);
  });
  EXPECT_EQ(mismatch, "group_register #0 on world: rank 0 registers 256 bytes, rank 1 512");
  const StandinRun lonely = RunStandin(2, Under(TimingPolicy::kRandom), [&](BodiesOnDevice& f) {
    Program p(f);
    const Block block = f.AllocRegistrable(f.CreateStream("s", 0), 256);
    if (f.rank() == 0) {
      EXPECT_EQ(f.RegisterBlock(p.world, block), SPF_ABORTED);
    }
  });
  EXPECT_NE(lonely.ends[0].host.find("group_register #0 on world"), std::string::npos)
      << lonely.Text();
}

TEST(NcclMemory, WhatAnEngineLeavesBehindIsGivenBack) {
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

}  // namespace
}  // namespace shardproof
