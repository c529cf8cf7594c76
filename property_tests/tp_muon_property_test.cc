// Muon on shards of random matrices: whatever the shapes, splits, modes and numbers of ranks, the
// reference has the oracle's bits (duplicated, blockwise), or is within the bound (distributed).
#include <gtest/gtest.h>

#include "property_tests/property.h"
#include "property_tests/tp_oracle.h"
#include "reference/muon/tensor_parallel.h"

namespace shardproof {
namespace {

MuonRule DrawRule(const std::vector<std::string>& coefficients) {
  MuonRule rule;
  rule.lr = 0.5;
  rule.coefficients = *rc::gen::elementOf(coefficients);
  rule.ns_steps = rule.coefficients == "polar_express" ? 8 : 5;
  rule.nesterov = *rc::gen::arbitrary<bool>();
  rule.scale_mode = *rc::gen::element("spectral", "unit_rms_norm", "shape_scaling");
  rule.split_qkv = *rc::gen::arbitrary<bool>();
  rule.bf16 = *rc::gen::arbitrary<bool>();
  rule.eps = *rc::gen::element(0.0, 0.0078125);
  return rule;
}

// The side that is not split is as often the longer one.
TpMatrix DrawMatrix(const TpRequest& request, size_t steps) {
  TpMatrix matrix;
  matrix.dim = *rc::gen::inRange(-1, 2);
  matrix.expert = *rc::gen::arbitrary<bool>();
  matrix.fused_qkv = *rc::gen::arbitrary<bool>();
  const int64_t ranks = matrix.expert ? request.expert_tp : request.tp;
  const int64_t parts = matrix.fused_qkv ? 3 : 1;
  matrix.rows = *rc::gen::inRange<int64_t>(1, 7) * parts * (matrix.dim == 0 ? ranks : 1);
  matrix.cols = *rc::gen::inRange<int64_t>(1, 13) * (matrix.dim == 1 ? ranks : 1);
  const auto seed = *rc::gen::inRange<uint64_t>(0, 1 << 20);
  matrix.weight.assign(static_cast<size_t>(matrix.rows * matrix.cols), 0);
  for (size_t step = 0; step < steps; ++step)
    matrix.grads.push_back(Conditioned(matrix.rows, matrix.cols, 0.25, seed + step));
  return matrix;
}

TpRequest DrawRequest(const MuonRule& rule, const std::string& mode, size_t steps) {
  TpRequest request;
  request.expert_tp = *rc::gen::inRange(1, 5);
  request.tp = request.expert_tp * *rc::gen::inRange(1, 5);
  if (request.tp > 8) request.tp = request.expert_tp;
  request.knobs = KnobsOf(rule, mode);
  const auto matrices = *rc::gen::inRange<size_t>(1, 4);
  for (size_t i = 0; i < matrices; ++i) request.matrices.push_back(DrawMatrix(request, steps));
  request.sim.policy =
      *rc::gen::element(TimingPolicy::kEager, TimingPolicy::kRandom, TimingPolicy::kPct);
  request.sim.seed = *rc::gen::inRange<uint64_t>(1, 100);
  return request;
}

PropertyOptions Times(int evaluations) {
  PropertyOptions options;
  options.evaluations = evaluations;
  return options;
}

// Steps, and calls body with each matrix, how many ranks it is split over, and the whole that they
// hold.
template <class Body>
void ForEachMatrix(const TpRequest& request, Body&& body) {
  const TpAnswer answer = StepOnTpRanks(request);
  RC_ASSERT(answer.wrong == "");
  for (size_t i = 0; i < request.matrices.size(); ++i) {
    const TpMatrix& matrix = request.matrices[i];
    const Held held = HeldOf(request, answer, i);
    RC_ASSERT(held.contradiction == "");
    body(matrix, matrix.expert ? request.expert_tp : request.tp, held.whole);
  }
}

TEST(TpMuonPropertyTest, DuplicatedAndBlockwiseHaveTheOraclesBits) {
  EXPECT_TRUE(CheckProperty(
      "duplicated and blockwise tensor parallelism have the oracle's bits",
      [] {
        const MuonRule rule = DrawRule({"quintic", "simple", "polar_express", "cans", "cubic5"});
        const bool blocks = *rc::gen::arbitrary<bool>();
        const TpRequest request = DrawRequest(rule, blocks ? "blockwise" : "duplicated", 2);
        ForEachMatrix(request, [&](const TpMatrix& matrix, int32_t ranks, const Stepped& whole) {
          const Stepped expected = blocks && matrix.dim >= 0 ? StepBlocks(rule, matrix, ranks)
                                                             : StepWhole(rule, matrix, ranks);
          RC_ASSERT(whole.weight == expected.weight);
          RC_ASSERT(whole.momentum == expected.momentum);
        });
      },
      Times(200)));
}

// 64 units of 2^-24; with bf16 products 16 of 2^-8, because in a matrix of few elements both
// results are several units from the exact one. Of the other coefficients some take a singular
// value of 1, all that a vector has, through nearly 0 (cubic5, cans) or amplify rounding (simple):
// there is no such bound for every matrix.
TEST(TpMuonPropertyTest, DistributedIsWithinItsBound) {
  double worst[2] = {0, 0};
  EXPECT_TRUE(CheckProperty(
      "distributed tensor parallelism is within its bound of the whole matrix",
      [&] {
        const MuonRule rule = DrawRule({"quintic", "polar_express"});
        const TpRequest request = DrawRequest(rule, "distributed", 1);
        ForEachMatrix(request, [&](const TpMatrix& matrix, int32_t ranks, const Stepped& whole) {
          const Stepped expected = StepWhole(rule, matrix, ranks);
          RC_ASSERT(whole.momentum == expected.momentum);
          const double units =
              Distance(whole.weight, expected.weight) * (rule.bf16 ? 0x1p8 : 0x1p24);
          worst[rule.bf16] = std::max(worst[rule.bf16], units);
          RC_ASSERT(units <= (rule.bf16 ? 16 : 64));
        });
      },
      Times(200)));
  RecordProperty("worst_fp32", std::to_string(worst[0]));
  RecordProperty("worst_bf16", std::to_string(worst[1]));
}

// Groups of a fused projection that ranks hold whole: what ranks take for part i is, in rank order,
// part i of the whole projection. Where a group would be cut, every rank refuses.
TEST(TpMuonPropertyTest, PartsOfShardsMakeThePartsOfTheWhole) {
  EXPECT_TRUE(CheckProperty("parts of shards make the parts of the whole", [] {
    const auto ranks = *rc::gen::inRange(1, 9);
    const auto groups = *rc::gen::inRange<int64_t>(1, 17);
    const auto parts = *rc::gen::container<std::vector<int64_t>>(
        3 + *rc::gen::inRange<size_t>(0, 2), rc::gen::inRange<int64_t>(1, 5));
    int64_t width = 0;
    for (int64_t part : parts) width += part;
    RC_PRE(groups * width % ranks == 0);
    const int64_t rows = groups * width / ranks;
    std::vector<std::vector<int64_t>> taken(parts.size());
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const reference::TpSplit split{0, ranks, rank};
      if (groups % ranks != 0) {
        RC_ASSERT_THROWS_AS(reference::PiecesOfShard("w", rows, groups, parts, split),
                            std::invalid_argument);
        continue;
      }
      const auto pieces = reference::PiecesOfShard("w", rows, groups, parts, split);
      RC_ASSERT(pieces.size() == parts.size());
      for (size_t i = 0; i < pieces.size(); ++i) {
        for (const reference::RowRange& range : pieces[i]) {
          for (int64_t row = 0; row < range.count; ++row)
            taken[i].push_back(rank * rows + range.begin + row);
        }
      }
    }
    if (groups % ranks != 0) return;
    const auto whole = reference::SplitFused(groups * width, groups, parts);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::vector<int64_t> expected;
      for (const reference::RowRange& range : whole[i]) {
        for (int64_t row = 0; row < range.count; ++row) expected.push_back(range.begin + row);
      }
      RC_ASSERT(taken[i] == expected);
    }
  }));
}

}  // namespace
}  // namespace shardproof
