// Properties of cases: ids, grids, covering arrays, derivation.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "conformance/cases/grid.h"
#include "property_tests/generators.h"
#include "property_tests/property.h"

namespace shardproof {
namespace {

std::shared_ptr<const CaseSpace> Space() {
  return std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 8, 16});
}

TEST(CasesPropertyTest, IdsReadBack) {
  const auto space = Space();
  EXPECT_TRUE(CheckProperty("ids read back", [&] {
    const GeneratedCase generated = *GenCase(space);
    RC_ASSERT(ParseId(Id(generated.spec)) == generated.spec);
  }));
}

TEST(CasesPropertyTest, DifferentRowsHaveDifferentIds) {
  const auto space = Space();
  EXPECT_TRUE(CheckProperty("different rows have different ids", [&] {
    const GeneratedCase one = *GenCase(space), other = *GenCase(space);
    RC_ASSERT((one.row == other.row) == (Id(one.spec) == Id(other.spec)));
  }));
}

std::shared_ptr<const ScheduleSpace> Schedules() {
  return std::make_shared<const ScheduleSpace>(std::vector<int32_t>{2, 4, 8});
}

TEST(CasesPropertyTest, SchedulesReadBackAndAreLegal) {
  const auto space = Schedules();
  EXPECT_TRUE(CheckProperty("schedules read back and are legal", [&] {
    const GeneratedCase generated = *GenCase(space);
    RC_ASSERT(generated.spec.illegal.empty());
    RC_ASSERT(ParseId(Id(generated.spec)) == generated.spec);
    RC_ASSERT(space->RowOf(generated.spec) == generated.row);
  }));
}

TEST(CasesPropertyTest, LayerWiseCasesReadBackAndAreLegal) {
  const auto space =
      std::make_shared<const LayerWiseSpace>(std::vector<int32_t>{1, 2, 3, 4, 5, 6, 8});
  EXPECT_TRUE(CheckProperty("layer-wise cases read back and are legal", [&] {
    const GeneratedCase generated = *GenCase(space);
    RC_ASSERT(generated.spec.illegal.empty());
    RC_ASSERT(ParseId(Id(generated.spec)) == generated.spec);
    RC_ASSERT(space->RowOf(generated.spec) == generated.row);
  }));
}

TEST(CasesPropertyTest, PipelinesReadBackAndAreLegal) {
  const auto space = std::make_shared<const PipelineSpace>(std::vector<int32_t>{2, 4, 8});
  EXPECT_TRUE(CheckProperty("pipelines read back and are legal", [&] {
    const GeneratedCase generated = *GenCase(space);
    RC_ASSERT(generated.spec.illegal.empty());
    RC_ASSERT(ParseId(Id(generated.spec)) == generated.spec);
    RC_ASSERT(space->RowOf(generated.spec) == generated.row);
  }));
}

// Whoever a sample starts on, each of its tokens finds every expert once among the ranks that sum
// that expert's gradient.
TEST(CasesPropertyTest, ExpertsMeetEachSampleOnce) {
  const auto space = Schedules();
  EXPECT_TRUE(CheckProperty("experts meet each sample once", [&] {
    const Case c = (*GenCase(space)).spec;
    const std::vector<GroupFamily> families = GroupFamilies(c.instances[0], c.world);
    const auto family = [&](const std::string& name) -> const GroupFamily& {
      return *std::find_if(families.begin(), families.end(),
                           [&](const GroupFamily& one) { return one.name == name; });
    };
    for (const RankList& list : family("expt_dp").lists) {
      std::vector<int> seen(static_cast<size_t>(DpCpSize(c.instances[0])), 0);
      for (int32_t rank : list) {
        const RankList* peers = nullptr;
        IndexIn(family("ep"), rank, &peers);
        for (int32_t peer : *peers)
          ++seen[static_cast<size_t>(IndexIn(family("dp_cp"), peer, nullptr))];
      }
      for (int count : seen) RC_ASSERT(count == 1);
    }
  }));
}

TEST(CasesPropertyTest, AnythingIsLegalIllegalOrRefused) {
  int legal = 0, illegal = 0;
  PropertyOptions options;
  options.evaluations = 2000;
  EXPECT_TRUE(CheckProperty(
      "anything is legal, illegal or refused",
      [&] {
        Case c = *GenAnyCase();
        try {
          Derive(c);
        } catch (const std::invalid_argument&) {
          return;
        }
        ++(c.illegal.empty() ? legal : illegal);
        RC_ASSERT(ParseId(Id(c)) == c);
        Case again = c;
        Derive(again);
        RC_ASSERT(again == c);  // deriving twice changes nothing
      },
      options));
  EXPECT_GT(legal, 200);
  EXPECT_GT(illegal, 200);
}

TEST(CasesPropertyTest, GarbageIsRefusedOrReadsBack) {
  EXPECT_TRUE(CheckProperty("garbage ids are refused or read back", [] {
    const std::string text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("wszk0123.+=pdnero-")));
    try {
      const Case c = ParseId("w8.ddp." + text);
      RC_ASSERT(ParseId(Id(c)) == c);
    } catch (const std::invalid_argument&) {
    }
  }));
}

// A grid with up to four ranks an axis, in any order.
RankGrid AnyGrid() {
  RankGrid grid;
  grid.offset = *rc::gen::inRange(0, 9);
  std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  while (!names.empty()) {
    const auto at = names.begin() + *rc::gen::inRange<int>(0, static_cast<int>(names.size()));
    grid.axes.push_back({*at, *rc::gen::inRange(1, 5)});
    names.erase(at);
  }
  return grid;
}

std::set<std::string> AnyAxes() {
  const auto bits = *rc::gen::inRange(0, 32);
  std::set<std::string> names;
  int bit = 0;
  for (const char* name : {"tp", "cp", "ep", "dp", "pp"}) {
    if ((bits >> bit++ & 1) != 0) names.insert(name);
  }
  return names;
}

TEST(GridPropertyTest, GroupsPartitionTheSpan) {
  EXPECT_TRUE(CheckProperty("groups partition the span", [] {
    const RankGrid grid = AnyGrid();
    int32_t span = 1;
    for (const GridAxis& axis : grid.axes) span *= axis.size;
    RankList all;
    for (const RankList& list : grid.Groups(AnyAxes())) {
      RC_ASSERT(std::is_sorted(list.begin(), list.end()));
      all.insert(all.end(), list.begin(), list.end());
    }
    std::sort(all.begin(), all.end());
    RC_ASSERT(static_cast<int32_t>(all.size()) == span);
    for (int32_t i = 0; i < span; ++i) RC_ASSERT(all[static_cast<size_t>(i)] == grid.offset + i);
  }));
}

TEST(GridPropertyTest, GroupsOfDisjointAxesMeetInAtMostOneRank) {
  EXPECT_TRUE(CheckProperty("disjoint axes meet at most once", [] {
    const RankGrid grid = AnyGrid();
    const std::set<std::string> axes = AnyAxes();
    std::set<std::string> others;
    for (const std::string& name : AnyAxes()) {
      if (axes.count(name) == 0) others.insert(name);
    }
    for (const RankList& a : grid.Groups(axes)) {
      for (const RankList& b : grid.Groups(others)) {
        RankList both;
        std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
        RC_ASSERT(both.size() <= 1u);
      }
    }
  }));
}

TEST(GridPropertyTest, InnerAndOuterTileTheFullList) {
  EXPECT_TRUE(CheckProperty("inner and outer tile the full list", [] {
    const int32_t n = *rc::gen::inRange(1, 6), inner = *rc::gen::inRange(1, 6);
    RankList full(static_cast<size_t>(n * inner));
    for (size_t i = 0; i < full.size(); ++i) full[i] = static_cast<int32_t>(3 * i + 1);
    const auto chunks = InnerChunks({full}, n), outers = OuterLists({full}, n);
    RC_ASSERT(static_cast<int32_t>(chunks.size()) == n);
    RC_ASSERT(static_cast<int32_t>(outers.size()) == inner);
    for (size_t i = 0; i < outers.size(); ++i) {
      for (size_t o = 0; o < chunks.size(); ++o) RC_ASSERT(outers[i][o] == chunks[o][i]);
    }
  }));
}

TEST(GridPropertyTest, FamiliesOfCasesCoverEachRankOnce) {
  const auto space = Space();
  EXPECT_TRUE(CheckProperty("each family holds each rank of the grid once", [&] {
    const GeneratedCase generated = *GenCase(space);
    const InstanceSpec& spec = generated.spec.instances[0];
    for (const GroupFamily& family : GroupFamilies(spec, generated.spec.world)) {
      std::multiset<int32_t> ranks;
      for (const RankList& list : family.lists) ranks.insert(list.begin(), list.end());
      RC_ASSERT(static_cast<int32_t>(ranks.size()) == spec.span);
      RC_ASSERT(*ranks.begin() == spec.offset);
      RC_ASSERT(std::set<int32_t>(ranks.begin(), ranks.end()).size() == ranks.size());
    }
  }));
}

// Up to six small factors, with a relation over the first three that keeps some of their tuples.
CoveringProblem AnyProblem() {
  CoveringProblem problem;
  const int factors = *rc::gen::inRange(4, 7);
  for (int f = 0; f < factors; ++f) {
    problem.factors.push_back({"f" + std::to_string(f), {}});
    const int values = *rc::gen::inRange(1, 5);
    for (int v = 0; v < values; ++v) problem.factors.back().values.push_back(std::to_string(v));
  }
  Relation relation{{0, 1, 2}, {}};
  const auto size = [&](size_t f) {
    return static_cast<uint8_t>(problem.factors[f].values.size());
  };
  for (uint8_t a = 0; a < size(0); ++a) {
    for (uint8_t b = 0; b < size(1); ++b) {
      for (uint8_t c = 0; c < size(2); ++c) {
        if (relation.tuples.empty() || *rc::gen::inRange(0, 3) == 0)
          relation.tuples.Add(std::array{a, b, c});
      }
    }
  }
  problem.relations.push_back(relation);
  return problem;
}

TEST(CoveringPropertyTest, ArraysAreCompleteAndAllowed) {
  EXPECT_TRUE(CheckProperty("covering arrays are complete and allowed", [] {
    const CoveringProblem problem = AnyProblem();
    CoveringOptions options;
    options.strength = *rc::gen::inRange(2, 4);
    options.seed = *rc::gen::arbitrary<uint64_t>();
    options.candidates = 3;
    const auto rows = CoveringArray(problem, options);
    for (const CoveringRow& row : rows) RC_ASSERT(Allowed(problem, row));
    const CoverageCount count = CountCoverage(problem, rows, options.strength);
    RC_ASSERT(count.covered == count.possible);
  }));
}

TEST(CoveringPropertyTest, ShrunkRowsAreAllowed) {
  const auto space = Space();
  EXPECT_TRUE(CheckProperty("shrunk rows are allowed", [&] {
    const rc::Random random(*rc::gen::arbitrary<uint64_t>());
    const auto shrinkable = GenRow(space)(random);
    auto shrinks = shrinkable.shrinks();
    for (auto one = shrinks.next(); one; one = shrinks.next()) {
      const CoveringRow row = one->value();
      RC_ASSERT(Allowed(space->problem(), row));
      RC_ASSERT(row < shrinkable.value());
    }
  }));
}

}  // namespace
}  // namespace shardproof
