#include "conformance/fabric/run_collective.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

// Members with float buffers of exactly the size that their operation names: out of bounds is seen
// by sanitizers.
struct Members {
  std::vector<CommOp> ops;
  std::vector<std::vector<float>> send, recv;

  explicit Members(std::vector<CommOp> given)
      : ops(std::move(given)), send(ops.size()), recv(ops.size()) {
    const auto n = static_cast<int32_t>(ops.size());
    for (int32_t me = 0; me < n; ++me) {
      const auto i = static_cast<size_t>(me);
      send[i].resize(SendBytes(ops[i], me, n) / 4);
      recv[i].assign(RecvBytes(ops[i], me, n) / 4, -1.0f);
      for (size_t k = 0; k < send[i].size(); ++k)
        send[i][k] = static_cast<float>(100 * me + static_cast<int>(k));
      ops[i].send = reinterpret_cast<const std::byte*>(send[i].data());
      ops[i].recv = reinterpret_cast<std::byte*>(recv[i].data());
    }
  }
  const std::vector<float>& Run(int32_t me) {
    std::vector<MemberData> all;
    for (const CommOp& op : ops) all.push_back({&op, op.send});
    RunCollective(all, me);
    return recv[static_cast<size_t>(me)];
  }
};

CommOp Op(int32_t kind, uint64_t count) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_F32;
  op.count = count;
  return op;
}
CommOp AllToAll(std::vector<uint64_t> send_counts, std::vector<uint64_t> recv_counts) {
  CommOp op = Op(SPF_ALL_TO_ALL_V, 0);
  op.send_counts = std::move(send_counts);
  op.recv_counts = std::move(recv_counts);
  return op;
}

TEST(RunCollective, AllToAllVMovesUnequalPieces) {
  Members members({AllToAll({1, 2}, {1, 3}), AllToAll({3, 0}, {2, 0})});
  EXPECT_EQ(members.Run(0), (std::vector<float>{0, 100, 101, 102}));
  EXPECT_EQ(members.Run(1), (std::vector<float>{1, 2}));
}

TEST(RunCollective, SumsAreInRankOrder) {
  // (2^24 + 1) + 1 loses both ones; 2^24 + (1 + 1) would not.
  Members members({Op(SPF_ALL_REDUCE, 1), Op(SPF_ALL_REDUCE, 1), Op(SPF_ALL_REDUCE, 1)});
  members.send = {{16777216.0f}, {1.0f}, {1.0f}};
  for (size_t i = 0; i < 3; ++i)
    members.ops[i].send = reinterpret_cast<const std::byte*>(members.send[i].data());
  EXPECT_EQ(members.Run(2), std::vector<float>{16777216.0f});
}

TEST(RunCollective, InPlaceReduceScatterKeepsOtherSlices) {
  Members members({Op(SPF_REDUCE_SCATTER, 2), Op(SPF_REDUCE_SCATTER, 2)});
  members.ops[1].recv = reinterpret_cast<std::byte*>(members.send[1].data() + 2);
  members.Run(1);
  EXPECT_EQ(members.send[1], (std::vector<float>{100, 101, 2 + 102, 3 + 103}));
}

TEST(RunCollective, AMemberThatIsNotThereLeavesItsSlice) {
  Members members({Op(SPF_ALL_GATHER, 1), Op(SPF_ALL_GATHER, 1)});
  std::vector<MemberData> all{{&members.ops[0], members.ops[0].send}, {}};
  RunCollective(all, 0);
  EXPECT_EQ(members.recv[0], (std::vector<float>{0, -1}));
}

TEST(RunCollective, ShorterContributionsAreNotReadBeyondTheirEnd) {
  Members members({Op(SPF_ALL_GATHER, 3), Op(SPF_ALL_GATHER, 1)});
  EXPECT_EQ(members.Run(0), (std::vector<float>{0, 1, 2, 100, -1, -1}));
  EXPECT_EQ(members.Run(1), (std::vector<float>{0, 100}));
}

TEST(RunCollective, OtherKindsAtTheSamePlaceDoNotReadOutOfBounds) {
  const std::vector<CommOp> any{Op(SPF_ALL_GATHER, 3),     Op(SPF_REDUCE_SCATTER, 5),
                                Op(SPF_ALL_REDUCE, 7),     Op(SPF_BROADCAST, 2),
                                AllToAll({9}, {4, 4, 4}),  AllToAll({}, {}),
                                Op(SPF_ALL_GATHER_V, 100), Op(0, 9)};
  for (const CommOp& a : any) {
    for (const CommOp& b : any) {
      for (const CommOp& c : any) {
        Members members({a, b, c});
        for (int32_t me = 0; me < 3; ++me) members.Run(me);
      }
    }
  }
}

TEST(NeedsPeer, OnlyThoseWhoseDataTheResultNeeds) {
  EXPECT_TRUE(NeedsPeer(Op(SPF_ALL_GATHER, 1), 0, 1, 3));
  EXPECT_FALSE(NeedsPeer(Op(SPF_ALL_GATHER, 0), 0, 1, 3));
  CommOp broadcast = Op(SPF_BROADCAST, 4);
  broadcast.peer = 2;
  EXPECT_TRUE(NeedsPeer(broadcast, 0, 2, 3));
  EXPECT_FALSE(NeedsPeer(broadcast, 0, 1, 3));
  EXPECT_FALSE(NeedsPeer(broadcast, 2, 0, 3));
  EXPECT_TRUE(NeedsPeer(AllToAll({0, 5, 0}, {0, 0, 1}), 0, 2, 3));
  EXPECT_FALSE(NeedsPeer(AllToAll({0, 5, 0}, {0, 0, 1}), 0, 1, 3));
}

TEST(Mismatch, NamesWhatDiffers) {
  EXPECT_EQ(Mismatch(Op(SPF_ALL_REDUCE, 2), 0, Op(SPF_ALL_REDUCE, 2), 1, 2), "");
  EXPECT_NE(Mismatch(Op(SPF_ALL_REDUCE, 2), 0, Op(SPF_ALL_REDUCE, 3), 1, 2), "");
  EXPECT_EQ(Mismatch(AllToAll({1, 2}, {1, 3}), 0, AllToAll({3, 0}, {2, 0}), 1, 2), "");
  EXPECT_NE(Mismatch(AllToAll({1, 2}, {1, 3}), 0, AllToAll({2, 0}, {2, 0}), 1, 2), "");
}

}  // namespace
}  // namespace shardproof
