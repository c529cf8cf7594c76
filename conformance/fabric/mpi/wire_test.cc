#include "conformance/fabric/mpi/wire.h"

#include <gtest/gtest.h>

#include <cstring>

namespace shardproof::mpi {
namespace {

CommOp AllToAll() {
  CommOp op;
  op.kind = SPF_ALL_TO_ALL_V;
  op.dtype = SPF_F32;
  op.send_counts = {1, 2};
  op.recv_counts = {3, 2};
  return op;
}

TEST(Wire, MessageComesBackAsWritten) {
  const CommOp op = AllToAll();
  WireHeader header;
  header.epoch = 7;
  SetShape(op, &header);
  const float payload[2] = {1.5F, 2.5F};
  header.payload = sizeof payload;
  std::vector<std::byte> bytes(MessageBytes(header));
  WriteMessage(header, &op, reinterpret_cast<const std::byte*>(payload), bytes.data());
  const auto read = ReadMessage(bytes.data(), bytes.size());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->header.epoch, 7U);
  EXPECT_EQ(read->op.send_counts, op.send_counts);
  EXPECT_EQ(read->op.recv_counts, op.recv_counts);
  EXPECT_EQ(std::memcmp(read->payload, payload, sizeof payload), 0);
}

TEST(Wire, WrongLengthIsNoMessage) {
  WireHeader header;
  std::vector<std::byte> bytes(MessageBytes(header) + 1);
  WriteMessage(header, nullptr, nullptr, bytes.data());
  EXPECT_TRUE(ReadMessage(bytes.data(), bytes.size() - 1));
  EXPECT_FALSE(ReadMessage(bytes.data(), bytes.size()));
  EXPECT_FALSE(ReadMessage(bytes.data(), 3));
}

TEST(Wire, PeerGetsItsPieceOnly) {
  const PayloadRange range = PayloadFor(AllToAll(), 0, 1, 2);
  EXPECT_EQ(range.offset, 4U);
  EXPECT_EQ(range.bytes, 8U);
  CommOp scatter;
  scatter.kind = SPF_REDUCE_SCATTER;
  scatter.dtype = SPF_BF16;
  scatter.count = 10;
  EXPECT_EQ(PayloadFor(scatter, 0, 3, 4).offset, 60U);
}

TEST(Wire, ShortAnswerOfAPeerIsNotReadBeyondItsEnd) {
  float recv[4] = {-1, -1, -1, -1};
  const float own[2] = {1, 2}, theirs[1] = {9};
  CommOp op;
  op.kind = SPF_ALL_GATHER;
  op.dtype = SPF_F32;
  op.count = 2;
  op.send = reinterpret_cast<const std::byte*>(own);
  op.recv = reinterpret_cast<std::byte*>(recv);
  WireMessage peer;
  peer.header.payload = sizeof theirs;
  peer.payload = reinterpret_cast<const std::byte*>(theirs);
  FinishCollective(op, 0, {nullptr, &peer});
  EXPECT_EQ(recv[0], 1);
  EXPECT_EQ(recv[1], 2);
  EXPECT_EQ(recv[2], 9);
  EXPECT_EQ(recv[3], -1);
}

}  // namespace
}  // namespace shardproof::mpi
