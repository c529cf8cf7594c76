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

TEST(NcclMemory, WhatIsFreedIsPoison) {
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

TEST(NcclMemory, MemoryIsNotPoisonedIfNobodyWantsIt) {
  std::string freed;
  StandinOptions options = Under(Strategy::kRandom);
  options.poison = false;
  options.before = [&](Gpu& inner, int32_t) { return std::make_unique<LooksAtFreed>(inner, &freed); };
  RunStandin(1, options, [](BodiesOnDevice& f) {
    const int32_t s = f.CreateStream("s", 0);
    f.Free(s, f.Alloc(s, 8, false));
  });
  EXPECT_EQ(freed, std::string(8, '\x5A'));
}

TEST(NcclMemory, RegisteredMemoryHasTheSameOffsetsOnAllRanksAndIsUsedAgain) {
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

TEST(NcclMemory, MemoryIsRegisteredOnce) {
  const StandinRun run = RunStandin(1, Under(Strategy::kEager), [&](BodiesOnDevice& f) {
    EXPECT_EQ(f.nccl().RegisterMemory(4096, {}), SPF_OK);
    EXPECT_EQ(f.nccl().RegisterMemory(4096, {}), SPF_ABORTED);
  });
  EXPECT_NE(run.ends[0].reason.find("registered already"), std::string::npos);
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
