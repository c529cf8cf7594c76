// Muon on shards of matrices: what tensor-parallel ranks send, over which group, and that no timing
// changes a result.
#include <gtest/gtest.h>

#include "property_tests/tp_requests.h"

namespace shardproof {
namespace {

TEST(TpMuonTraffic, WhatIsNotSplitIsNotSent) {
  for (const char* mode : kTpModes) {
    TpRequest request = RequestOf(Rule(), mode, 4, 1, 3);
    for (TpMatrix& matrix : request.matrices) matrix.dim = -1;
    const TpAnswer answer = StepAll(request);
    for (const TpRank& rank : answer.ranks) EXPECT_TRUE(rank.operations.empty()) << mode;
    for (size_t i = 0; i < request.matrices.size(); ++i) {
      ExpectSame(HeldOf(request, answer, i).whole, StepWhole(Rule(), request.matrices[i], 4),
                 What(request, i));
    }
  }
}

std::vector<TpOperation> SentBy(const std::string& mode, const std::vector<TpMatrix>& matrices,
                                const MuonRule& rule = Rule()) {
  TpRequest request;
  request.tp = 4, request.expert_tp = 2;
  request.knobs = KnobsOf(rule, mode);
  request.matrices = matrices;
  const TpAnswer answer = StepAll(request);
  for (const TpRank& rank : answer.ranks)
    EXPECT_EQ(rank.operations, answer.ranks.front().operations) << "ranks send alike";
  return answer.ranks.front().operations;
}

TEST(TpMuonTraffic, DuplicatedGathersEachPieceOnce) {
  EXPECT_EQ(SentBy("duplicated", {MatrixOf(24, 48, 1, 1, 1), MatrixOf(24, 48, -1, 1, 1)}),
            (std::vector<TpOperation>{{SPF_ALL_GATHER, SPF_F32, 24 * 48 / 4, "tp"}}));
  const TpOperation third{SPF_ALL_GATHER, SPF_F32, 24 * 24 / 4, "tp"};
  for (const int32_t dim : {0, 1}) {
    EXPECT_EQ(SentBy("duplicated", {Qkv(MatrixOf(72, 24, dim, 1, 1))}),
              (std::vector<TpOperation>{third, third, third}));
  }
}

TEST(TpMuonTraffic, DistributedSendsTheNormAndTheGramMatricesOfTheOtherSide) {
  for (const bool bf16 : {false, true}) {
    MuonRule rule = Rule();
    rule.bf16 = bf16;
    for (const auto& [dim, side] : {std::pair{0, 48}, {1, 24}}) {
      std::vector<TpOperation> expected(
          6, {SPF_ALL_REDUCE, bf16 ? SPF_BF16 : SPF_F32, side * side, "tp"});
      expected.front() = {SPF_ALL_REDUCE, SPF_F64, 1, "tp"};
      EXPECT_EQ(SentBy("distributed", {MatrixOf(24, 48, dim, 1, 1)}, rule), expected) << dim;
    }
  }
}

TEST(TpMuonTraffic, BlockwiseSendsNothing) {
  EXPECT_TRUE(SentBy("blockwise", {MatrixOf(24, 48, 0, 1, 1), MatrixOf(24, 48, 1, 1, 1)}).empty());
}

TEST(TpMuonTraffic, ExpertsAreSplitOverAGroupOfTheirOwn) {
  TpMatrix expert = MatrixOf(24, 48, 1, 1, 1);
  expert.expert = true;
  const TpMatrix dense = MatrixOf(24, 48, 1, 1, 2);
  EXPECT_EQ(SentBy("duplicated", {expert, dense}),
            (std::vector<TpOperation>{{SPF_ALL_GATHER, SPF_F32, 24 * 48 / 2, "expt_tp"},
                                      {SPF_ALL_GATHER, SPF_F32, 24 * 48 / 4, "tp"}}));
  TpRequest request;
  request.tp = 4, request.expert_tp = 2;
  request.knobs = KnobsOf(Rule(), "duplicated");
  request.matrices = {expert, dense};
  const TpAnswer answer = StepAll(request);
  ExpectSame(HeldOf(request, answer, 0).whole, StepWhole(Rule(), expert, 2), "expert");
  ExpectSame(HeldOf(request, answer, 1).whole, StepWhole(Rule(), dense, 4), "dense");
}

TEST(TpMuonTraffic, NoTimingChangesABit) {
  for (const char* mode : kTpModes) {
    TpRequest request = RequestOf(Rule(), mode, 3, 2, 3);
    const TpAnswer usual = StepAll(request);
    request.sim.drift = true;
    for (const TimingPolicy policy : {TimingPolicy::kLazyComm, TimingPolicy::kRandom,
                                      TimingPolicy::kPct, TimingPolicy::kLazyCompute}) {
      request.sim.policy = policy;
      request.sim.queues = policy == TimingPolicy::kPct ? 1 : 0;
      const TpAnswer other = StepAll(request);
      for (size_t r = 0; r < other.ranks.size(); ++r) {
        EXPECT_TRUE(other.ranks[r].weights == usual.ranks[r].weights) << mode;
        EXPECT_TRUE(other.ranks[r].momenta == usual.ranks[r].momenta) << mode;
      }
    }
  }
}

// Layer-wise: each data-parallel rank steps matrices of its own, so its tp group sends other things
// than the next one's.
TEST(TpMuonTraffic, TpGroupsOfDifferentOwnersDoNotMeet) {
  for (const char* mode : {"duplicated", "distributed"}) {
    TpRequest request = RequestOf(Rule(), mode, 2);
    request.dp = 2;
    TpRequest alone = request;
    const TpAnswer all = StepAll(request);
    request.dealt = true;
    const TpAnswer dealt = StepAll(request);
    for (size_t i = 0; i < request.matrices.size(); ++i) {
      ExpectSame(HeldOf(request, dealt, i).whole, HeldOf(alone, all, i).whole, What(request, i));
      EXPECT_EQ(dealt.ranks[i % 2 == 0 ? 2 : 0].weights[i].size(), 0u);
    }
    EXPECT_NE(dealt.ranks[0].operations, dealt.ranks[2].operations);
  }
}

TEST(TpMuonTraffic, RowsThatAreNoThirdsAreRefusedByNameBeforeAnythingIsSent) {
  TpRequest request;
  request.tp = 2;
  request.knobs = KnobsOf(Rule(), "duplicated");
  request.matrices = {Qkv(MatrixOf(16, 8, 0, 1, 1))};
  const TpAnswer answer = StepOnTpRanks(request);
  EXPECT_NE(answer.wrong.find("layers.0.0.attention.qkv.weight: 8 rows"), std::string::npos)
      << answer.wrong;
  for (const TpRank& rank : answer.ranks) EXPECT_TRUE(rank.operations.empty());
}

}  // namespace
}  // namespace shardproof
