#include "conformance/fabric/nccl/pinned_pool.h"

#include <gtest/gtest.h>

#include "conformance/fabric/nccl/standin_gpu.h"
#include "conformance/fabric/sim/sim.h"

namespace shardproof {
namespace {

void WithPool(const std::function<void(PinnedPool&)>& body) {
  RunSim(1, SimOptions(), [&](Fabric& sim) {
    StandinClock clock;
    StandinIds ids;
    StandinGpu gpu(sim, clock, ids);
    PinnedPool pool(gpu, 4096);
    body(pool);
  });
}

TEST(PinnedPool, GivesTheLatestOfASizeFirst) {
  WithPool([](PinnedPool& pool) {
    std::byte *a = pool.Take(200), *b = pool.Take(256), *c = pool.Take(257);
    EXPECT_EQ(b, a + 256);
    EXPECT_EQ(c, b + 256);
    pool.Give(a);
    pool.Give(b);
    EXPECT_EQ(pool.Take(1), b);
    EXPECT_EQ(pool.Take(1), a);
    EXPECT_EQ(pool.Take(1), c + 512);
    EXPECT_EQ(pool.slab_bytes(), 4096u);
  });
}

TEST(PinnedPool, GrowsBySlabsAndLargeBlocksHaveTheirOwn) {
  WithPool([](PinnedPool& pool) {
    for (int i = 0; i < 5; ++i) pool.Take(1024);
    EXPECT_EQ(pool.slab_bytes(), 2 * 4096u);
    std::byte* large = pool.Take(5000);
    EXPECT_EQ(pool.slab_bytes(), 2 * 4096u + 8192u);
    pool.Give(large);
    EXPECT_EQ(pool.Take(8192), large);
    EXPECT_EQ(pool.slab_bytes(), 2 * 4096u + 8192u);
  });
}

TEST(PinnedPool, NoBytesAreABlockToo) {
  WithPool([](PinnedPool& pool) { EXPECT_NE(pool.Take(0), pool.Take(0)); });
}

}  // namespace
}  // namespace shardproof
