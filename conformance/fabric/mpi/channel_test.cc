#include "conformance/fabric/mpi/channel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace shardproof::mpi {
namespace {

struct Pair {
  std::vector<std::byte> heap = std::vector<std::byte>(4096);
  std::unique_ptr<ChannelMemory> memory = std::make_unique<ChannelMemory>();
  ChannelSender sender{memory.get(), heap.data(), heap.size()};
  ChannelReceiver receiver{memory.get()};
};

TEST(Heap, FreedRangesJoinAgain) {
  std::vector<std::byte> memory(256);
  Heap heap(memory.data(), memory.size());
  std::byte* a = heap.Allocate(64);
  std::byte* b = heap.Allocate(64);
  std::byte* c = heap.Allocate(128);
  EXPECT_EQ(heap.Allocate(1), nullptr);
  heap.Free(a);
  heap.Free(c);
  EXPECT_EQ(heap.Allocate(192), nullptr);
  heap.Free(b);
  EXPECT_EQ(heap.Allocate(256), memory.data());
}

TEST(Channel, MessagesComeInOrderAndUnchanged) {
  Pair pair;
  for (int i = 0; i < 3; ++i) {
    std::byte* data = pair.sender.Allocate(8);
    std::memset(data, i, 8);
    pair.sender.Post({data, 8, i});
  }
  Posted posted;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pair.receiver.Take(&posted));
    EXPECT_EQ(posted.to, i);
    EXPECT_EQ(posted.data[7], static_cast<std::byte>(i));
  }
  EXPECT_FALSE(pair.receiver.Take(&posted));
}

TEST(Channel, MessagePostedTwiceIsFreeWhenItCameBackTwice) {
  Pair pair;
  std::byte* data = pair.sender.Allocate(4096);
  pair.sender.Post({data, 4096, 0});
  pair.sender.Post({data, 4096, 1});
  pair.receiver.Return(data);
  EXPECT_EQ(pair.sender.Allocate(1), nullptr);
  pair.receiver.Return(data);
  EXPECT_EQ(pair.sender.Allocate(1), data);
}

TEST(Channel, MoreMessagesThanSlotsWaitTheirTurn) {
  Pair pair;
  std::byte* data = pair.sender.Allocate(1);
  for (int i = 0; i < 5000; ++i) pair.sender.Post({data, 1, i});
  Posted posted;
  for (int i = 0; i < 5000; ++i) {
    pair.sender.Flush();
    ASSERT_TRUE(pair.receiver.Take(&posted));
    ASSERT_EQ(posted.to, i);
  }
  EXPECT_TRUE(pair.sender.AllTaken());
}

}  // namespace
}  // namespace shardproof::mpi
