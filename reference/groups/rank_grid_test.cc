#include "reference/groups/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "reference/groups/hybrid.h"
#include "reference/groups/training_grid.h"

namespace reference {
namespace {

RankLists Named(const std::vector<GroupFamily>& families, const std::string& name) {
  return FamilyNamed(families, name).lists;
}

GridSizes Sizes(int32_t world) {
  GridSizes sizes;
  sizes.span = world;
  return sizes;
}

template <class F>
std::string MessageOf(F&& body) {
  try {
    body();
  } catch (const GridError& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_GRID_ERROR(statement, part)                                      \
  do {                                                                          \
    const std::string message = MessageOf([&] { statement; });                  \
    EXPECT_NE(message.find(part), std::string::npos) << "message: " << message; \
  } while (0)

// ------------------------------------------------------------------ golden vectors

TEST(RankGridGolden, TensorPipelineAndExpertParallel) {
  GridSizes sizes = Sizes(8);
  sizes.tp = 2, sizes.pp = 2, sizes.ep = 2;
  const auto f = FamiliesOf(sizes, 8);
  EXPECT_EQ(Named(f, "tp"), (RankLists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(Named(f, "dp"), (RankLists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(Named(f, "dp_cp"), Named(f, "dp"));
  EXPECT_EQ(Named(f, "pp"), (RankLists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(Named(f, "ep"), (RankLists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(Named(f, "expt_dp"), (RankLists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  const RankGrid dense({2, 2, 2}, {"tp", "dp", "pp"}, 0, 8);
  EXPECT_EQ(dense.Groups("tp-pp"), (RankLists{{0, 1, 4, 5}, {2, 3, 6, 7}}));
}

TEST(RankGridGolden, ExpertsShardOverFewerRanksThanDenseParameters) {
  GridSizes sizes = Sizes(16);
  sizes.tp = 2, sizes.cp = 2, sizes.ep = 4;
  const auto f = FamiliesOf(sizes, 16);
  EXPECT_EQ(Named(f, "cp")[0], (RankList{0, 2}));
  EXPECT_EQ(Named(f, "cp")[2], (RankList{4, 6}));
  EXPECT_EQ(Named(f, "dp"),
            (RankLists{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(Named(f, "dp_cp"),
            (RankLists{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}));
  EXPECT_EQ(Named(f, "ep")[1], (RankList{4, 5, 6, 7}));
  EXPECT_EQ(Named(f, "expt_dp"),
            (RankLists{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(RankGridGolden, PipelineBeforeDataChangesTheGroups) {
  GridSizes sizes = Sizes(8);
  sizes.tp = 2, sizes.pp = 2, sizes.etp = 2;
  const RankLists usual = Named(FamiliesOf(sizes, 8), "dp");
  sizes.order = "tp-pp-dp-cp-ep";
  const auto f = FamiliesOf(sizes, 8);
  EXPECT_EQ(Named(f, "dp"), (RankLists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(Named(f, "pp"), (RankLists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(usual, (RankLists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(TwinOf(f, false).lists, Named(f, "dp_cp"))
      << "a twin follows the order in use, not the default one";
}

TEST(RankGridGolden, HybridSplitsDenseAndExpertGroupsSeparately) {
  GridSizes sizes = Sizes(8);
  sizes.ep = 2, sizes.optimizer_instances = 2;
  const auto f = FamiliesOf(sizes, 8);
  EXPECT_EQ(Named(f, "dp_cp"), (RankLists{{0, 1, 2, 3, 4, 5, 6, 7}}));
  EXPECT_EQ(Named(f, "intra_dp_cp"), (RankLists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(Named(f, "inter_dp_cp"), (RankLists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(Named(f, "expt_dp"), (RankLists{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(Named(f, "intra_expt_dp"), (RankLists{{0, 2}, {4, 6}, {1, 3}, {5, 7}}));
  EXPECT_EQ(Named(f, "inter_expt_dp"), (RankLists{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
  EXPECT_EQ(TwinOf(f, false).lists, Named(f, "intra_dp_cp"))
      << "the twin of what reduces the buffer";
  EXPECT_EQ(TwinOf(f, true).lists, Named(f, "intra_expt_dp"));
}

TEST(RankGridGolden, AnotherAxisBetweenTensorAndData) {
  const RankGrid grid = RankGrid::FromOrder(
      "tp-gtp-cp-dp-pp", {{"tp", 1}, {"gtp", 2}, {"cp", 1}, {"dp", 4}, {"pp", 1}}, 0, 8);
  EXPECT_EQ(grid.Groups("dp-cp"), (RankLists{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

TEST(RankGridGolden, HybridOfStridedGroups) {
  GridSizes sizes = Sizes(16);
  sizes.tp = 2, sizes.etp = 2, sizes.optimizer_instances = 2;
  const auto f = FamiliesOf(sizes, 16);
  EXPECT_EQ(Named(f, "intra_dp_cp"),
            (RankLists{{0, 2, 4, 6}, {8, 10, 12, 14}, {1, 3, 5, 7}, {9, 11, 13, 15}}));
  EXPECT_EQ(Named(f, "inter_dp_cp")[0], (RankList{0, 8}));
  EXPECT_EQ(Named(f, "inter_dp_cp")[1], (RankList{2, 10}));
}

TEST(LogicalShard, OuterRanksSubdivideTheInnerShard) {
  std::vector<int32_t> shards;
  for (int32_t outer = 0; outer < 2; ++outer) {
    for (int32_t inner = 0; inner < 4; ++inner) shards.push_back(LogicalShard(inner, outer, 2));
  }
  EXPECT_EQ(shards, (std::vector<int32_t>{0, 2, 4, 6, 1, 3, 5, 7}));
}

// ------------------------------------------------------------------ against another enumeration

// Sorts all ranks by the digits outside the set, then inside it: no strides, no mixed radix.
RankLists GroupedByCoordinates(const std::vector<int32_t>& sizes, const std::vector<bool>& in_set,
                               int32_t offset) {
  int32_t total = 1;
  for (int32_t size : sizes) total *= size;
  std::map<std::vector<int32_t>, std::map<std::vector<int32_t>, int32_t>> groups;
  std::vector<int32_t> digits(sizes.size());
  for (int32_t rank = 0; rank < total; ++rank) {
    std::vector<int32_t> outside, inside;
    for (size_t i = sizes.size(); i-- > 0;) (in_set[i] ? inside : outside).push_back(digits[i]);
    groups[outside][inside] = offset + rank;
    for (size_t i = 0; i < digits.size() && ++digits[i] == sizes[i]; ++i) digits[i] = 0;
  }
  RankLists lists;
  for (const auto& [outside, members] : groups) {
    RankList& list = lists.emplace_back();
    for (const auto& [inside, rank] : members) list.push_back(rank);
  }
  return lists;
}

TEST(RankGrid, EqualsAnIndependentEnumerationForRandomShapesOrdersAndOffsets) {
  std::mt19937 random(7);
  auto draw = [&](int32_t least, int32_t most) {
    return std::uniform_int_distribution<int32_t>(least, most)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
    std::shuffle(names.begin(), names.end(), random);
    std::vector<int32_t> sizes;
    std::vector<bool> in_set;
    std::vector<std::string> chosen;
    for (const std::string& name : names) {
      sizes.push_back(draw(1, 3));
      in_set.push_back(draw(0, 1) == 1);
      if (in_set.back()) chosen.push_back(name);
    }
    if (chosen.empty()) continue;
    std::shuffle(chosen.begin(), chosen.end(), random);
    std::string token;
    for (const std::string& name : chosen) token += (token.empty() ? "" : "-") + name;
    const int32_t offset = draw(0, 5);
    const RankGrid grid(sizes, names, offset, 3 * 3 * 3 * 3 * 3 + offset);
    ASSERT_EQ(grid.Groups(token), GroupedByCoordinates(sizes, in_set, offset))
        << token << ", trial " << trial;
  }
}

TEST(RankGrid, EveryRankOfTheSpanIsInExactlyOneGroup) {
  const RankGrid grid({2, 3, 2}, {"tp", "dp", "pp"}, 4, 16);
  for (const char* token : {"tp", "dp", "pp", "tp-dp", "pp-tp", "tp-dp-pp"}) {
    std::vector<int> seen(16);
    for (const RankList& list : grid.Groups(token)) {
      for (int32_t rank : list) ++seen[static_cast<size_t>(rank)];
    }
    for (int32_t rank = 0; rank < 16; ++rank)
      EXPECT_EQ(seen[static_cast<size_t>(rank)], rank >= 4 ? 1 : 0);
  }
}

TEST(RankGrid, OrderWithinATokenDoesNotMatter) {
  const RankGrid grid({2, 2, 2}, {"tp", "cp", "dp"}, 0, 8);
  EXPECT_EQ(grid.Groups("cp-dp"), grid.Groups("dp-cp"));
  EXPECT_EQ(grid.Groups("cp-dp"), (RankLists{{0, 2, 4, 6}, {1, 3, 5, 7}}));
}

TEST(RankGrid, AxesAreLowerCased) {
  EXPECT_EQ(RankGrid::FromOrder("TP-DP", {{"tp", 2}, {"dp", 2}}, 0, 4).Groups("Dp"),
            (RankLists{{0, 2}, {1, 3}}));
}

TEST(RankGrid, AxesOfSizeOneNeedNotBeNamed) {
  EXPECT_EQ(RankGrid::FromOrder("dp", {{"tp", 1}, {"dp", 3}}, 0, 3).Groups("tp"),
            (RankLists{{0}, {1}, {2}}));
}

// ------------------------------------------------------------------ refusals

TEST(RankGridErrors, SizesAndNamesDiffer) {
  EXPECT_GRID_ERROR(RankGrid({2, 2}, {"tp"}, 0, 4), "2 sizes for 1");
}
TEST(RankGridErrors, NoAxes) { EXPECT_GRID_ERROR(RankGrid({}, {}, 0, 4), "no axes"); }
TEST(RankGridErrors, RepeatedAxis) {
  EXPECT_GRID_ERROR(RankGrid({2, 2}, {"tp", "tp"}, 0, 4), "twice");
}
TEST(RankGridErrors, SizeZero) { EXPECT_GRID_ERROR(RankGrid({0}, {"tp"}, 0, 4), "tp has size 0"); }
TEST(RankGridErrors, NegativeSize) {
  EXPECT_GRID_ERROR(RankGrid({-2}, {"tp"}, 0, 4), "tp has size -2");
}
TEST(RankGridErrors, NegativeOffset) {
  EXPECT_GRID_ERROR(RankGrid({2}, {"tp"}, -1, 4), "rank_offset is -1");
}
TEST(RankGridErrors, OverSized) { EXPECT_GRID_ERROR(RankGrid({4}, {"tp"}, 1, 4), "over sized"); }
TEST(RankGridErrors, UnknownWorld) {
  EXPECT_GRID_ERROR(RankGrid({1}, {"tp"}, 0, 0), "world size is 0");
}
TEST(RankGridErrors, TooManyRanks) {
  EXPECT_GRID_ERROR(RankGrid({1 << 20, 1 << 20}, {"tp", "dp"}, 0, 4), "2^31");
}

TEST(RankGridErrors, LargeAxisMissingFromTheOrder) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("tp-pp", {{"tp", 1}, {"pp", 1}, {"dp", 2}}, 0, 2),
                    "does not name dp");
}
TEST(RankGridErrors, NameThatIsPartOfAnotherIsNotNamed) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("gtp-dp", {{"tp", 2}, {"gtp", 1}, {"dp", 1}}, 0, 2),
                    "does not name tp");
}
TEST(RankGridErrors, UnknownAxisInTheOrder) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("tp-xp", {{"tp", 1}}, 0, 1), "unknown axis xp");
}
TEST(RankGridErrors, RepeatedAxisInTheOrder) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("tp-tp", {{"tp", 1}}, 0, 1), "twice");
}
TEST(RankGridErrors, EmptyAxisInTheOrder) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("tp--dp", {{"tp", 1}, {"dp", 1}}, 0, 1), "empty axis");
}
TEST(RankGridErrors, ContextAndExpertAxesInOneGrid) {
  EXPECT_GRID_ERROR(RankGrid::FromOrder("cp-ep", {{"cp", 2}, {"ep", 2}}, 0, 4),
                    "cp = 2 and ep = 2");
}
TEST(RankGridErrors, UnknownAxisInATokenSet) {
  const RankGrid grid({2}, {"tp"}, 0, 2);
  EXPECT_GRID_ERROR(grid.Groups("dp"), "no axis dp");
}

TEST(TrainingGridErrors, WorldNotDivisible) {
  GridSizes sizes = Sizes(6);
  sizes.tp = 4;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 6), "tp * cp * pp = 4");
  sizes.tp = 1, sizes.ep = 4;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 6), "etp * ep * pp = 4");
}
TEST(TrainingGridErrors, SizeZero) {
  GridSizes sizes = Sizes(6);
  sizes.cp = 0;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 6), "cp = 0");
}
TEST(TrainingGridErrors, InstancesDoNotDivide) {
  GridSizes sizes = Sizes(6);
  sizes.optimizer_instances = 4;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 6), "num_optimizer_instances = 4");
  sizes = Sizes(8);
  sizes.ep = 4, sizes.optimizer_instances = 4;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 8), "expt_dp");
}
TEST(TrainingGridErrors, PipelineGroupsDiffer) {
  GridSizes sizes = Sizes(8);
  sizes.tp = 2, sizes.pp = 2, sizes.order = "tp-pp-dp";
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 8), "shared axes pp enumerate other groups");
}
TEST(TrainingGridErrors, OffsetBeyondTheWorld) {
  GridSizes sizes = Sizes(4);
  sizes.offset = 6;
  EXPECT_GRID_ERROR(FamiliesOf(sizes, 8), "over sized");
}

// ------------------------------------------------------------------ views

class ViewTest : public testing::Test {
 protected:
  RankGrid grid_{{2, 2, 2, 2}, {"tp", "cp", "dp", "pp"}, 0, 16};
};

TEST_F(ViewTest, ExpertGridOverTheSameRanks) {
  grid_.AddView("expert", {1, 4, 2, 2}, {"etp", "ep", "edp", "pp"}, {"pp"});
  EXPECT_EQ(grid_.Groups("ep", "expert")[0], (RankList{0, 1, 2, 3}));
  EXPECT_EQ(grid_.Groups("pp", "expert"), grid_.Groups("pp"));
}
TEST_F(ViewTest, DuplicateName) {
  grid_.AddView("v", {16}, {"all"}, {});
  EXPECT_GRID_ERROR(grid_.AddView("v", {16}, {"all"}, {}), "already registered");
}
TEST_F(ViewTest, LengthsDiffer) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {16}, {"a", "b"}, {}), "1 sizes for 2");
}
TEST_F(ViewTest, RepeatedAxis) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {4, 4}, {"a", "a"}, {}), "twice");
}
TEST_F(ViewTest, NonPositiveSize) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {-16}, {"a"}, {}), "size -16");
}
TEST_F(ViewTest, OtherSpan) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {8}, {"a"}, {}), "has 8 ranks");
}
TEST_F(ViewTest, RepeatedSharedAxis) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {8, 2}, {"a", "pp"}, {"pp", "pp"}), "shares an axis twice");
}
TEST_F(ViewTest, SharedAxisMissingInTheGrid) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {8, 2}, {"a", "b"}, {"a"}), "grid has no shared axis a");
}
TEST_F(ViewTest, SharedAxisMissingInTheView) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {16}, {"a"}, {"pp"}), "v has no shared axis pp");
}
TEST_F(ViewTest, SharedAxisEnumeratesOtherGroups) {
  EXPECT_GRID_ERROR(grid_.AddView("v", {2, 8}, {"pp", "a"}, {"pp"}), "enumerate other groups");
}
TEST_F(ViewTest, UnknownView) { EXPECT_GRID_ERROR(grid_.Groups("tp", "w"), "no view w"); }
TEST_F(ViewTest, NamelessView) {
  EXPECT_GRID_ERROR(grid_.AddView("", {16}, {"a"}, {}), "needs a name");
}

}  // namespace
}  // namespace reference
