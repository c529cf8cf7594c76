#include "reference/groups/collection.h"

#include <gtest/gtest.h>

namespace reference {
namespace {

// Communicators without a host: the handle only has to be there.
GroupCollection CollectionOf(const GridSizes& sizes, int32_t world, int32_t rank, bool twins,
                             const GroupFamily& instead = {}) {
  std::vector<GroupFamily> families = FamiliesOf(sizes, world);
  if (twins) {
    families.push_back(TwinOf(families, false));
    families.push_back(TwinOf(families, true));
  }
  GroupCollection collection;
  for (const GroupFamily& family : families) {
    const RankList members =
        family.name == instead.name ? instead.lists[0] : ListOf(family.lists, rank);
    const auto at = std::find(members.begin(), members.end(), rank);
    collection.Set({family.name, reinterpret_cast<spf_group>(uintptr_t{1}),
                    static_cast<int32_t>(at - members.begin()), members});
  }
  return collection;
}

GridSizes EightRanks(int32_t instances) {
  GridSizes sizes;
  sizes.span = 8, sizes.ep = 2, sizes.optimizer_instances = instances;
  return sizes;
}

template <class F>
std::string MessageOf(F&& body) {
  try {
    body();
  } catch (const GroupError& error) {
    return error.what();
  }
  return "";
}

TEST(GroupCollection, DeclaredButNotProvidedIsAbsent) {
  GroupCollection collection;
  EXPECT_FALSE(collection.Get("dp_cp_ag"));
}

TEST(GroupCollection, UndeclaredNameIsAnError) {
  GroupCollection collection;
  EXPECT_NE(MessageOf([&] { collection.Get("dp_cpp"); }).find("unknown group name dp_cpp"),
            std::string::npos);
  EXPECT_NE(MessageOf([&] { collection.Set({"dp_cpp", nullptr, 0, {}}); }), "");
}

TEST(GroupCollection, AGroupIsSetOnce) {
  GroupCollection collection = CollectionOf(EightRanks(1), 8, 0, false);
  EXPECT_NE(MessageOf([&] {
              collection.Set(collection.Get("dp_cp"));
            }).find("dp_cp was provided or created before"),
            std::string::npos);
}

TEST(GroupCollection, LookupBeforeCreationIsAnError) {
  EXPECT_NE(MessageOf([] { GroupCollection().Require("dp_cp"); }).find("dp_cp is needed"),
            std::string::npos);
}

TEST(PickGroups, WithoutTwinsGathersRunOnTheReducingGroup) {
  const EngineGroups groups =
      PickGroups(CollectionOf(EightRanks(1), 8, 3, true), {true, false, false, 1});
  EXPECT_EQ(groups.dense.gather.name, "dp_cp")
      << "a twin that was provided but not asked for is not used";
  EXPECT_EQ(groups.expert->gather.name, "expt_dp");
  EXPECT_EQ(groups.dense.total, 8);
  EXPECT_EQ(groups.expert->total, 4);
  EXPECT_FALSE(groups.dense.outer);
}

TEST(PickGroups, RanksOfOtherShardsWhereParametersAreSplit) {
  GridSizes sizes = EightRanks(1);
  sizes.tp = 2, sizes.etp = 2, sizes.ep = 1;
  GroupDemand demand{true, false, false, 1};
  EXPECT_FALSE(PickGroups(CollectionOf(sizes, 8, 3, false), demand).tp) << "not asked for";
  demand.split_params = true;
  const EngineGroups groups = PickGroups(CollectionOf(sizes, 8, 3, false), demand);
  EXPECT_EQ(groups.tp.members, (RankList{2, 3}));
  EXPECT_EQ(groups.tp.rank, 1);
  EXPECT_EQ(groups.expert_tp.name, "expt_tp");
  GroupCollection without;
  without.Set({"dp_cp", reinterpret_cast<spf_group>(uintptr_t{1}), 0, {0}});
  demand.experts = false;
  EXPECT_NE(MessageOf([&] { PickGroups(without, demand); }).find("tp is needed"),
            std::string::npos);
}

TEST(PickGroups, TwinsOfOneKindOnly) {
  const GroupCollection collection = CollectionOf(EightRanks(1), 8, 3, true);
  const EngineGroups dense = PickGroups(collection, {true, true, false, 1});
  EXPECT_EQ(dense.dense.gather.name + " " + dense.expert->gather.name, "dp_cp_ag expt_dp");
  const EngineGroups experts = PickGroups(collection, {true, false, true, 1});
  EXPECT_EQ(experts.dense.gather.name + " " + experts.expert->gather.name, "dp_cp expt_dp_ag");
}

TEST(PickGroups, TwinsOfTheInnerGroupsUnderHsdp) {
  const EngineGroups groups =
      PickGroups(CollectionOf(EightRanks(2), 8, 5, true), {true, true, true, 2});
  EXPECT_EQ(groups.dense.reduce.name, "intra_dp_cp");
  EXPECT_EQ(groups.dense.gather.name, "dp_cp_ag");
  EXPECT_EQ(groups.dense.gather.members, (RankList{4, 5, 6, 7}));
  EXPECT_EQ(groups.dense.outer.members, (RankList{1, 5}));
  EXPECT_EQ(groups.expert->gather.members, (RankList{5, 7}));
  EXPECT_EQ(groups.dense.total, 8);
}

TEST(PickGroups, DenseModelNeedsNoExpertGroups) {
  GroupCollection collection;
  collection.Set({"dp_cp", reinterpret_cast<spf_group>(uintptr_t{1}), 0, {0, 1}});
  EXPECT_FALSE(PickGroups(collection, {false, false, false, 1}).expert);
  EXPECT_NE(MessageOf([&] {
              PickGroups(collection, {true, false, false, 1});
            }).find("expt_dp"),
            std::string::npos);
}

class WrongTwin : public testing::TestWithParam<RankList> {};

TEST_P(WrongTwin, IsRefusedWithExpectedAndGivenMembers) {
  for (int32_t rank = 0; rank < 8; ++rank) {
    const GroupCollection collection =
        CollectionOf(EightRanks(2), 8, rank, true, {"dp_cp_ag", {GetParam()}});
    const std::string message = MessageOf([&] { PickGroups(collection, {true, true, true, 2}); });
    const std::string expected = Listed(collection.Get("intra_dp_cp").members);
    EXPECT_NE(message.find("dp_cp_ag must have the members " + expected), std::string::npos)
        << message;
    EXPECT_NE(message.find("given: " + Listed(GetParam())), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, WrongTwin,
    testing::Values(RankList{0, 1, 2, 3, 4, 5, 6, 7},  // full span instead of inner
                    RankList{1, 0, 2, 3},              // permuted: same set, other shard owners
                    RankList{0, 2, 4, 6},              // another order of axes
                    RankList{0, 1, 2}));               // short

TEST(PickGroups, TwinThatWasAskedForButNotProvidedIsRefused) {
  EXPECT_NE(MessageOf([] {
              PickGroups(CollectionOf(EightRanks(1), 8, 0, false), {false, true, true, 1});
            }).find("dp_cp_ag"),
            std::string::npos);
}

GroupDemand ReshardDemand(int32_t n) {
  GroupDemand demand;
  demand.optimizer_instances = 2;
  demand.reshard_after_forward = n;
  return demand;
}

EngineGroups PickWithParts(const RankList& given, int32_t n) {
  GroupCollection collection = CollectionOf(EightRanks(2), 8, 5, false);
  collection.Set({"dp_cp_reshard", reinterpret_cast<spf_group>(uintptr_t{1}), 1, given});
  return PickGroups(collection, ReshardDemand(n));
}

TEST(PickGroups, RanksThatShareOutPartsAreNeighboursInTheInnerGroup) {
  EXPECT_EQ(PickWithParts({4, 5}, 2).dense.part.members, (RankList{4, 5}));
  for (const RankList& wrong : {RankList{1, 5}, RankList{5, 6}, RankList{4, 5, 6, 7}}) {
    EXPECT_NE(MessageOf([&] { PickWithParts(wrong, 2); }).find("must have the members [4, 5]"),
              std::string::npos);
  }
  for (const int32_t n : {3, 4, 8}) EXPECT_THROW(PickWithParts({4, 5}, n), GridError) << n;
}

TEST(PickGroups, WrongInnerGroupIsRefused) {
  const GroupCollection collection =
      CollectionOf(EightRanks(2), 8, 0, false, {"intra_dp_cp", {{0, 2, 4, 6}}});
  EXPECT_NE(MessageOf([&] {
              PickGroups(collection, {false, false, false, 2});
            }).find("intra_dp_cp"),
            std::string::npos);
}

TEST(PickGroups, HybridNeedsInnerAndOuterGroups) {
  GroupCollection collection = CollectionOf(EightRanks(1), 8, 0, false);
  EXPECT_NE(MessageOf([&] {
              PickGroups(collection, {false, false, false, 2});
            }).find("intra_dp_cp"),
            std::string::npos);
}

}  // namespace
}  // namespace reference
