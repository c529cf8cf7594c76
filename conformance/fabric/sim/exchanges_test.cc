// Token dispatch and pipelines: pieces of nothing, counts that do not agree, messages both ways.
#include <gtest/gtest.h>

#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

// Rows that nobody sends, ranks that get none, and everything to one rank.
TEST(Exchanges, AllToAllVWithWholeRanksOfNothing) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (int n = 1; n <= 8; ++n) {
      for (int to = -1; to < n; ++to) {  // -1: nobody sends anything
        const SimResult result = RunSim(n, With(policy), [&](Fabric& f) {
          Program p(f);
          const int32_t stream = f.CreateStream("a2a", 0);
          const auto count = static_cast<uint64_t>(to < 0 ? 0 : 3);
          Block out, in;
          if (count > 0) out = p.Floats(stream, count);
          if (f.rank() == to) in = p.Floats(stream, count * static_cast<uint64_t>(n));
          if (count > 0) p.Fill(stream, out, static_cast<float>(f.rank() + 1));
          CommOp op = p.Op(SPF_ALL_TO_ALL_V, p.world, stream, out, in, 0);
          for (int peer = 0; peer < n; ++peer) {
            op.send_counts.push_back(peer == to ? count : 0);
            op.recv_counts.push_back(f.rank() == to ? count : 0);
          }
          f.Communicate({op});
          std::vector<float> got;
          if (f.rank() == to) p.Read(stream, in, &got);
          EXPECT_EQ(f.SyncStream(stream), SPF_OK);
          for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<float>(i / 3 + 1));
        });
        EXPECT_FALSE(result.deadlock);
        EXPECT_TRUE(result.mismatches.empty());
      }
    }
  }
}

// Who expects more, fewer or no rows gets what there is, no byte outside of either buffer moves,
// and it is noted.
TEST(Exchanges, AllToAllVWithUnequalCountsIsNotedAndKeepsToItsBuffers) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (const uint64_t expects : {0u, 1u, 5u}) {  // rank 0 sends 3 to rank 1
      const SimResult result = RunSim(2, With(policy), [&](Fabric& f) {
        Program p(f);
        const int32_t stream = f.CreateStream("a2a", 0);
        const Block out = p.Floats(stream, 4), in = p.Floats(stream, 16);
        p.Fill(stream, out, 7);
        p.Fill(stream, in, -1);
        CommOp op = p.Op(SPF_ALL_TO_ALL_V, p.world, stream, out, in, 0);
        op.send_counts = f.rank() == 0 ? std::vector<uint64_t>{1, 3} : std::vector<uint64_t>{2, 2};
        op.recv_counts =
            f.rank() == 0 ? std::vector<uint64_t>{1, 2} : std::vector<uint64_t>{expects, 2};
        f.Communicate({op});
        std::vector<float> got;
        p.Read(stream, in, &got);
        EXPECT_EQ(f.SyncStream(stream), SPF_OK);
        const uint64_t received = op.recv_counts[0] + op.recv_counts[1];
        for (uint64_t i = received; i < 16; ++i) EXPECT_EQ(got[i], -1.0f) << i;
        if (f.rank() == 1) {
          EXPECT_EQ(got[expects], 7.0f);  // its own piece lies where it expects it
        }
      });
      ASSERT_EQ(result.mismatches.size(), 1u);
      EXPECT_NE(result.mismatches[0].find("all_to_all_v"), std::string::npos)
          << result.mismatches[0];
      EXPECT_FALSE(result.deadlock);
    }
  }
}

// An interleaved pipeline's step: forward to the next, backward to the one before, all in one
// group; or each direction in a group and stream of its own.
TEST(Exchanges, PipelineNeighboursExchangeBothDirections) {
  for (const TimingPolicy policy : kTimingPolicies) {
    for (const bool together : {true, false}) {
      for (int n = 2; n <= 8; n += 3) {
        const SimResult result = RunSim(n, With(policy), [&](Fabric& f) {
          Program p(f);
          const int32_t forward = f.CreateStream("forward", 0),
                        backward = f.CreateStream("backward", 0);
          const int32_t back = together ? forward : backward;
          const int32_t back_group = together ? p.world : f.OpenGroup("back", Everybody(n));
          const int me = f.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
          const Block out = p.Floats(forward, 2), in = p.Floats(forward, 2),
                      dout = p.Floats(back, 3), din = p.Floats(back, 3);
          p.Fill(forward, out, static_cast<float>(me));
          p.Fill(back, dout, static_cast<float>(100 + me));
          std::vector<CommOp> ops = {p.Op(SPF_SEND, p.world, forward, out, {}, 2, next),
                                     p.Op(SPF_RECV, p.world, forward, {}, in, 2, before)};
          const std::vector<CommOp> others = {
              p.Op(SPF_RECV, back_group, back, {}, din, 3, next),
              p.Op(SPF_SEND, back_group, back, dout, {}, 3, before)};
          if (together) ops.insert(ops.end(), others.begin(), others.end());
          f.Communicate(ops);
          if (!together) f.Communicate(others);
          std::vector<float> got, dgot;
          p.Read(forward, in, &got);
          p.Read(back, din, &dgot);
          EXPECT_EQ(f.Drain(), SPF_OK);
          EXPECT_EQ(got, std::vector<float>(2, static_cast<float>(before)));
          EXPECT_EQ(dgot, std::vector<float>(3, static_cast<float>(100 + next)));
        });
        EXPECT_FALSE(result.deadlock);
        EXPECT_TRUE(result.mismatches.empty());
      }
    }
  }
}

}  // namespace
}  // namespace shardproof
