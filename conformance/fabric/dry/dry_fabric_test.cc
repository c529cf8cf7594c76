#include "conformance/fabric/dry/dry_fabric.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <vector>

#include "conformance/fabric/in_device_work.h"

namespace shardproof {
namespace {

CommOp Op(int32_t kind, int32_t group, const Block& send, const Block& recv, uint64_t count) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_I64;
  op.group = group;
  op.stream = 0;
  op.send = send.host;
  op.recv = recv.host;
  op.count = count;
  return op;
}

// One element to each of three members.
CommOp Swap(int32_t group, const Block& send, const Block& recv) {
  CommOp op = Op(SPF_ALL_TO_ALL_V, group, send, recv, 0);
  op.send_counts = op.recv_counts = {1, 1, 1};
  return op;
}

std::vector<int64_t> Read(const Block& block) {
  std::vector<int64_t> values(block.bytes / sizeof(int64_t));
  std::memcpy(values.data(), block.host, block.bytes);
  return values;
}

class DryFabricTest : public testing::Test {
 protected:
  Block Filled(const std::vector<int64_t>& values) {
    const Block block = fabric_.Alloc(0, values.size() * sizeof(int64_t), false);
    std::memcpy(block.host, values.data(), block.bytes);
    return block;
  }
  Block Room(uint64_t n) { return fabric_.Alloc(0, n * sizeof(int64_t), false); }

  DryFabric fabric_{/*rank=*/5, /*world=*/16384};
  const int32_t group_ = fabric_.OpenGroup("i0/ep[1]", {4, 5, 6});
};

TEST_F(DryFabricTest, EveryMemberBringsWhatThisRankBrings) {
  const Block mine = Filled({7, 8, 9}), gathered = Room(9), swapped = Room(3), sum = Room(3);
  fabric_.Communicate({Op(SPF_ALL_GATHER, group_, mine, gathered, 3), Swap(group_, mine, swapped),
                       Op(SPF_ALL_REDUCE, group_, mine, sum, 3)});
  EXPECT_EQ(Read(gathered), (std::vector<int64_t>{7, 8, 9, 7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(Read(swapped), (std::vector<int64_t>{8, 8, 8})) << "each sends its second piece here";
  EXPECT_EQ(Read(sum), (std::vector<int64_t>{21, 24, 27}));
}

TEST_F(DryFabricTest, LargeCollectivesMoveNothing) {
  const std::vector<int64_t> values(4096, 3);
  const Block mine = Filled(values), gathered = Room(3 * 4096);
  fabric_.Communicate({Op(SPF_ALL_GATHER, group_, mine, gathered, 4096)});
  EXPECT_EQ(Read(gathered)[0], 0);
}

TEST_F(DryFabricTest, MembersOfOneListGetOneKey) {
  DryFabric other(6, 16384);
  const int32_t of_other = other.OpenGroup("i0/ep[1]", {4, 5, 6});
  int32_t mine = -1, theirs = -1;
  std::string my_key, their_key;
  ASSERT_EQ(fabric_.CreateGroup(group_, {5, 6}, &mine, &my_key), SPF_OK);
  ASSERT_EQ(other.CreateGroup(of_other, {5, 6}, &theirs, &their_key), SPF_OK);
  EXPECT_EQ(my_key, their_key);
  ASSERT_EQ(fabric_.CreateGroup(group_, {5, 6}, &mine, &my_key), SPF_OK);
  EXPECT_NE(my_key, their_key) << "the next call makes another communicator";
}

TEST_F(DryFabricTest, WaitKnowsWhetherThereWasARecord) {
  const int32_t event = fabric_.CreateEvent(), stream = fabric_.CreateStream("s", 0);
  EXPECT_FALSE(fabric_.Wait(event, stream));
  fabric_.Record(event, stream);
  EXPECT_TRUE(fabric_.Wait(event, stream));
}

TEST_F(DryFabricTest, WorkRunsAtOnceAndAfterAFailureNoMore) {
  int runs = 0;
  fabric_.Enqueue(0, "work", [&] { ++runs; });
  EXPECT_EQ(runs, 1);
  fabric_.Enqueue(0, "work", [] { throw EngineThrew("out of luck"); });
  EXPECT_EQ(fabric_.threw(), "out of luck");
  EXPECT_EQ(fabric_.SyncStream(0), SPF_ABORTED);
  fabric_.Enqueue(0, "work", [&] { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST_F(DryFabricTest, BytesThatWereUsedAreCleared) {
  Block first = Filled({1, 2, 3});
  fabric_.Free(0, first);
  EXPECT_EQ(Read(Room(3)), (std::vector<int64_t>{0, 0, 0}));
}

}  // namespace
}  // namespace shardproof
