// Every kind, dtype, size and policy against closed forms; values are unique per (rank, index).
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/run_collective.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
using wire::FromBf16, wire::FromF16, wire::ToBf16, wire::ToF16;
namespace {

// Small integers are exact in every dtype: sums of the test stay below 128 (u8), 256 (bf16).
int Value(int rank, uint64_t index) {
  return (rank * 3 + static_cast<int>(index % 11)) % 13 % 2 + (rank + static_cast<int>(index)) % 2;
}

void Store(std::byte* at, uint64_t i, int32_t dtype, int value) {
  const auto put = [&](auto typed) { std::memcpy(at + i * sizeof typed, &typed, sizeof typed); };
  switch (dtype) {
    case SPF_U8:
      return put(static_cast<uint8_t>(value));
    case SPF_I32:
      return put(static_cast<int32_t>(value));
    case SPF_I64:
      return put(static_cast<int64_t>(value));
    case SPF_BF16:
      return put(ToBf16(static_cast<float>(value)));
    case SPF_F16:
      return put(ToF16(static_cast<float>(value)));
    case SPF_F32:
      return put(static_cast<float>(value));
    default:
      return put(static_cast<double>(value));
  }
}

double Load(const std::byte* at, uint64_t i, int32_t dtype) {
  const auto get = [&](auto typed) {
    std::memcpy(&typed, at + i * sizeof typed, sizeof typed);
    return typed;
  };
  switch (dtype) {
    case SPF_U8:
      return get(uint8_t{});
    case SPF_I32:
      return get(int32_t{});
    case SPF_I64:
      return static_cast<double>(get(int64_t{}));
    case SPF_BF16:
      return FromBf16(get(uint16_t{}));
    case SPF_F16:
      return FromF16(get(uint16_t{}));
    case SPF_F32:
      return get(float{});
    default:
      return get(double{});
  }
}

// How many elements rank sends to peer in the v-collectives: 0 for some pairs.
uint64_t PieceOf(int rank, int peer, uint64_t count) {
  return count == 0 ? 0 : (static_cast<uint64_t>(rank + 2 * peer) + count) % 4;
}

CommOp MakeOp(int32_t kind, int32_t dtype, int me, int n, uint64_t count) {
  CommOp op;
  op.kind = kind;
  op.dtype = dtype;
  op.count = kind == SPF_ALL_TO_ALL_V || kind == SPF_ALL_GATHER_V ? 0 : count;
  for (int peer = 0; peer < n; ++peer) {
    if (kind == SPF_ALL_TO_ALL_V) op.send_counts.push_back(PieceOf(me, peer, count));
    if (kind == SPF_ALL_TO_ALL_V) op.recv_counts.push_back(PieceOf(peer, me, count));
    if (kind == SPF_ALL_GATHER_V) op.recv_counts.push_back(PieceOf(peer, 0, count));
  }
  if (kind == SPF_BROADCAST) op.peer = n / 2;
  return op;
}

uint64_t Before(const std::vector<uint64_t>& counts, int n) {
  return std::accumulate(counts.begin(), counts.begin() + n, uint64_t{0});
}

// What recv[i] of member me must be.
double Expected(int32_t kind, int me, int n, uint64_t count, uint64_t i) {
  const auto sum = [&](uint64_t index) {
    double total = 0;
    for (int rank = 0; rank < n; ++rank) total += Value(rank, index);
    return total;
  };
  if (kind == SPF_ALL_GATHER) return Value(static_cast<int>(i / count), i % count);
  if (kind == SPF_REDUCE_SCATTER) return sum(static_cast<uint64_t>(me) * count + i);
  if (kind == SPF_ALL_REDUCE) return sum(i);
  if (kind == SPF_BROADCAST) return Value(n / 2, i);
  const CommOp op = MakeOp(kind, SPF_F32, me, n, count);
  int peer = 0;
  while (i >= op.recv_counts[static_cast<size_t>(peer)])
    i -= op.recv_counts[static_cast<size_t>(peer++)];
  if (kind == SPF_ALL_GATHER_V) return Value(peer, i);
  return Value(peer, Before(MakeOp(kind, SPF_F32, peer, n, count).send_counts, me) + i);
}

using Shape = std::tuple<int32_t, int32_t, int>;  // kind, dtype, world

class CollectivesTest : public ::testing::TestWithParam<Shape> {};

// Runs it on every rank and returns how many elements were right; in place where the kind knows it.
void RunOne(int32_t kind, int32_t dtype, int n, uint64_t count, bool in_place,
            const SimOptions& options) {
  int64_t checked = 0, expected = 0;
  const SimResult result = RunSim(n, options, [&](Fabric& f) {
    const int me = f.rank();
    const int32_t stream = f.CreateStream("comm", 0);
    CommOp op = MakeOp(kind, dtype, me, n, count);
    const uint64_t width = DtypeBytes(dtype), sent = SendBytes(op, me, n),
                   received = RecvBytes(op, me, n);
    // Others' bytes must not travel.
    const uint64_t fill = kind == SPF_BROADCAST ? count * width : sent;
    Block send = f.Alloc(stream, std::max(fill, received), false), recv = send;
    std::byte *from = send.host, *to = send.host;
    if (!in_place) {
      recv = f.Alloc(stream, received, false);
      to = recv.host;
    } else if (kind == SPF_ALL_GATHER) {
      from += static_cast<uint64_t>(me) * sent;
    } else if (kind == SPF_ALL_GATHER_V) {
      from += Before(op.recv_counts, me) * width;
    } else if (kind == SPF_REDUCE_SCATTER) {
      to += static_cast<uint64_t>(me) * received;
    }
    f.Enqueue(stream, "fill", [=] {
      for (uint64_t i = 0; i < fill / width; ++i) Store(from, i, dtype, Value(me, i));
    });
    op.group = f.OpenGroup("world", Everybody(n));
    op.stream = stream;
    op.send = from;
    op.recv = to;
    f.Communicate({op});
    f.Enqueue(stream, "check", [&, to, width, received, me] {
      for (uint64_t i = 0; i < received / width; ++i) {
        ++expected;
        checked += Load(to, i, dtype) == Expected(kind, me, n, count, i);
      }
    });
    EXPECT_EQ(f.SyncStream(stream), SPF_OK);
    f.Free(stream, send);
    if (!in_place) f.Free(stream, recv);
  });
  EXPECT_EQ(checked, expected) << "count " << count << " policy "
                               << static_cast<int>(options.policy);
  EXPECT_FALSE(result.deadlock);
  EXPECT_TRUE(result.mismatches.empty());
  for (const int32_t live : result.live_blocks) EXPECT_EQ(live, 0);
}

TEST_P(CollectivesTest, MatchesTheClosedForm) {
  const auto [kind, dtype, n] = GetParam();
  for (const TimingPolicy policy : kTimingPolicies) {
    for (const uint64_t count : {0u, 1u, 5u, 130u}) {
      RunOne(kind, dtype, n, count, false, With(policy, count + 1));
      if (kind != SPF_ALL_TO_ALL_V) RunOne(kind, dtype, n, count, true, With(policy, count + 2));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         ::testing::Combine(::testing::Values(SPF_ALL_GATHER, SPF_ALL_GATHER_V,
                                                              SPF_REDUCE_SCATTER, SPF_ALL_REDUCE,
                                                              SPF_BROADCAST, SPF_ALL_TO_ALL_V),
                                            ::testing::Values(SPF_U8, SPF_I32, SPF_I64, SPF_BF16,
                                                              SPF_F16, SPF_F32, SPF_F64),
                                            ::testing::Values(1, 2, 3, 8)));

TEST(Collectives, SixtyFourRanks) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (const int32_t kind : {SPF_ALL_GATHER, SPF_REDUCE_SCATTER, SPF_ALL_TO_ALL_V}) {
      RunOne(kind, SPF_I32, 64, 3, false, With(policy));
    }
  }
}

TEST(Collectives, AverageScalesEachContributionBeforeTheSum) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(3, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t stream = f.CreateStream("comm", 0);
      const Block block = p.Floats(stream, 1);
      const float third = 1.0f / 3.0f;
      p.Fill(stream, block, static_cast<float>(f.rank() + 5));
      CommOp op = p.Op(SPF_ALL_REDUCE, p.world, stream, block, block, 1);
      op.reduction = SPF_AVG;
      f.Communicate({op});
      std::vector<float> got;
      p.Read(stream, block, &got);
      EXPECT_EQ(f.SyncStream(stream), SPF_OK);
      EXPECT_EQ(got, std::vector<float>{(5 * third + 6 * third) + 7 * third});
    });
    EXPECT_FALSE(result.deadlock);
  }
}

TEST(Collectives, MessagesGoFirstInFirstOutPerPairOfMembers) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const SimResult result = RunSim(3, With(policy, seed), [](Fabric& f) {
        Program p(f);
        const int32_t stream = f.CreateStream("comm", 0);
        const int me = f.rank();
        std::vector<Block> out, in;
        std::vector<std::vector<float>> got(4);
        std::vector<CommOp> ops;
        for (int i = 0; i < 4; ++i) {  // two messages to each of the others
          const int peer = (me + 1 + i / 2) % 3;
          out.push_back(p.Floats(stream, 2));
          in.push_back(p.Floats(stream, 2));
          p.Fill(stream, out.back(), static_cast<float>(100 * me + 10 * peer + i % 2));
          ops.push_back(p.Op(SPF_SEND, p.world, stream, out.back(), {}, 2, peer));
          ops.push_back(p.Op(SPF_RECV, p.world, stream, {}, in.back(), 2, peer));
        }
        f.Communicate(ops);
        for (size_t i = 0; i < 4; ++i) p.Read(stream, in[i], &got[i]);
        EXPECT_EQ(f.SyncStream(stream), SPF_OK);
        for (int i = 0; i < 4; ++i) {
          const int peer = (me + 1 + i / 2) % 3;
          const auto value = static_cast<float>(100 * peer + 10 * me + i % 2);
          EXPECT_EQ(got[static_cast<size_t>(i)], (std::vector<float>{value, value}));
        }
      });
      EXPECT_FALSE(result.deadlock);
      EXPECT_TRUE(result.mismatches.empty());
    }
  }
}

TEST(Collectives, OperationsThatDoNotMatchAreNotedAndDoNotCrash) {
  for (const TimingPolicy policy : kTimingPolicies) {
    const SimResult result = RunSim(2, With(policy), [](Fabric& f) {
      Program p(f);
      const int32_t stream = f.CreateStream("comm", 0);
      const Block a = p.Floats(stream, 4), b = p.Floats(stream, 64);
      p.Fill(stream, a, 1);
      if (f.rank() == 0) {
        f.Communicate({p.Op(SPF_ALL_GATHER, p.world, stream, a, b, 4)});
      } else {
        f.Communicate({p.Op(SPF_ALL_REDUCE, p.world, stream, a, b, 3)});
      }
      EXPECT_EQ(f.SyncStream(stream), SPF_OK);
    });
    ASSERT_EQ(result.mismatches.size(), 1u);
    EXPECT_NE(result.mismatches[0].find("communicator world, collective #0: rank "),
              std::string::npos);
    EXPECT_NE(result.mismatches[0].find("all_gather"), std::string::npos);
    EXPECT_NE(result.mismatches[0].find("all_reduce"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardproof
