#include "conformance/cases/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/space.h"

namespace shardproof {
namespace {

std::vector<std::string> Ids(const std::vector<Case>& cases) {
  std::vector<std::string> ids;
  for (const Case& c : cases) ids.push_back(Id(c));
  return ids;
}

void ExpectComplete(const CoverageReport& report) {
  EXPECT_EQ(report.count.covered, report.count.possible) << report.Text();
  EXPECT_GT(report.count.possible, 4000);
}

TEST(ProfilesTest, CoreCoversEveryPair) { ExpectComplete(Coverage(Profile("core", "sim"), 2)); }

TEST(ProfilesTest, CoreCoversEveryPairForAnySeed) {
  ExpectComplete(Coverage(Profile("core", "sim", 4711), 2));
}

TEST(ProfilesTest, FullCoversEveryTriple) { ExpectComplete(Coverage(Profile("full", "sim"), 3)); }

TEST(ProfilesTest, FullOnMpiCoversEveryTriple) {
  ExpectComplete(Coverage(Profile("full", "mpi"), 3, SpaceWorlds("mpi")));
}

TEST(ProfilesTest, MpiCoreCoversEveryPairOfEightRanks) {
  ExpectComplete(Coverage(Profile("core", "mpi"), 2, {8}));
}

TEST(ProfilesTest, CoreHasEnoughCases) {
  EXPECT_GE(Profile("core", "sim").size(), 300u);
  const std::vector<Case> mpi = Profile("core", "mpi");
  EXPECT_GE(mpi.size(), 60u);
  std::set<int32_t> worlds;
  for (const Case& c : mpi) worlds.insert(c.world);
  for (int32_t world : {3, 5, 6, 8}) EXPECT_EQ(worlds.count(world), 1u) << world;
  EXPECT_LE(*worlds.rbegin(), 8);
}

TEST(ProfilesTest, SmokeIsAHandful) { EXPECT_LE(Profile("smoke", "mpi").size(), 15u); }

TEST(ProfilesTest, CasesAreDistinctAndReadBack) {
  for (const char* fabric : {"sim", "mpi"}) {
    std::set<std::string> ids;
    for (const Case& c : Profile("core", fabric)) {
      EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
      EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
    }
  }
}

TEST(ProfilesTest, SameSeedSameCases) {
  EXPECT_EQ(Ids(Profile("core", "sim", 3)), Ids(Profile("core", "sim", 3)));
  EXPECT_NE(Ids(Profile("core", "sim", 3)), Ids(Profile("core", "sim", 4)));
}

TEST(ProfilesTest, FullContainsCore) {
  std::vector<std::string> core = Ids(Profile("core", "sim")), full = Ids(Profile("full", "sim"));
  std::sort(core.begin(), core.end());
  std::sort(full.begin(), full.end());
  EXPECT_TRUE(std::includes(full.begin(), full.end(), core.begin(), core.end()));
}

TEST(ProfilesTest, UnknownNamesAreRefused) {
  EXPECT_THROW(Profile("huge", "sim"), std::invalid_argument);
  EXPECT_THROW(Profile("core", "gpu"), std::invalid_argument);
}

TEST(ProfilesTest, RowsAndCasesConvertBothWays) {
  const CaseSpace space({1, 2, 3, 4, 8});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CoveringRow row = RandomRow(space.problem(), seed);
    EXPECT_EQ(space.RowOf(space.Make(row, 1)), row);
  }
}

TEST(ProfilesTest, CoverageIsReadable) {
  const std::string text = Coverage(Profile("smoke", "sim"), 2).Text();
  EXPECT_NE(text.find("pairs of knob values: "), std::string::npos);
  EXPECT_NE(text.find(" impossible; 12 cases (2 illegal, 1 with several engines)"),
            std::string::npos);
  EXPECT_NE(text.find("\n  not covered: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof
