#include "conformance/cases/covering.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace shardproof {
namespace {

CoveringProblem Plain(const std::vector<int>& sizes) {
  CoveringProblem problem;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Factor factor{"f" + std::to_string(i), {}};
    for (int value = 0; value < sizes[i]; ++value) factor.values.push_back(std::to_string(value));
    problem.factors.push_back(factor);
  }
  return problem;
}

// All value tuples of these factors that occur in rows, counted without the table under test.
size_t Distinct(const std::vector<CoveringRow>& rows, const std::vector<size_t>& factors) {
  std::set<std::vector<int>> seen;
  for (const CoveringRow& row : rows) {
    std::vector<int> values;
    for (size_t factor : factors) values.push_back(row[factor]);
    seen.insert(values);
  }
  return seen.size();
}

TEST(CoveringTest, EveryPairOccurs) {
  const std::vector<int> sizes{4, 3, 3, 2, 2, 5};
  const auto rows = CoveringArray(Plain(sizes), {});
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      EXPECT_EQ(Distinct(rows, {a, b}), static_cast<size_t>(sizes[a] * sizes[b]));
    }
  }
  EXPECT_LE(rows.size(), 26u);  // 20 is the least possible
}

TEST(CoveringTest, EveryTripleOccurs) {
  const std::vector<int> sizes{3, 2, 4, 2, 3};
  CoveringOptions options;
  options.strength = 3;
  const auto rows = CoveringArray(Plain(sizes), options);
  for (size_t a = 0; a < sizes.size(); ++a) {
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      for (size_t c = b + 1; c < sizes.size(); ++c) {
        EXPECT_EQ(Distinct(rows, {a, b, c}), static_cast<size_t>(sizes[a] * sizes[b] * sizes[c]));
      }
    }
  }
}

CoveringProblem WithRelation() {
  CoveringProblem problem = Plain({3, 3, 2, 2});
  problem.relations.push_back({{0, 1, 2}, {{0, 0, 0}, {0, 1, 1}, {1, 2, 0}, {2, 2, 1}, {2, 0, 0}}});
  return problem;
}

TEST(CoveringTest, RowsKeepRelations) {
  const CoveringProblem problem = WithRelation();
  for (const CoveringRow& row : CoveringArray(problem, {})) EXPECT_TRUE(Allowed(problem, row));
  EXPECT_FALSE(Allowed(problem, {0, 0, 1, 0}));
}

TEST(CoveringTest, ImpossiblePairsAreCountedNotMissed) {
  const CoveringProblem problem = WithRelation();
  const CoverageCount count = CountCoverage(problem, CoveringArray(problem, {}), 2);
  // Pairs within the relation: f0f1 5 of 9, f0f2 5 of 6, f1f2 4 of 6; with f3: 6 + 6 + 4, all
  // possible.
  EXPECT_EQ(count.possible, 5 + 5 + 4 + 16);
  EXPECT_EQ(count.impossible, 4 + 1 + 2);
  EXPECT_EQ(count.covered, count.possible);
  EXPECT_TRUE(count.missing.empty());
}

TEST(CoveringTest, MissingPairsAreNamed) {
  const CoveringProblem problem = Plain({2, 2});
  const CoverageCount count = CountCoverage(problem, {{0, 0}, {1, 1}, {1, 0}}, 2);
  EXPECT_EQ(count.covered, 3);
  EXPECT_EQ(count.missing, (std::vector<std::string>{"f0=0 f1=1"}));
}

TEST(CoveringTest, OfManyMissingPairsTenAreNamedAndTheOthersCounted) {
  const CoverageCount count = CountCoverage(Plain({4, 4}), {{0, 0}}, 2);
  ASSERT_EQ(count.missing.size(), 11u);
  EXPECT_EQ(count.missing.back(), "and 5 more");
}

TEST(CoveringTest, UnknownValuesCoverNothing) {
  EXPECT_EQ(CountCoverage(Plain({2, 2}), {{0, -1}, {-1, 1}}, 2).covered, 0);
}

TEST(CoveringTest, FocusLimitsWhatIsCovered) {
  CoveringOptions options;
  options.strength = 3;
  options.focus = {0, 2, 3};
  const auto rows = CoveringArray(Plain({2, 5, 2, 2}), options);
  EXPECT_EQ(Distinct(rows, {0, 2, 3}), 8u);
  EXPECT_LE(rows.size(), 10u);
}

TEST(CoveringTest, WhatGivenRowsCoverIsNotCoveredAgain) {
  const CoveringProblem problem = Plain({4, 4, 2});
  CoveringOptions options;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      if (a + b < 6) options.given.push_back({a, b, -1});
    }
  }
  const auto rows = CoveringArray(problem, options);
  EXPECT_LT(rows.size(), 16u);
  auto all = options.given;
  all.insert(all.end(), rows.begin(), rows.end());
  EXPECT_EQ(CountCoverage(problem, all, 2).covered, 4 * 4 + 2 * 4 * 2);
}

TEST(CoveringTest, TiesGoToTheBaseAndNothingElseDoes) {
  CoveringOptions options;
  options.base = {1, -1, 0};
  const auto rows = CoveringArray(Plain({2, 5, 5}), options);
  std::set<int> outside;  // what the factor without a preference has where nothing asks for it
  options.focus = {0, 2};
  for (options.seed = 1; options.seed < 20; ++options.seed) {
    for (const CoveringRow& row : CoveringArray(Plain({2, 5, 5}), options)) outside.insert(row[1]);
  }
  EXPECT_EQ(outside.size(), 5u) << "-1 prefers no value";
  EXPECT_EQ(Distinct(rows, {1, 2}), 25u);
  const auto with = [&](int factor, int value) {
    return std::count_if(rows.begin(), rows.end(), [&](const CoveringRow& row) {
      return row[static_cast<size_t>(factor)] == value;
    });
  };
  EXPECT_EQ(with(0, 0), 5) << "no more often than its pairs need it";
}

TEST(CoveringTest, SameSeedSameRows) {
  const CoveringProblem problem = Plain({3, 3, 3, 3});
  CoveringOptions other;
  other.seed = 2;
  EXPECT_EQ(CoveringArray(problem, {}), CoveringArray(problem, {}));
  EXPECT_NE(CoveringArray(problem, {}), CoveringArray(problem, other));
}

TEST(CoveringTest, RandomRowsAreAllowed) {
  const CoveringProblem problem = WithRelation();
  for (uint64_t seed = 0; seed < 100; ++seed)
    EXPECT_TRUE(Allowed(problem, RandomRow(problem, seed)));
}

// Of eleven tuples one has value 1 of the first factor, and one value 10 of the second.
TEST(CoveringTest, AValueThatFewTuplesHaveIsNotRare) {
  CoveringProblem problem = Plain({2, 11});
  Relation relation{{0, 1}, {{1, 10}}};
  for (uint8_t value = 0; value < 10; ++value)
    relation.tuples.Add(std::array<uint8_t, 2>{0, value});
  problem.relations = {relation};
  constexpr int kRows = 1000;
  int rare = 0;
  for (uint64_t seed = 0; seed < kRows; ++seed) rare += RandomRow(problem, seed)[0];
  EXPECT_GT(rare, kRows / 5);  // drawn first, in half of the rows, it is as likely as value 0
  EXPECT_LT(rare, kRows / 2);
}

TEST(CoveringTest, OtherStrengthsAreRefused) {
  CoveringOptions options;
  options.strength = 4;
  EXPECT_THROW(CoveringArray(Plain({2, 2}), options), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
