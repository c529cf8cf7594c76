// Permutation, grouped experts and their activation on a device against those of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/moe_grouped.h"
#include "conformance/model/cuda/moe_permute.h"
#include "conformance/model/cuda/moe_rules_bench.h"

namespace shardproof {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// --- permutation

TEST(DevicePermuteTest, MovesRowsAsTheHostDoes) {
  for (const RouterRule& rule : AllRoutings()) {
    RouterCase c(rule);
    const Routed r = Route({}, rule, c.x, c.weight, c.bias);
    Indices stale(r.index.size(), 3), mixed = r.index;
    mixed[0] = 0x11111111;
    mixed[1] = -7;
    mixed[2] = 8;
    int64_t total = 0;
    for (int64_t count : r.counts) total += count;
    for (const Indices& index : {r.index, stale, mixed}) {
      for (int64_t n_rows : {total, total - 1, int64_t{3}, int64_t{0}}) {
        const std::vector<int64_t> wanted = RowsOfChoices(rule, index.data(), n_rows);
        LateQueue queue;
        std::vector<int64_t> found(wanted.size()), back(static_cast<size_t>(n_rows));
        {
          const device::ChoiceRows rows(queue, rule, index.data(), n_rows);
          const auto copy = [&](std::vector<int64_t>& to, const int64_t* from) {
            queue.Download(to.data(), reinterpret_cast<const std::byte*>(from),
                           to.size() * sizeof(int64_t));
          };
          copy(found, rows.row_of());
          if (n_rows > 0) copy(back, rows.choice_of());
        }
        queue.Flush();
        EXPECT_EQ(found, wanted);
        int64_t used = 0;
        for (size_t row = 0; row < back.size(); ++row) {
          if (back[row] < 0) continue;
          EXPECT_EQ(found[static_cast<size_t>(back[row])], static_cast<int64_t>(row));
          ++used;
        }
        EXPECT_EQ(used,
                  std::count_if(found.begin(), found.end(), [](int64_t row) { return row >= 0; }));
      }
    }
    if (HasFailure()) return;
  }
}

// Sums that clamp, and the stream's own gradient added or not.
TEST(DevicePermuteTest, UnpermutesAsTheHostDoes) {
  RouterRule rule = SmallRule(Score::kSoftmax, 2);
  rule.capacity = 2;
  const RouterCase c(rule);
  const Indices index = Route({}, rule, c.x, c.weight, c.bias).index;
  std::mt19937 random(9);
  const Floats rows = OnGrid(random, 10 * 16, grids::kActivation),
               residual = OnGrid(random, 128, grids::kResidual),
               shared = OnGrid(random, 128, grids::kActivation), dout = Normal(random, 128),
               before = OnGrid(random, 128, grids::kDResidual);
  for (const device::Rules& rules : AllRules()) {
    const Numerics n = NumericsOf(rules);
    for (bool with_shared : {false, true}) {
      Floats wanted(128), found(128), wanted_rows(160), found_rows(160), wanted_shared(128),
          found_shared(128), wanted_residual = before, found_residual = before;
      const float* s = with_shared ? shared.data() : nullptr;
      UnpermuteForward(n, rule, 10, rows.data(), index.data(), s, residual.data(), wanted.data());
      UnpermuteDgrad(n, rule, 10, index.data(), dout.data(), wanted_rows.data(),
                     with_shared ? wanted_shared.data() : nullptr, wanted_residual.data(),
                     with_shared);
      LateQueue queue;
      device::UnpermuteForward(queue, rules, rule, 10, rows.data(), index.data(), s,
                               residual.data(), found.data());
      device::UnpermuteDgrad(queue, rules, rule, 10, index.data(), dout.data(),
                             {found_rows.data(), with_shared ? found_shared.data() : nullptr,
                              found_residual.data(), with_shared});
      queue.Flush();
      EXPECT_TRUE(SameBits(found, wanted));
      EXPECT_TRUE(SameBits(found_rows, wanted_rows));
      EXPECT_TRUE(SameBits(found_shared, wanted_shared));
      EXPECT_TRUE(SameBits(found_residual, wanted_residual));
    }
  }
}

// --- experts

// 3 experts of 5 inputs and 7 outputs, and rows for them.
struct GroupedCase {
  std::mt19937 random{5};
  int64_t n_rows;
  Floats x, weights, biases, dy, dweights, dbiases;
  explicit GroupedCase(int64_t rows) : n_rows(rows) {
    x = OnGrid(random, rows * 5, grids::kActivation);
    weights = OnGrid(random, 3 * 35, grids::kWeight);
    biases = OnGrid(random, 3 * 7, grids::kWeight);
    dy = OnGrid(random, rows * 7, grids::kDBranch);
    dweights = OnGrid(random, 3 * 35, {-11, 90});
    dbiases = OnGrid(random, 3 * 7, {-6, 90});
    dweights[4] = dbiases[3] = -0.0f;  // an expert without rows leaves even this
  }
  std::vector<const float*> Of(const Floats& all, int64_t numel) const {
    return {all.data(), all.data() + numel, all.data() + 2 * numel};
  }
};

std::vector<GradTarget> HostTargets(Floats& all, int64_t numel, int32_t dtype) {
  std::vector<GradTarget> targets;
  for (int64_t e = 0; e < 3; ++e) targets.push_back({"expert", all.data() + e * numel, dtype});
  return targets;
}
std::vector<device::GradTarget> DeviceTargets(Floats& all, int64_t numel, int32_t dtype) {
  std::vector<device::GradTarget> targets;
  for (int64_t e = 0; e < 3; ++e) targets.push_back({all.data() + e * numel, dtype});
  return targets;
}

// REQUIRES: counts make the rows.
void ExpectSameProducts(const device::Rules& rules, const ExpertRows& rows, int64_t n_rows,
                        int32_t dtype) {
  const Numerics n = NumericsOf(rules);
  GroupedCase c(n_rows);
  for (float& d : c.dy) d = d * PowerOfTwo(rules.scale_e);
  Floats wanted_y(c.dy.size(), 1), found_y = wanted_y, wanted_dx(c.x.size(), 1),
                                   found_dx = wanted_dx;
  Floats wanted_dw = c.dweights, found_dw = c.dweights, wanted_db = c.dbiases, found_db = c.dbiases;
  const auto w = c.Of(c.weights, 35), b = c.Of(c.biases, 7);
  GroupedForward(n, rows, 5, 7, c.x.data(), w, b, grids::kActivation, wanted_y.data());
  GroupedDgrad(n, rows, 5, 7, c.dy.data(), grids::kDBranch, w, grids::kDExpertAct,
               wanted_dx.data());
  GroupedWgrad(n, rows, 5, 7, c.x.data(), c.dy.data(), grids::kDBranch,
               HostTargets(wanted_dw, 35, dtype), HostTargets(wanted_db, 7, dtype));
  LateQueue queue;
  {
    const device::RowsByExpert by_expert(queue, rows, n_rows);
    device::GroupedForward(queue, rules, by_expert, {5, 7}, c.x.data(), c.weights.data(),
                           c.biases.data(), grids::kActivation, found_y.data());
    device::GroupedDgrad(queue, rules, by_expert, {5, 7}, c.dy.data(), c.weights.data(),
                         grids::kDExpertAct, found_dx.data());
    device::GroupedWgrad(queue, rules, by_expert, {5, 7}, c.x.data(), c.dy.data(), grids::kDBranch,
                         DeviceTargets(found_dw, 35, dtype), DeviceTargets(found_db, 7, dtype));
  }
  queue.Flush();
  EXPECT_TRUE(SameBits(found_y, wanted_y));
  EXPECT_TRUE(SameBits(found_dx, wanted_dx));
  EXPECT_TRUE(SameBits(found_dw, wanted_dw));
  EXPECT_TRUE(SameBits(found_db, wanted_db));
}

TEST(DeviceGroupedTest, MultipliesAsTheHostDoes) {
  const std::vector<std::vector<int64_t>> all{
      {2, 0, 3, 0, 0, 4, 1, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 9}, {9, 0, 0, 0, 0, 0, 0, 0, 0},
      {1, 1, 1, 1, 1, 1, 1, 1, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 5, 0, 0, 6, 0, 0, 7}};
  for (const std::vector<int64_t>& counts : all) {
    const ExpertRows rows{3, 3, counts.data(), 0};
    for (const device::Rules& rules : AllRules()) {
      ExpectSameProducts(rules, rows, rows.total(), SPF_F32);
      ExpectSameProducts(rules, rows, rows.total(), SPF_BF16);
    }
  }
  ExpectSameProducts({}, {3, 3, nullptr, 2}, 18, SPF_F32);  // padded
}

TEST(DeviceGroupedTest, FindsTheExpertOfEachRow) {
  const std::vector<int64_t> counts{2, 0, 3, 0, 0, 4, 1, 0, 0};
  const ExpertRows rows{3, 3, counts.data(), 0};
  for (int64_t n_rows : {10, 9, 11, 0}) {
    LateQueue queue;
    std::vector<int32_t> found(static_cast<size_t>(n_rows));
    {
      const device::RowsByExpert by_expert(queue, rows, n_rows);
      if (n_rows > 0) {
        queue.Download(found.data(), reinterpret_cast<const std::byte*>(by_expert.expert()),
                       found.size() * sizeof(int32_t));
      }
    }
    queue.Flush();
    EXPECT_EQ(found, n_rows == 10 ? rows.ExpertOfRow() : std::vector<int32_t>(found.size(), -1));
  }
}

TEST(DeviceGroupedTest, WhatIsNotWantedIsLeftAlone) {
  const std::vector<int64_t> counts{2, 1, 1};
  GroupedCase c(4);
  Floats dweights = c.dweights;
  std::vector<device::GradTarget> targets = DeviceTargets(dweights, 35, SPF_F32);
  targets[1].data = nullptr;
  LateQueue queue;
  {
    const device::RowsByExpert rows(queue, {1, 3, counts.data(), 0}, 4);
    device::GroupedWgrad(queue, {}, rows, {5, 7}, c.x.data(), c.dy.data(), grids::kDBranch, targets,
                         {});
  }
  queue.Flush();
  const auto same = [&](int64_t e) {
    return std::equal(dweights.begin() + e * 35, dweights.begin() + (e + 1) * 35,
                      c.dweights.begin() + e * 35);
  };
  EXPECT_FALSE(same(0));
  EXPECT_TRUE(same(1));
  EXPECT_FALSE(same(2));
}

TEST(DeviceGatedSwigluTest, ActivatesAsTheHostDoes) {
  for (const device::Rules& rules : AllRules()) {
    for (int64_t ffn : {1, 5, 70}) {  // fewer and more than reduce.h has parts
      std::mt19937 random(6);
      const Numerics n = NumericsOf(rules);
      const Floats x = OnGrid(random, 4 * 2 * ffn, grids::kActivation),
                   dy = OnGrid(random, 4 * ffn, n.Scaled(grids::kDExpertAct));
      const Floats probs{0.5f, 1, 0, 77.0f / 128};
      ExpectSwigluOfTheHost(rules, 4, ffn, x, dy, probs);
    }
  }
}

}  // namespace
}  // namespace shardproof
