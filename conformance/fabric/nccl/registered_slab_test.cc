#include "conformance/fabric/nccl/registered_slab.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

class RegisteredSlabTest : public testing::Test {
 protected:
  int64_t Take(int32_t stream, uint64_t bytes) {
    const GpuMemory memory = slab_.Take(stream, bytes);
    if (memory.data == nullptr) return -1;
    EXPECT_EQ(memory.address - 7000, static_cast<uint64_t>(memory.data - bytes_));
    return memory.data - bytes_;
  }
  std::byte bytes_[2048];
  RegisteredSlab slab_{{bytes_, 7000}, sizeof bytes_};
};

TEST_F(RegisteredSlabTest, GivesSizesOfPowersOfTwoUntilItIsFull) {
  EXPECT_EQ(Take(0, 0), 0);
  EXPECT_EQ(Take(0, 300), 256);
  EXPECT_EQ(Take(0, 1024), 768);
  EXPECT_EQ(Take(0, 257), -1);
  EXPECT_EQ(Take(0, 256), 1792);
  EXPECT_EQ(Take(0, 1), -1);
}

TEST_F(RegisteredSlabTest, WhatWasFreedOnAStreamIsForThatStream) {
  EXPECT_EQ(Take(1, 1024), 0);
  slab_.Give(2, bytes_);  // allocated on 1, freed on 2
  EXPECT_EQ(Take(1, 1024), 1024);
  EXPECT_EQ(Take(1, 1024), -1);
  EXPECT_EQ(Take(2, 512), -1);  // another size
  EXPECT_EQ(Take(2, 1000), 0);
}

TEST_F(RegisteredSlabTest, KnowsItsOwn) {
  EXPECT_TRUE(slab_.Holds(bytes_ + 2047));
  EXPECT_FALSE(slab_.Holds(bytes_ + 2048));
  EXPECT_FALSE(RegisteredSlab().Holds(nullptr));
  EXPECT_EQ(RegisteredSlab().Take(0, 1).data, nullptr);
  EXPECT_EQ(Take(0, UINT64_MAX), -1);
}

}  // namespace
}  // namespace shardproof
