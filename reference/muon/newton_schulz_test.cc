#include "reference/muon/newton_schulz.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/muon/muon.h"
#include "reference/muon/tensor_parallel.h"

namespace reference {
namespace {

// Published bands of singular values in [0.01, 1], in exact arithmetic.
TEST(NewtonSchulz, SingularValuesLandInThePublishedBands) {
  const struct {
    Coefficients type;
    int32_t steps;
    double low, high;
  } bands[] = {{Coefficients::kQuintic, 5, 0.978, 1.032},
               {Coefficients::kQuintic, 10, 0.978, 1.026},
               {Coefficients::kSimple, 5, 0.682, 1.134},
               {Coefficients::kPolarExpress, 5, 0.870, 1.124},
               {Coefficients::kPolarExpress, 8, 0.999, 1.001},
               {Coefficients::kCans, 5, 0.884, 1.120},
               {Coefficients::kDeepSeekV4, 10, 0.95, 1.05},
               {Coefficients::kCubic5, 5, 0.774, 1.300}};
  for (const auto& band : bands) {
    const SingularRange range = RangeOf(StepsOf(band.type, band.steps));
    EXPECT_GE(range.low, band.low - 5e-4) << static_cast<int>(band.type);
    EXPECT_LE(range.high, band.high + 5e-4) << static_cast<int>(band.type);
  }
}

// What configurations refuse, and why.
TEST(NewtonSchulz, PartOfTheQuinticStepsIsFarFromOne) {
  EXPECT_LT(RangeOf(StepsOf(Coefficients::kQuintic, 6)).high, 0.17);
  EXPECT_LT(RangeOf(StepsOf(Coefficients::kQuintic, 7)).high, 0.63);
}

TEST(NewtonSchulz, AolFlipsSigns) {
  EXPECT_LT(RangeOf(StepsOf(Coefficients::kAol, 4)).low, -1);
  EXPECT_LT(RangeOf(StepsOf(Coefficients::kAol, 5)).low, -1);
}

TEST(NewtonSchulz, ListsBeginAgainOrRepeatTheirLast) {
  EXPECT_EQ(StepsOf(Coefficients::kQuintic, 6)[5].a, 4.0848);
  EXPECT_EQ(StepsOf(Coefficients::kSimple, 3)[2].a, 3.4445);
  EXPECT_EQ(StepsOf(Coefficients::kPolarExpress, 9)[8].a, 1.8750);
  EXPECT_EQ(StepsOf(Coefficients::kCans, 7)[6].a, 2.2737);
  EXPECT_EQ(StepsOf(Coefficients::kDeepSeekV4, 8)[7].a, 3.4445);
  EXPECT_EQ(StepsOf(Coefficients::kDeepSeekV4, 11)[10].a, 2);
  EXPECT_TRUE(StepsOf(Coefficients::kSimple, 0).empty());
}

TEST(NewtonSchulzPlanTest, FiveLaunchesAStepThreeWithoutTheFifthPower) {
  const auto quintic = StepsOf(Coefficients::kQuintic, 5),
             cubic = StepsOf(Coefficients::kCubic5, 5);
  EXPECT_EQ(PlanNewtonSchulz(4, 6, quintic, 0, SPF_F32).iterate.size(), 25u);
  EXPECT_EQ(PlanNewtonSchulz(4, 6, cubic, 0, SPF_F32).iterate.size(), 15u);
  EXPECT_EQ(PlanNewtonSchulz(4, 6, quintic, 0, SPF_F32).result, Operand::kY);
  EXPECT_EQ(PlanNewtonSchulz(4, 6, StepsOf(Coefficients::kSimple, 2), 0, SPF_F32).result,
            Operand::kX);
}

TEST(NewtonSchulzPlanTest, TheGramMatrixHasTheSmallerSide) {
  for (const auto& [rows, cols] : {std::pair{4, 6}, {6, 4}, {5, 5}}) {
    const NewtonSchulzPlan plan =
        PlanNewtonSchulz(rows, cols, StepsOf(Coefficients::kSimple, 1), 0, SPF_F32);
    EXPECT_EQ(plan.side, std::min(rows, cols));
    const bool tall = rows > cols;
    const double side = std::min(rows, cols), inner = std::max(rows, cols);
    EXPECT_EQ(plan.iterate.front().scalars,
              (std::vector<double>{side, side, inner, tall ? 1.0 : 0.0, tall ? 0.0 : 1.0, 1, 0}));
    EXPECT_EQ(plan.iterate.back().spans[0].operand, tall ? Operand::kX : Operand::kMixed);
  }
}

TEST(MuonScales, OfTheWholeMatrix) {
  EXPECT_EQ(ScaleOf(MuonScale::kSpectral, 4, 16), 4);
  EXPECT_EQ(ScaleOf(MuonScale::kSpectral, 16, 4), 4);
  EXPECT_EQ(ScaleOf(MuonScale::kUnitRmsNorm, 4, 16), 0.5);
  EXPECT_EQ(ScaleOf(MuonScale::kShapeScaling, 4, 16), 1);
  EXPECT_EQ(ScaleOf(MuonScale::kShapeScaling, 16, 4), 2);
}

TEST(FusedProjections, PartsOfAllGroupsFormAMatrix) {
  EXPECT_EQ(SplitFused(12, 1, {4, 4, 4}), (std::vector<MatrixPiece>{{{0, 4}}, {{4, 4}}, {{8, 4}}}));
  // Two groups of four query heads' rows, one key row, one value row.
  EXPECT_EQ(SplitFused(12, 2, {4, 1, 1}),
            (std::vector<MatrixPiece>{{{0, 4}, {6, 4}}, {{4, 1}, {10, 1}}, {{5, 1}, {11, 1}}}));
  EXPECT_EQ(RowsOf(SplitFused(12, 2, {4, 1, 1})[0]), 8);
  EXPECT_EQ(SplitFused(8, 2, {1, 1, 1, 1}).size(), 4u) << "with a gate";
  EXPECT_THROW(SplitFused(13, 2, {4, 1, 1}), std::invalid_argument);
  EXPECT_THROW(SplitFused(0, 0, {1}), std::invalid_argument);
}

// root: position ; embedding ; layers.0 { attention.qkv weight, bias } ; head
class RoutingTest : public testing::Test {
 protected:
  RoutingTest() {
    tables_.n_modules = static_cast<int32_t>(modules_.size());
    tables_.modules = modules_.data();
    tables_.n_params = static_cast<int32_t>(params_.size());
    tables_.params = params_.data();
  }
  static spf_param Matrix(int32_t module, int64_t rows, uint32_t flags = 0) {
    spf_param param{};
    param.name = "weight";
    param.module = module;
    param.n_dim = 2;
    param.shape[0] = rows;
    param.shape[1] = 4;
    param.numel = rows * 4;
    param.flags = flags;
    return param;
  }
  static spf_param Vector(int32_t module) {
    spf_param param = Matrix(module, 1);
    param.n_dim = 1;
    return param;
  }

  std::vector<spf_module> modules_{{-1, "model", "Model"},
                                   {0, "embedding", "Embedding"},
                                   {0, "layers.0", "TransformerLayer"},
                                   {2, "layers.0.attention", "Attention"},
                                   {3, "layers.0.attention.qkv", "Linear"},
                                   {0, "head", "Linear"}};
  std::vector<spf_param> params_{Matrix(0, 8), Matrix(1, 8),  Matrix(4, 12),
                                 Vector(4),    Matrix(5, 12), Matrix(4, 12, SPF_PARAM_FROZEN)};
  spf_model tables_{};
};

TEST_F(RoutingTest, OnlyTrainableMatricesInsideLayers) {
  EXPECT_EQ(SteppedByMuon(tables_), (std::vector<bool>{false, false, true, false, false, false}));
}

TEST_F(RoutingTest, QueriesKeysAndValuesAreThreeMatrices) {
  EXPECT_EQ(PiecesOf(tables_, 2, {}), (std::vector<MatrixPiece>{{{0, 4}}, {{4, 4}}, {{8, 4}}}));
  EXPECT_EQ(PiecesOf(tables_, 2, {.split_qkv = false}), (std::vector<MatrixPiece>{{{0, 12}}}));
  EXPECT_EQ(PiecesOf(tables_, 4, {}).size(), 1u);
  params_[2] = Matrix(4, 13);
  EXPECT_THROW(PiecesOf(tables_, 2, {}), std::invalid_argument);
}

}  // namespace
}  // namespace reference
