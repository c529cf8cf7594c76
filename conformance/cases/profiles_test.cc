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

// Generated once: building takes longer than looking.
class ProfilesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    core = new std::vector<Case>(Profile("core", "sim"));
    full = new std::vector<Case>(Profile("full", "sim"));
    mpi_core = new std::vector<Case>(Profile("core", "mpi"));
  }
  static void TearDownTestSuite() {
    for (const std::vector<Case>* cases : {core, full, mpi_core}) delete cases;
  }
  static inline const std::vector<Case>*core = nullptr, *full = nullptr, *mpi_core = nullptr;
};

TEST_F(ProfilesTest, CoreCoversEveryPair) { ExpectComplete(Coverage(*core, 2)); }

TEST_F(ProfilesTest, FullCoversEveryTriple) { ExpectComplete(Coverage(*full, 3)); }

TEST_F(ProfilesTest, FullOnMpiCoversEveryTriple) {
  ExpectComplete(Coverage(Profile("full", "mpi"), 3, SpaceWorlds("mpi")));
}

TEST_F(ProfilesTest, MpiCoreCoversEveryPairOfEightRanks) {
  ExpectComplete(Coverage(*mpi_core, 2, {8}));
}

TEST_F(ProfilesTest, CoreHasEnoughCases) {
  EXPECT_GE(core->size(), 300u);
  EXPECT_GE(mpi_core->size(), 60u);
  std::set<int32_t> worlds;
  for (const Case& c : *mpi_core) worlds.insert(c.world);
  for (int32_t world : {3, 5, 6, 8}) EXPECT_EQ(worlds.count(world), 1u) << world;
  EXPECT_LE(*worlds.rbegin(), 8);
}

TEST_F(ProfilesTest, SmokeIsAHandful) { EXPECT_LE(Profile("smoke", "mpi").size(), 15u); }

TEST_F(ProfilesTest, CasesAreDistinctAndReadBack) {
  for (const std::vector<Case>* cases : {core, mpi_core}) {
    std::set<std::string> ids;
    for (const Case& c : *cases) {
      EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
      EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
    }
  }
}

TEST_F(ProfilesTest, SameSeedSameCases) {
  EXPECT_EQ(Ids(Profile("core", "mpi")), Ids(*mpi_core));
  EXPECT_NE(Ids(Profile("core", "mpi", 2)), Ids(*mpi_core));
}

TEST_F(ProfilesTest, FullContainsCore) {
  std::vector<std::string> in_core = Ids(*core), in_full = Ids(*full);
  std::sort(in_core.begin(), in_core.end());
  std::sort(in_full.begin(), in_full.end());
  EXPECT_TRUE(std::includes(in_full.begin(), in_full.end(), in_core.begin(), in_core.end()));
}

TEST_F(ProfilesTest, UnknownNamesAreRefused) {
  EXPECT_THROW(Profile("huge", "sim"), std::invalid_argument);
  EXPECT_THROW(Profile("core", "gpu"), std::invalid_argument);
}

TEST_F(ProfilesTest, RowsAndCasesConvertBothWays) {
  const CaseSpace space({1, 2, 3, 4, 8});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CoveringRow row = RandomRow(space.problem(), seed);
    EXPECT_EQ(space.RowOf(space.Make(row, 1)), row);
  }
}

TEST_F(ProfilesTest, CoverageIsReadable) {
  const std::string text = Coverage(Profile("smoke", "sim"), 2).Text();
  EXPECT_NE(text.find("pairs of knob values: "), std::string::npos);
  EXPECT_NE(text.find(" impossible; 12 cases (2 illegal, 1 with several engines)"),
            std::string::npos);
  EXPECT_NE(text.find("\n  not covered: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof
