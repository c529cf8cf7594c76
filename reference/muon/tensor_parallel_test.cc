#include "reference/muon/tensor_parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace reference {
namespace {

constexpr TpSplit kRows{0, 4, 1}, kCols{1, 4, 1};

std::vector<Operand> PartialOnes(const NewtonSchulzPlan& plan) {
  std::vector<Operand> partial;
  if (plan.squares.partial) partial.push_back(plan.squares.spans.back().operand);
  for (const PlannedLaunch& launch : plan.iterate) {
    if (launch.partial) partial.push_back(launch.spans.back().operand);
  }
  return partial;
}

ShardPlan PlanOf(MuonTpMode mode, const TpSplit& split, int64_t rows, int64_t cols) {
  return PlanShard(mode, split, rows, cols, StepsOf(Coefficients::kQuintic, 5), 0.5, SPF_F32);
}

TEST(PlanShard, OneRankInFourHoldsPartOfTheRowsOrOfTheColumns) {
  EXPECT_TRUE(kRows.splits());
  EXPECT_FALSE(TpSplit{}.splits());
  EXPECT_FALSE((TpSplit{-1, 4, 1}.splits())) << "every rank has all of it";
  EXPECT_FALSE((TpSplit{0, 1, 0}.splits())) << "there is nobody else";
}

TEST(PlanShard, DuplicatedIsTheWholeMatrixAndSumsNothing) {
  for (const TpSplit& split : {kRows, kCols}) {
    const ShardPlan plan = PlanOf(MuonTpMode::kDuplicated, split, 3, 20);
    EXPECT_TRUE(plan.gather);
    EXPECT_EQ(plan.newton_schulz.rows, split.dim == 0 ? 12 : 3);
    EXPECT_EQ(plan.newton_schulz.cols, split.dim == 1 ? 80 : 20);
    EXPECT_EQ(plan.newton_schulz.side, std::min(plan.newton_schulz.rows, plan.newton_schulz.cols));
    EXPECT_EQ(plan.scale_rows, plan.newton_schulz.rows);
    EXPECT_EQ(plan.scale_cols, plan.newton_schulz.cols);
    EXPECT_TRUE(PartialOnes(plan.newton_schulz).empty());
  }
}

TEST(PlanShard, DistributedContractsTheSplitSideAndAddsUpTheNormAndEachGramMatrix) {
  const struct {
    TpSplit split;
    int64_t rows, cols, side, inner;
  } shards[] = {{kRows, 3, 20, 20, 3},   // whole: 12 x 20, the other side is the longer one
                {kRows, 20, 3, 3, 20},   // 80 x 3
                {kCols, 20, 3, 20, 3},   // 20 x 12, again the longer one
                {kCols, 3, 20, 3, 20}};  // 3 x 80
  for (const auto& shard : shards) {
    const ShardPlan plan = PlanOf(MuonTpMode::kDistributed, shard.split, shard.rows, shard.cols);
    const NewtonSchulzPlan& steps = plan.newton_schulz;
    EXPECT_FALSE(plan.gather);
    EXPECT_EQ(steps.rows, shard.rows);
    EXPECT_EQ(steps.cols, shard.cols);
    EXPECT_EQ(steps.side, shard.side);
    EXPECT_EQ(plan.scale_rows, shard.rows * (shard.split.dim == 0 ? 4 : 1));
    EXPECT_EQ(plan.scale_cols, shard.cols * (shard.split.dim == 1 ? 4 : 1));
    std::vector<Operand> expected(6, Operand::kGram);
    expected.front() = Operand::kSquares;
    EXPECT_EQ(PartialOnes(steps), expected);
    const bool rows = shard.split.dim == 0;
    const auto side = static_cast<double>(shard.side), inner = static_cast<double>(shard.inner),
               m = static_cast<double>(shard.rows), n = static_cast<double>(shard.cols);
    EXPECT_EQ(steps.iterate.front().scalars,
              (std::vector<double>{side, side, inner, rows ? 1.0 : 0.0, rows ? 0.0 : 1.0, 1, 0}));
    EXPECT_EQ(steps.iterate.back().spans[0].operand, rows ? Operand::kX : Operand::kMixed)
        << "X B for split rows, B X for split columns";
    EXPECT_EQ(std::vector<double>(steps.iterate.back().scalars.begin(),
                                  steps.iterate.back().scalars.begin() + 3),
              (std::vector<double>{m, n, side}));
  }
}

TEST(PlanShard, WithoutTheFifthPowerTheGramMatrixIsStillASum) {
  const ShardPlan plan = PlanShard(MuonTpMode::kDistributed, kRows, 3, 20,
                                   StepsOf(Coefficients::kCubic5, 5), 0, SPF_BF16);
  EXPECT_EQ(PartialOnes(plan.newton_schulz).size(), 6u);
  EXPECT_EQ(plan.newton_schulz.dtype, SPF_BF16);
}

TEST(PlanShard, BlockwiseIsTheShardByItself) {
  const ShardPlan plan = PlanOf(MuonTpMode::kBlockwise, kRows, 3, 20);
  EXPECT_FALSE(plan.gather);
  EXPECT_EQ(plan.newton_schulz.side, 3);
  EXPECT_EQ(plan.scale_rows, 3);
  EXPECT_EQ(plan.scale_cols, 20);
  EXPECT_TRUE(PartialOnes(plan.newton_schulz).empty());
}

TEST(PiecesOfShards, WholeGroupsOnEachRank) {
  // Four groups of two query rows, one key row, one value row.
  EXPECT_EQ(PiecesOfShard("w", 8, 4, {2, 1, 1}, {0, 2, 0}),
            (std::vector<MatrixPiece>{{{0, 2}, {4, 2}}, {{2, 1}, {6, 1}}, {{3, 1}, {7, 1}}}));
  EXPECT_EQ(PiecesOfShard("w", 16, 4, {2, 1, 1}, {1, 2, 0}).front().size(), 4u)
      << "split by columns every rank has all groups";
  EXPECT_EQ(PiecesOfShard("w", 10, 4, {2, 1, 1, 1}, {0, 2, 1}).size(), 4u) << "with a gate";
}

TEST(PiecesOfShards, AGroupThatIsCutIsRefusedByName) {
  const auto message = [](int64_t rows, int64_t groups, const TpSplit& split) {
    try {
      PiecesOfShard("layers.0.attention.qkv.weight", rows, groups, {4, 1, 1}, split);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message(6, 2, {0, 2, 0}), "accepted");
  // Three rows each: they divide by three and are no Q, K and V all the same.
  const std::string cut = message(3, 2, {0, 4, 0});
  EXPECT_NE(cut.find("layers.0.attention.qkv.weight"), std::string::npos) << cut;
  EXPECT_NE(cut.find("4 ranks cut one of its 2 groups"), std::string::npos) << cut;
  const std::string wrong = message(7, 2, {0, 2, 0});
  EXPECT_NE(wrong.find("layers.0.attention.qkv.weight: 7 rows"), std::string::npos) << wrong;
}

TEST(PiecesOfShards, OfATableQkvIsAThirdOfTheRowsOfEachHeadOrRank) {
  const spf_module modules[] = {{-1, "model", "Model"}, {0, "layers.0.attention.qkv", "Linear"}};
  spf_param params[2]{};
  params[0].name = "layers.0.attention.qkv.weight", params[1].name = "other";
  params[0].module = 1, params[0].shape[0] = 6, params[1].shape[0] = 6;
  spf_model model{};
  model.n_modules = 2, model.modules = modules, model.n_params = 2, model.params = params;
  const std::vector<MatrixPiece> thirds{{{0, 2}}, {{2, 2}}, {{4, 2}}}, whole{{{0, 6}}};
  const std::vector<MatrixPiece> of_heads{{{0, 1}, {3, 1}}, {{1, 1}, {4, 1}}, {{2, 1}, {5, 1}}};
  EXPECT_EQ(PiecesOf(model, 0, {.heads = 2}), of_heads);
  EXPECT_EQ(PiecesOf(model, 0, {.heads = 8}, kRows), of_heads) << "two of eight heads";
  EXPECT_EQ(PiecesOf(model, 0, {.heads = 4}, kRows), thirds);
  EXPECT_THROW(PiecesOf(model, 0, {.heads = 2}, kRows), std::invalid_argument);
  for (const TpSplit& split : {kRows, kCols}) {
    EXPECT_EQ(PiecesOf(model, 0, {}, split), thirds);
    EXPECT_EQ(PiecesOf(model, 0, {.split_qkv = false}, split), whole);
    EXPECT_EQ(PiecesOf(model, 1, {}, split), whole);
  }
  params[0].shape[0] = 8;
  try {
    PiecesOf(model, 0, {}, kRows);
    ADD_FAILURE() << "8 rows are no Q, K and V";
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find("layers.0.attention.qkv.weight: "), 0u);
  }
}

TEST(ShardElements, ColumnsAreInterleavedRowByRow) {
  EXPECT_TRUE(PutTogether(kRows, 2, 3).empty()) << "rows lie in rank order";
  EXPECT_EQ(PutTogether({1, 2, 0}, 2, 3),
            (std::vector<BlockMove>{{0, 0, 3}, {3, 6, 3}, {6, 3, 3}, {9, 9, 3}}));
}

TEST(ShardElements, OwnPartIsWhatThisRankSent) {
  EXPECT_EQ(OwnPart({0, 2, 1}, {{0, 2}}, 3), (std::vector<BlockMove>{{6, 0, 6}}));
  EXPECT_EQ(OwnPart({0, 2, 1}, {{1, 1}, {3, 2}}, 3),
            (std::vector<BlockMove>{{9, 3, 3}, {12, 9, 6}}));
  EXPECT_EQ(OwnPart({1, 2, 1}, {{0, 1}, {4, 1}}, 3),
            (std::vector<BlockMove>{{3, 0, 3}, {9, 12, 3}}));
  EXPECT_EQ(OwnPart({}, {{1, 2}}, 3), (std::vector<BlockMove>{{0, 3, 6}}));
}

// Numbered elements, cut into shards, gathered and put together, give the matrix; and each rank
// finds its shard in it.
TEST(ShardElements, ThereAndBack) {
  const int64_t rows = 6, cols = 8;
  for (const int32_t dim : {0, 1}) {
    const int32_t ranks = 2;
    const int64_t r = dim == 0 ? rows / ranks : rows, c = dim == 1 ? cols / ranks : cols;
    std::vector<int64_t> gathered;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (int64_t i = 0; i < r * c; ++i) {
        const int64_t row = i / c + (dim == 0 ? rank * r : 0),
                      col = i % c + (dim == 1 ? rank * c : 0);
        gathered.push_back(row * cols + col);
      }
    }
    std::vector<int64_t> whole = gathered, expected(gathered.size());
    std::iota(expected.begin(), expected.end(), 0);
    for (const BlockMove& move : PutTogether({dim, ranks, 0}, r, c))
      std::copy_n(gathered.begin() + move.from, move.count, whole.begin() + move.to);
    EXPECT_EQ(whole, expected);
    for (int32_t rank = 0; rank < ranks; ++rank) {
      std::vector<int64_t> shard(static_cast<size_t>(r * c), -1);
      for (const BlockMove& move : OwnPart({dim, ranks, rank}, {{0, r}}, c))
        std::copy_n(whole.begin() + move.from, move.count, shard.begin() + move.to);
      EXPECT_EQ(shard, std::vector<int64_t>(gathered.begin() + rank * r * c,
                                            gathered.begin() + (rank + 1) * r * c));
    }
  }
}

}  // namespace
}  // namespace reference
