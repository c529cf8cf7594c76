// Muon on matrices whose shards lie on tensor-parallel ranks, against steps of whole matrices, of
// shards taken for matrices, and of Newton-Schulz on shards.
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "conformance/oracle/muon.h"
#include "conformance/oracle/random_matrix_for_test.h"

namespace shardproof {
namespace {

// Rows, or columns, from first on.
std::vector<float> Part(const std::vector<float>& whole, int64_t cols, int32_t dim, int64_t first,
                        int64_t count) {
  std::vector<float> part;
  for (int64_t i = 0; i < static_cast<int64_t>(whole.size()); ++i) {
    const int64_t at = dim == 0 ? i / cols : i % cols;
    if (at >= first && at < first + count) part.push_back(whole[static_cast<size_t>(i)]);
  }
  return part;
}

TEST(MuonShardsTest, GroupsOfRowsOfQueriesKeysAndValuesAreTakenTogether) {
  MuonRule rule;
  rule.lr = 0.5;
  // Two groups of three rows, Q K V Q K V, and the same rows sorted, Q Q K K V V.
  const std::vector<float> grad = Random(6, 5, 7);
  std::vector<float> sorted;
  for (const int64_t row : {0, 3, 1, 4, 2, 5})
    sorted.insert(sorted.end(), grad.begin() + 5 * row, grad.begin() + 5 * (row + 1));
  std::vector<float> momentum(30), weight(30), sorted_momentum(30), sorted_weight(30);
  UpdateMuon(rule, 1, {5, 6, 2}, grad, momentum, weight);
  UpdateMuon(rule, 1, {5, 6, 1}, sorted, sorted_momentum, sorted_weight);
  int64_t i = 0;
  for (const int64_t row : {0, 3, 1, 4, 2, 5})
    EXPECT_EQ(Part(weight, 5, 0, row, 1), Part(sorted_weight, 5, 0, i++, 1)) << row;
  EXPECT_THROW(UpdateMuon(rule, 1, {5, 6, 4}, grad, momentum, weight), std::invalid_argument);
}

TEST(MuonShardsTest, BlockwiseStepsEachShardAsAMatrix) {
  for (const int32_t dim : {0, 1}) {
    MuonRule rule, alone;
    rule.lr = alone.lr = 0.5;
    rule.tp = 2;
    rule.tp_mode = "blockwise";
    rule.scale_mode = alone.scale_mode = "unit_rms_norm";  // another one for a shard
    const std::vector<float> grad = Random(6, 8, 9);
    std::vector<float> momentum(48), weight(48);
    UpdateMuon(rule, 1, {8, 6, 0, dim}, grad, momentum, weight);
    const int64_t rows = dim == 0 ? 3 : 6, cols = dim == 1 ? 4 : 8;
    for (int64_t rank = 0; rank < 2; ++rank) {
      const int64_t count = dim == 0 ? rows : cols, first = rank * count;
      std::vector<float> own_momentum(24), own(24);
      UpdateMuon(alone, 1, {cols, rows}, Part(grad, 8, dim, first, count), own_momentum, own);
      EXPECT_EQ(Part(weight, 8, dim, first, count), own) << dim << " " << rank;
    }
    rule.tp_mode = "duplicated";
    std::vector<float> whole_momentum(48), whole(48);
    UpdateMuon(rule, 1, {8, 6, 0, dim}, grad, whole_momentum, whole);
    EXPECT_NE(whole, weight);
    std::vector<float> one_momentum(48), one(48);
    UpdateMuon(alone, 1, {8, 6}, grad, one_momentum, one);
    EXPECT_EQ(whole, one);
    rule.tp = 5;
    rule.tp_mode = "blockwise";
    EXPECT_THROW(UpdateMuon(rule, 1, {8, 6, 0, dim}, grad, momentum, weight),
                 std::invalid_argument);
  }
}

// Scale, decay and heads are those of the whole matrix; each shard is moved by its own result.
TEST(MuonShardsTest, DistributedMovesEachShardByItsPartOfTheMatrix) {
  for (const int32_t dim : {0, 1}) {
    MuonRule rule;
    rule.lr = 0.5;
    rule.weight_decay = 0.25;
    rule.scale_mode = "unit_rms_norm";
    rule.tp = 2;
    rule.tp_mode = "distributed";
    rule.bf16 = dim == 1;
    const std::vector<float> grad = Random(12, 8, 3), before = Random(12, 8, 4);
    std::vector<float> momentum(96), weight = before;
    // Two heads of six rows, Q Q K K V V each.
    UpdateMuon(rule, 1, {8, 12, 2, dim}, grad, momentum, weight);
    for (int64_t part = 0; part < 3; ++part) {
      std::vector<float> u, w;
      for (const int64_t row : {2 * part, 2 * part + 1, 6 + 2 * part, 7 + 2 * part}) {
        for (int64_t col = 0; col < 8; ++col) {
          u.push_back(momentum[static_cast<size_t>(row * 8 + col)]);
          w.push_back(weight[static_cast<size_t>(row * 8 + col)]);
        }
      }
      const int64_t rows = dim == 0 ? 2 : 4, cols = dim == 0 ? 8 : 4;
      const auto shard = [&](const std::vector<float>& of, int64_t rank) {
        return Part(of, 8, dim, rank * (dim == 0 ? rows : cols), dim == 0 ? rows : cols);
      };
      const auto o = NewtonSchulzOfShards(rule, rows, cols, dim, {shard(u, 0), shard(u, 1)});
      std::vector<float> w_before;
      for (const int64_t row : {2 * part, 2 * part + 1, 6 + 2 * part, 7 + 2 * part})
        for (int64_t col = 0; col < 8; ++col)
          w_before.push_back(before[static_cast<size_t>(row * 8 + col)]);
      const auto scale = static_cast<float>(-(0.5 * std::sqrt(4.0 / 8.0)));
      for (int64_t rank = 0; rank < 2; ++rank) {
        const std::vector<float> now = shard(w, rank), then = shard(w_before, rank);
        for (size_t i = 0; i < now.size(); ++i)
          EXPECT_EQ(now[i], scale * o[static_cast<size_t>(rank)][i] + 0.875f * then[i]);
      }
    }
  }
}

// Where Gram matrices are added up, results are near those of the whole matrix, and not their bits.
TEST(MuonShardsTest, ShardsThatAddUpGiveNearlyWhatTheWholeMatrixGives) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{24, 48}, {48, 24}, {32, 48}}) {
    const std::vector<float> u = Random(rows, cols, 5);
    const MuonRule rule;
    const std::vector<float> whole = NewtonSchulz(rule, rows, cols, u);
    for (const int32_t dim : {0, 1}) {
      const int64_t mine = (dim == 0 ? rows : cols) / 2;
      const auto results =
          NewtonSchulzOfShards(rule, dim == 0 ? mine : rows, dim == 1 ? mine : cols, dim,
                               {Part(u, cols, dim, 0, mine), Part(u, cols, dim, mine, mine)});
      ASSERT_EQ(results.size(), 2u);
      double difference = 0, norm = 0;
      for (int64_t rank = 0; rank < 2; ++rank) {
        const std::vector<float> want = Part(whole, cols, dim, rank * mine, mine);
        for (size_t i = 0; i < want.size(); ++i) {
          const double a = double{results[static_cast<size_t>(rank)][i]}, b = double{want[i]};
          difference += (a - b) * (a - b);
          norm += b * b;
        }
      }
      EXPECT_LE(std::sqrt(difference / norm), 64 * std::pow(2.0, -24))
          << rows << " " << cols << " " << dim;
      EXPECT_GT(difference, 0) << "sums of two halves";
    }
  }
}

}  // namespace
}  // namespace shardproof
