#include "conformance/fabric/arena.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

constexpr uint64_t kSize = 64 << 20;

TEST(Arena, AFreedBlockIsReusedAtOnceOnItsStream) {
  Arena arena(0, kSize);
  const Block first = arena.Alloc(1, 1000, false);
  arena.Free(1, first);
  const Block second = arena.Alloc(1, 1000, false);
  EXPECT_EQ(second.host, first.host);
  EXPECT_NE(second.id, first.id);
}

TEST(Arena, AFreedBlockIsNotReusedOnAnotherStreamBeforeTheFreeHasExecuted) {
  Arena arena(0, kSize);
  const Block first = arena.Alloc(1, 1000, false);
  arena.Free(1, first);
  const Block other = arena.Alloc(2, 1000, false);
  EXPECT_NE(other.host, first.host);
  arena.FreeExecuted(first.id);
  EXPECT_EQ(arena.Alloc(2, 1000, false).host, first.host);
}

TEST(Arena, PinnedMemoryDoesNotReuseBytesWhoseFreeIsStillEnqueued) {
  Arena arena(0, kSize);
  const Block device = arena.Alloc(1, 256, false);
  arena.Free(1, device);
  EXPECT_NE(arena.Alloc(1, 256, true).host, device.host) << "the host may use pinned bytes at once";
  arena.FreeExecuted(device.id);
  EXPECT_EQ(arena.Alloc(1, 256, true).host, device.host);
}

TEST(Arena, ALateFreeDoesNotReleaseTheBlockThatReusesItsBytes) {
  Arena arena(0, kSize);
  const Block first = arena.Alloc(1, 1024, false);
  arena.Free(1, first);
  const Block second = arena.Alloc(1, 512, false);
  EXPECT_EQ(second.host, first.host);
  arena.FreeExecuted(first.id);  // only the second half comes free
  EXPECT_EQ(arena.Alloc(2, 512, false).host, first.host + 512);
  EXPECT_EQ(arena.live_blocks(), 2);
}

TEST(Arena, TheLatestFreedBlockIsTakenFirst) {
  Arena arena(0, kSize);
  std::vector<Block> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(arena.Alloc(0, 256, false));
  for (const size_t i : {4u, 0u, 2u}) {
    arena.Free(0, blocks[i]);
    arena.FreeExecuted(blocks[i].id);
  }
  EXPECT_EQ(arena.Alloc(3, 256, false).host, blocks[2].host);
  EXPECT_EQ(arena.Alloc(3, 256, false).host, blocks[0].host);
}

TEST(Arena, BothViewsShowTheSameBytesAndPinnedBlocksHaveOneAddress) {
  Arena arena(3, kSize);
  const Block device = arena.Alloc(0, 64, false), pinned = arena.Alloc(0, 64, true);
  EXPECT_NE(device.address, reinterpret_cast<uint64_t>(device.host));
  EXPECT_EQ(device.address - arena.device_base(),
            static_cast<uint64_t>(device.host - arena.host_base()));
  EXPECT_EQ(pinned.address, reinterpret_cast<uint64_t>(pinned.host));
}

TEST(ArenaDeathTest, ReadingADeviceAddressFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Arena arena(0, kSize);
        const Block block = arena.Alloc(0, 64, false);
        Arena::Poison(block);
        static_cast<void>(*reinterpret_cast<const volatile uint8_t*>(block.address));
        _exit(0);
      },
      [](int status) {
        // A sanitizer reports the fault and exits by itself.
        return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : WEXITSTATUS(status) != 0;
      },
      "");
}

TEST(Arena, DescribesAnyAddress) {
  Arena arena(5, kSize);
  arena.Alloc(0, 1000, false);
  const Block block = arena.Alloc(0, 1000, false);
  Place place;
  ASSERT_TRUE(arena.Describe(block.address + 12, &place));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.block, block.id);
  EXPECT_EQ(place.offset, 12u);
  EXPECT_TRUE(place.live && place.device_view);
  arena.Free(0, block);
  ASSERT_TRUE(arena.Describe(reinterpret_cast<uint64_t>(block.host), &place));
  EXPECT_EQ(place.block, block.id);
  EXPECT_FALSE(place.live || place.device_view);
  ASSERT_TRUE(arena.Describe(arena.device_base() + kSize - 1, &place));
  EXPECT_EQ(place.block, -1);
  int local = 0;
  EXPECT_FALSE(arena.Describe(reinterpret_cast<uint64_t>(&local), &place));
}

TEST(Arena, ResetForgetsBlocksAndBytes) {
  Arena arena(0, kSize);
  const Block block = arena.Alloc(0, 1 << 20, false);
  Arena::Poison(block);
  arena.Reset();
  EXPECT_EQ(arena.live_blocks(), 0);
  const Block again = arena.Alloc(0, 1 << 20, false);
  EXPECT_EQ(again.host, block.host);
  EXPECT_EQ(again.id, 0);
  EXPECT_EQ(std::to_integer<int>(again.host[4097]), 0);
}

// Numbers of blocks begin again after Reset: what the block of a number had enqueued before is not
// that of the next.
TEST(Arena, ResetForgetsFreesThatAreStillEnqueued) {
  Arena arena(0, kSize);
  arena.Free(1, arena.Alloc(1, 512, false));
  arena.Alloc(1, 256, false);  // half of it; the free of the other half has not executed
  arena.Reset();
  const Block first = arena.Alloc(1, 256, false), second = arena.Alloc(1, 256, false);
  arena.Free(1, first);
  arena.FreeExecuted(first.id);
  EXPECT_GE(arena.Alloc(2, 512, false).address, second.address + 256) << "second is live";
}

TEST(Arena, SaysWhenItIsUsedUp) {
  Arena arena(2, 1 << 20);
  EXPECT_THROW(arena.Alloc(0, 2 << 20, false), std::runtime_error);
  EXPECT_THROW(arena.Alloc(0, ~uint64_t{0}, false), std::runtime_error);
  EXPECT_EQ(arena.Alloc(0, 1 << 20, false).host, arena.host_base());
}

TEST(Arena, IsSharedWithAForkedChildAtTheSameAddresses) {
  Arena arena(0, kSize);
  const Block block = arena.Alloc(0, 4, false);
  const pid_t child = fork();
  if (child == 0) {
    block.host[0] = std::byte{42};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(std::to_integer<int>(block.host[0]), 42);
  const Arena second(1, arena.fd(), kSize);  // another mapping of the same memory
  EXPECT_EQ(std::to_integer<int>(second.host_base()[block.host - arena.host_base()]), 42);
}

TEST(Arena, SixtyFourGigabyteArenasCostNothing) {
  std::vector<std::unique_ptr<Arena>> arenas;
  for (int32_t rank = 0; rank < 64; ++rank)
    arenas.push_back(std::make_unique<Arena>(rank, uint64_t{1} << 30));
  for (const auto& arena : arenas) Arena::Poison(arena->Alloc(0, 4096, false));
}

// What the owner of each 256 bytes says, kept apart from the arena's own tables.
class Ownership {
 public:
  explicit Ownership(const Arena& arena) : arena_(arena), slots_(kSize / 256) {}
  void Alloc(const Block& block, int32_t stream) {
    ForEach(block, [&](Slot& slot) {
      EXPECT_FALSE(slot.live);
      EXPECT_TRUE(slot.freed_on < 0 || slot.freed_on == stream);
      reused += slot.freed_on >= 0;
      slot = {block.id, -1, true};
    });
  }
  void Free(const Block& block, int32_t stream) {
    ForEach(block, [&](Slot& slot) { slot = {block.id, stream, false}; });
  }
  void Executed(const Block& block) {
    ForEach(block, [&](Slot& slot) {
      if (!slot.live && slot.block == block.id) slot.freed_on = -1;
    });
  }
  int reused = 0;

 private:
  struct Slot {
    int32_t block = -1;
    int32_t freed_on = -1;  // the stream of a free that has not executed
    bool live = false;
  };
  template <class F>
  void ForEach(const Block& block, F f) {
    const auto first = static_cast<uint64_t>(block.host - arena_.host_base()) / 256;
    for (uint64_t i = first; i * 256 < first * 256 + block.bytes; ++i) f(slots_[i]);
  }
  const Arena& arena_;
  std::vector<Slot> slots_;
};

TEST(Arena, NeverHandsOutBytesTooEarly) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Arena arena(0, kSize);
  Ownership ownership(arena);
  std::vector<Block> live;
  std::vector<std::vector<Block>> freed(3);  // by stream, in order
  for (int step = 0; step < 20000; ++step) {
    const auto stream = static_cast<int32_t>(below(3));
    auto& queue = freed[static_cast<size_t>(stream)];
    const size_t what = below(3);
    if (what == 0 || live.empty()) {
      live.push_back(arena.Alloc(stream, 1 + below(2000), false));
      ownership.Alloc(live.back(), stream);
    } else if (what == 1) {
      std::swap(live[below(live.size())], live.back());
      arena.Free(stream, live.back());
      ownership.Free(live.back(), stream);
      queue.push_back(live.back());
      live.pop_back();
    } else if (!queue.empty()) {
      arena.FreeExecuted(queue.front().id);
      ownership.Executed(queue.front());
      queue.erase(queue.begin());
    }
  }
  EXPECT_GT(ownership.reused, 1000);
  for (const Block& block : live) arena.Free(0, block);
  for (const Block& block : live) arena.FreeExecuted(block.id);
  for (const auto& queue : freed) {
    for (const Block& block : queue) arena.FreeExecuted(block.id);
  }
  const uint64_t top = arena.high_water_bytes();
  EXPECT_EQ(arena.Alloc(9, top, false).host, arena.host_base());  // all is joined again
}

}  // namespace
}  // namespace shardproof
