// Muon on shards of matrices, on 1 to 8 simulated ranks: the reference against the oracle of whole
// matrices and against the polar factor of an fp64 singular value decomposition.
//
// Bounds, relative to the Frobenius norm of the result of the whole matrix, for singular values
// above 0.01 (of U / ||U||): 64 units of 2^-24, with bf16 products 8 of 2^-8; 2048 of 2^-24 for
// smaller ones, whose rounding the coefficients amplify by up to their product. Distributed sums of
// Gram matrices are rounded in another order; nothing else differs.
#include <gtest/gtest.h>

#include <cmath>

#include "property_tests/tp_requests.h"

namespace shardproof {
namespace {

constexpr int32_t kRanks[] = {1, 2, 3, 4, 8};

// A gradient whose shards all have singular values above 0.01.
std::vector<float> ConditionedBlocks(const TpMatrix& matrix, int32_t ranks) {
  std::vector<std::vector<float>> blocks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    blocks.push_back(Conditioned(matrix.rows / (matrix.dim == 0 ? ranks : 1),
                                 matrix.cols / (matrix.dim == 1 ? ranks : 1), 0.25,
                                 static_cast<uint64_t>(rank) + 1));
  }
  return WholeOf(blocks, matrix.rows, matrix.cols, matrix.dim);
}

// How far updates (a weight that was 0, lr 0.5, spectral scale) are from the polar factors of
// gradients, block by block.
double FarthestFromPolar(const TpMatrix& matrix, int32_t blocks, const std::vector<float>& weight) {
  const int32_t dim = blocks > 1 ? matrix.dim : -1;
  const int64_t rows = matrix.rows / (dim == 0 ? blocks : 1),
                cols = matrix.cols / (dim == 1 ? blocks : 1);
  const double factor = 0.5 * std::sqrt(static_cast<double>(std::max(rows, cols)));
  double farthest = 0;
  for (int32_t block = 0; block < blocks; ++block) {
    const auto part = [&](const std::vector<float>& of) {
      return ShardOf(of, matrix.rows, matrix.cols, dim, blocks, block);
    };
    std::vector<float> update = part(weight);
    for (float& value : update) value = static_cast<float>(-static_cast<double>(value) / factor);
    farthest = std::max(farthest, DistanceFromPolar(update, part(matrix.grads[0]), rows, cols));
  }
  return farthest;
}

TEST(TpMuon, DuplicatedHasTheBitsOfTheWholeMatrix) {
  for (int32_t ranks : kRanks) {
    const TpRequest request = RequestOf(Rule(), "duplicated", ranks);
    const TpAnswer answer = StepAll(request);
    for (size_t i = 0; i < request.matrices.size(); ++i) {
      ExpectSame(HeldOf(request, answer, i).whole, StepWhole(Rule(), request.matrices[i], ranks),
                 What(request, i));
    }
  }
}

TEST(TpMuon, DuplicatedHasTheBitsUnderEveryOption) {
  MuonRule rules[] = {Rule(), Rule(), Rule()};
  rules[0].nesterov = true, rules[0].weight_decay = 0.25, rules[0].scale_mode = "unit_rms_norm";
  rules[1].bf16 = true, rules[1].extra_scale = 0.25, rules[1].coefficients = "polar_express";
  rules[2].coefficients = "cubic5", rules[2].scale_mode = "shape_scaling";
  rules[2].split_qkv = false, rules[2].momentum = 0.5, rules[2].eps = 0.125;
  for (const MuonRule& rule : rules) {
    const TpRequest request = RequestOf(rule, "duplicated", 4, 2, 6);
    const TpAnswer answer = StepAll(request);
    for (size_t i = 0; i < request.matrices.size(); ++i) {
      ExpectSame(HeldOf(request, answer, i).whole, StepWhole(rule, request.matrices[i], 4),
                 What(request, i) + ", " + rule.coefficients);
    }
  }
}

TEST(TpMuon, DistributedIsTheWholeMatrixWithinItsBound) {
  for (const bool bf16 : {false, true}) {
    MuonRule rule = Rule();
    rule.bf16 = bf16;
    double worst = 0;
    for (int32_t ranks : kRanks) {
      TpRequest request = RequestOf(rule, "distributed", ranks);
      for (TpMatrix& matrix : request.matrices) matrix.weight.assign(matrix.weight.size(), 0);
      const TpAnswer answer = StepAll(request);
      for (size_t i = 0; i < request.matrices.size(); ++i) {
        const Stepped seen = HeldOf(request, answer, i).whole,
                      expected = StepWhole(rule, request.matrices[i], ranks);
        EXPECT_TRUE(seen.momentum == expected.momentum) << What(request, i);
        const double units = Distance(seen.weight, expected.weight) * (bf16 ? 0x1p8 : 0x1p24);
        EXPECT_LE(units, bf16 ? 8 : 64) << What(request, i);
        if (!IsSplit(request, i)) {
          EXPECT_EQ(units, 0) << What(request, i);
        }
        worst = std::max(worst, units);
      }
    }
    EXPECT_GT(worst, 0.01) << "sums in another order, yet nothing differs";
    RecordProperty(bf16 ? "worst_bf16" : "worst_fp32", std::to_string(worst));
  }
}

TEST(TpMuon, SmallSingularValuesAmplifyRoundingUpToAnotherBound) {
  const MuonRule rule = Rule();
  TpRequest request = RequestOf(rule, "distributed", 4);
  for (TpMatrix& matrix : request.matrices) {
    matrix.weight.assign(matrix.weight.size(), 0);
    matrix.grads = {Conditioned(matrix.rows, matrix.cols, 1e-4, 11)};
  }
  const TpAnswer answer = StepAll(request);
  double worst = 0;
  for (size_t i = 0; i < request.matrices.size(); ++i) {
    const Stepped expected = StepWhole(rule, request.matrices[i], 4);
    const double units =
        Distance(HeldOf(request, answer, i).whole.weight, expected.weight) * 0x1p24;
    EXPECT_LE(units, 2048) << What(request, i);
    worst = std::max(worst, units);
  }
  RecordProperty("worst_small", std::to_string(worst));
}

TEST(TpMuon, BlockwiseIsOneMatrixPerRank) {
  for (int32_t ranks : kRanks) {
    const TpRequest request = RequestOf(Rule(), "blockwise", ranks);
    const TpAnswer answer = StepAll(request);
    for (size_t i = 0; i < request.matrices.size(); ++i) {
      const TpMatrix& matrix = request.matrices[i];
      const Stepped seen = HeldOf(request, answer, i).whole;
      const Stepped whole = StepWhole(Rule(), matrix, ranks);
      ExpectSame(seen, IsSplit(request, i) ? StepBlocks(Rule(), matrix, ranks) : whole,
                 What(request, i));
      if (IsSplit(request, i)) {
        EXPECT_GT(Distance(seen.weight, whole.weight), 0.01) << What(request, i);
      }
    }
  }
}

// The update without its factor is the polar factor of the gradient, but for the band in which the
// coefficients leave singular values (quintic: 0.978 to 1.032). Blockwise: of each rank's shard.
TEST(TpMuon, UpdatesAreNearThePolarFactor) {
  MuonRule rule = Rule();
  rule.eps = 0;
  rule.split_qkv = false;
  for (const char* mode : kTpModes) {
    for (int32_t ranks : {1, 3, 8}) {
      TpRequest request = RequestOf(rule, mode, ranks);
      const bool blockwise = request.knobs.at("muon_tp_mode") == "blockwise";
      for (TpMatrix& matrix : request.matrices) {
        matrix.weight.assign(matrix.weight.size(), 0);
        if (blockwise && matrix.dim >= 0) matrix.grads = {ConditionedBlocks(matrix, ranks)};
      }
      const TpAnswer answer = StepAll(request);
      for (size_t i = 0; i < request.matrices.size(); ++i) {
        const bool blocks = blockwise && request.matrices[i].dim >= 0;
        EXPECT_LE(FarthestFromPolar(request.matrices[i], blocks ? ranks : 1,
                                    HeldOf(request, answer, i).whole.weight),
                  0.032 + 1e-3)
            << What(request, i);
      }
    }
  }
}

}  // namespace
}  // namespace shardproof
