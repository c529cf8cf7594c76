#include "conformance/cases/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace shardproof {
namespace {

using Lists = std::vector<RankList>;

Lists FamilyOf(const std::string& id, const std::string& name) {
  const Case c = ParseId(id);
  for (const GroupFamily& family : GroupFamilies(c.instances[0], c.world)) {
    if (family.name == name) return family.lists;
  }
  return {};
}

Lists FirstOf(Lists lists, size_t n) {
  lists.resize(std::min(n, lists.size()));
  return lists;
}

// Golden vectors: the worked examples of the published implementation's rank generator.

TEST(GridTest, TensorAndPipelineWithExperts) {
  const std::string id = "w8.ddp.tp2.ep2.pp2";
  EXPECT_EQ(FamilyOf(id, "tp"), (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(FamilyOf(id, "dp_cp"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(FamilyOf(id, "pp"), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(FamilyOf(id, "ep"), (Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(FamilyOf(id, "expt_dp"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(GridTest, ContextParallelIsFoldedIntoExpertData) {
  const std::string id = "w16.ddp.tp2.cp2.ep4";
  EXPECT_EQ(FirstOf(FamilyOf(id, "cp"), 4), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(FamilyOf(id, "dp"),
            (Lists{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(FamilyOf(id, "dp_cp"),
            (Lists{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}));
  EXPECT_EQ(FamilyOf(id, "ep"),
            (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(FamilyOf(id, "expt_dp"), FamilyOf(id, "dp"));
}

TEST(GridTest, PipelineBeforeDataMovesDataGroupsApart) {
  const std::string id = "w8.ddp.tp2.pp2.etp2.order=tp-pp-dp";
  EXPECT_EQ(FamilyOf(id, "dp"), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(FamilyOf(id, "pp"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(FamilyOf("w8.ddp.tp2.pp2.etp2", "dp"), (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(GridTest, HybridCutsDenseAndExpertLists) {
  const std::string id = "w8.zero3.n2.ep2";
  EXPECT_EQ(FamilyOf(id, "intra_dp_cp"), (Lists{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(FamilyOf(id, "expt_dp"), (Lists{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(FamilyOf(id, "intra_expt_dp"), (Lists{{0, 2}, {4, 6}, {1, 3}, {5, 7}}));
  EXPECT_EQ(FamilyOf(id, "inter_expt_dp"), (Lists{{0, 4}, {2, 6}, {1, 5}, {3, 7}}));
  EXPECT_EQ(FamilyOf(id, "inter_dp_cp"), (Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(GridTest, HybridWithTensorParallelKeepsStride) {
  const std::string id = "w16.zero3.n2.tp2.etp2";
  EXPECT_EQ(FamilyOf(id, "intra_dp_cp"),
            (Lists{{0, 2, 4, 6}, {8, 10, 12, 14}, {1, 3, 5, 7}, {9, 11, 13, 15}}));
  EXPECT_EQ(FirstOf(FamilyOf(id, "inter_dp_cp"), 2), (Lists{{0, 8}, {2, 10}}));
}

TEST(GridTest, OffsetMovesEveryRank) {
  EXPECT_EQ(FamilyOf("w8.zero3.at2.tp2.etp2", "dp_cp"), (Lists{{2, 4, 6}, {3, 5, 7}}));
  EXPECT_EQ(FamilyOf("w8.zero3.span4.tp2.etp2", "tp"), (Lists{{0, 1}, {2, 3}}));
}

TEST(GridTest, TwinHasMembersOfReducingGroup) {
  EXPECT_EQ(FamilyOf("w8.zero3.twin", "dp_cp_ag"), FamilyOf("w8.zero3.twin", "dp_cp"));
  EXPECT_EQ(FamilyOf("w8.zero3.n2.twin", "dp_cp_ag"), FamilyOf("w8.zero3.n2.twin", "intra_dp_cp"));
  const std::string experts = "w8.zero3.n2.twin.ep2.experts";
  EXPECT_EQ(FamilyOf(experts, "expt_dp_ag"), FamilyOf(experts, "intra_expt_dp"));
  const std::string order = "w8.zero3.twin.tp2.pp2.etp2.order=tp-pp-dp";
  EXPECT_EQ(FamilyOf(order, "dp_cp_ag"), FamilyOf(order, "dp_cp"));
}

TEST(GridTest, TwinIsAbsentUnlessAskedFor) {
  EXPECT_TRUE(FamilyOf("w8.zero3", "dp_cp_ag").empty());
  EXPECT_TRUE(FamilyOf("w8.zero3.twin", "expt_dp_ag").empty());  // no experts
}

TEST(GridTest, WrongTwinsDifferAsTheirWordSays) {
  EXPECT_EQ(FamilyOf("w4.zero3.twin=permuted", "dp_cp_ag"), (Lists{{1, 2, 3, 0}}));
  EXPECT_EQ(FamilyOf("w4.zero3.twin=short", "dp_cp_ag"), (Lists{{0, 1, 2}}));
  EXPECT_EQ(FamilyOf("w4.zero3.n2.twin=full_span", "dp_cp_ag"), (Lists{{0, 1, 2, 3}}));
  EXPECT_EQ(FamilyOf("w8.zero3.twin=default_order.tp2.pp2.etp2.order=tp-pp-dp", "dp_cp_ag"),
            (Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
}

TEST(GridTest, IndexInFindsListAndPosition) {
  const GroupFamily family{"tp", {{0, 1}, {2, 3}}};
  const RankList* list = nullptr;
  EXPECT_EQ(IndexIn(family, 3, &list), 1);
  EXPECT_EQ(*list, (RankList{2, 3}));
  EXPECT_EQ(IndexIn(family, 4, &list), -1);
  EXPECT_EQ(list, nullptr);
}

// Groups by coordinates, found rank by rank instead of in closed form.
Lists BruteForce(const RankGrid& grid, const std::set<std::string>& names) {
  int32_t span = 1;
  for (const GridAxis& axis : grid.axes) span *= axis.size;
  std::map<std::vector<int32_t>, RankList> by_outside;  // key: digits outside, largest stride first
  for (int32_t rank = 0; rank < span; ++rank) {
    std::vector<int32_t> outside;
    int32_t rest = rank;
    for (const GridAxis& axis : grid.axes) {
      if (names.count(axis.name) == 0) outside.push_back(rest % axis.size);
      rest /= axis.size;
    }
    std::reverse(outside.begin(), outside.end());
    by_outside[outside].push_back(grid.offset + rank);
  }
  Lists lists;
  for (const auto& [key, list] : by_outside) lists.push_back(list);
  return lists;
}

TEST(GridTest, ClosedFormEqualsEnumerationForAnyOrder) {
  std::mt19937 random(7);
  std::vector<std::string> names{"tp", "cp", "ep", "dp", "pp"};
  for (int trial = 0; trial < 500; ++trial) {
    std::shuffle(names.begin(), names.end(), random);
    RankGrid grid;
    grid.offset = static_cast<int32_t>(random() % 6);
    std::set<std::string> inside;
    for (const std::string& name : names) {
      grid.axes.push_back({name, static_cast<int32_t>(1 + random() % 3)});
      if (random() % 2 == 0) inside.insert(name);
    }
    ASSERT_EQ(grid.Groups(inside), BruteForce(grid, inside));
  }
}

TEST(FamilyIndexTest, FindsWhatIndexInFinds) {
  const Case c = ParseId("w12.at2.zero3.tp2.etp2.ep1");
  for (const GroupFamily& family : GroupFamilies(c.instances[0], c.world)) {
    const FamilyIndex index(family);
    for (int32_t rank = 0; rank < c.world + 3; ++rank) {
      const RankList* list = nullptr;
      EXPECT_EQ(index.Index(rank), IndexIn(family, rank, &list)) << family.name << " " << rank;
      EXPECT_EQ(index.List(rank), list);
    }
  }
}

}  // namespace
}  // namespace shardproof
