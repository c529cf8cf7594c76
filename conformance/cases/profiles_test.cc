#include "conformance/cases/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "conformance/cases/cases_for_test.h"
#include "conformance/cases/schedule_space.h"
#include "conformance/cases/space.h"

namespace shardproof {
namespace {

std::vector<std::string> Ids(const std::vector<Case>& cases) {
  std::vector<std::string> ids;
  for (const Case& c : cases) ids.push_back(Id(c));
  return ids;
}

void ExpectComplete(const CoverageReport& report, int64_t more_than = 4000) {
  EXPECT_EQ(report.count.covered, report.count.possible) << report.Text();
  EXPECT_GT(report.count.possible, more_than);
}

// Generated once: building takes longer than looking.
class ProfilesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    spaces = new Spaces;
    core = new std::vector<Case>(Profile("core", "sim", *spaces));
    full = new std::vector<Case>(Profile("full", "sim", *spaces));
    mpi_core = new std::vector<Case>(Profile("core", "mpi", *spaces));
    mpi_full = new std::vector<Case>(Profile("full", "mpi", *spaces));
  }
  static void TearDownTestSuite() {
    for (const std::vector<Case>* cases : {core, full, mpi_core, mpi_full}) delete cases;
    delete spaces;
  }
  static inline Spaces* spaces = nullptr;
  static inline const std::vector<Case>*core = nullptr, *full = nullptr, *mpi_core = nullptr,
                      *mpi_full = nullptr;
};

TEST_F(ProfilesTest, CoreCoversEveryPair) {
  ExpectComplete(Coverage(*core, 2, SpaceWorlds("sim"), *spaces));
}

TEST_F(ProfilesTest, FullCoversEveryTriple) {
  ExpectComplete(Coverage(*full, 3, SpaceWorlds("sim"), *spaces));
}

TEST_F(ProfilesTest, FullOnMpiCoversEveryTriple) {
  ExpectComplete(Coverage(*mpi_full, 3, SpaceWorlds("mpi"), *spaces));
}

TEST_F(ProfilesTest, MpiCoreCoversEveryPairOfEightAndFourRanks) {
  ExpectComplete(Coverage(*mpi_core, 2, {8, 4}, *spaces));
}

TEST_F(ProfilesTest, CoreHasEnoughCases) {
  EXPECT_GE(core->size(), 300u);
  EXPECT_GE(mpi_core->size(), 60u);
  std::set<int32_t> worlds;
  for (const Case& c : *mpi_core) worlds.insert(c.world);
  for (int32_t world : {3, 5, 6, 8}) EXPECT_EQ(worlds.count(world), 1u) << world;
  EXPECT_LE(*worlds.rbegin(), 8);
}

TEST_F(ProfilesTest, SmokeIsAHandful) { EXPECT_LE(Profile("smoke", "mpi", *spaces).size(), 18u); }

TEST_F(ProfilesTest, SmokeOfFewRanksHasItsFeatures) {
  for (const int32_t ranks : {1, 2, 3}) {
    const std::vector<Case> few = SmokeOfFewRanks(ranks);
    EXPECT_GE(few.size(), 8u);
    std::set<std::string> ids;
    for (const Case& c : few) {
      EXPECT_EQ(c.world, ranks) << Id(c);
      EXPECT_EQ(c.illegal, "") << Id(c);
      EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
    }
  }
  EXPECT_TRUE(SmokeOfFewRanks(4).empty());
}

TEST_F(ProfilesTest, CasesAreDistinctAndReadBack) {
  for (const std::vector<Case>* cases : {core, mpi_core}) {
    std::set<std::string> ids;
    for (const Case& c : *cases) {
      EXPECT_TRUE(ids.insert(Id(c)).second) << Id(c);
      EXPECT_EQ(ParseId(Id(c)), c) << Id(c);
    }
  }
}

TEST_F(ProfilesTest, NcclHasTheCasesOfSimThatFit) {
  for (const int32_t ranks : {1, 2, 4}) {
    std::vector<std::string> expected;
    for (const Case& c : *core) {
      if (c.world <= ranks) expected.push_back(Id(c));
    }
    EXPECT_EQ(Ids(Profile("core", "nccl", *spaces, 1, ranks)), expected);
    EXPECT_GE(expected.size(), 20u);
  }
  EXPECT_THROW(Profile("core", "cuda", *spaces), std::invalid_argument);
}

TEST_F(ProfilesTest, CoverageOnNcclIsOfTheWorldsThatFit) {
  const std::vector<Case> one = Profile("core", "nccl", *spaces, 1, 1),
                          two = Profile("core", "nccl", *spaces, 1, 2);
  const std::vector<std::string> of_one = CoverageFacts(one, "core", "nccl", *spaces, 1);
  ASSERT_EQ(of_one.size(), 2u) << "schedules and pipelines need two ranks";
  EXPECT_NE(of_one[0].find("(worlds of at most 1): "), std::string::npos) << of_one[0];
  const std::vector<std::string> of_two = CoverageFacts(two, "core", "nccl", *spaces, 2);
  ASSERT_EQ(of_two.size(), 4u);
  EXPECT_NE(of_two[0].find("not covered: "), std::string::npos) << "what is missing is said";
  EXPECT_NE(of_two[1].find("(world 2, ep "), std::string::npos) << of_two[1];
}

TEST_F(ProfilesTest, SameSeedSameCases) {
  Spaces again;
  EXPECT_EQ(Ids(Profile("core", "mpi", again)), Ids(*mpi_core));
  EXPECT_NE(Ids(Profile("core", "mpi", *spaces, 2)), Ids(*mpi_core));
}

TEST_F(ProfilesTest, FullContainsCore) {
  std::vector<std::string> in_core = Ids(*core), in_full = Ids(*full);
  std::sort(in_core.begin(), in_core.end());
  std::sort(in_full.begin(), in_full.end());
  EXPECT_TRUE(std::includes(in_full.begin(), in_full.end(), in_core.begin(), in_core.end()));
}

TEST_F(ProfilesTest, CoreCoversEveryPairOfExpertsAndSchedules) {
  ExpectComplete(ScheduleCoverage(*core, 2, "sim", *spaces), 2000);
}

TEST_F(ProfilesTest, FullCoversEveryTripleOfExpertsAndSchedules) {
  ExpectComplete(ScheduleCoverage(*full, 3, "sim", *spaces), 20000);
}

TEST_F(ProfilesTest, MissingPairsOfExpertsAreSeen) {
  std::vector<Case> fewer;
  for (const Case& c : *core) {
    if (!c.instances[0].early_release) fewer.push_back(c);
  }
  const CoverageReport report = ScheduleCoverage(fewer, 2, "sim", *spaces);
  EXPECT_LT(report.count.covered, report.count.possible);
  EXPECT_NE(report.Text().find("ep_overlap_early_attn_memory_release=1"), std::string::npos);
}

TEST_F(ProfilesTest, MpiCoreCoversEveryPairOfExpertsAndSchedules) {
  const CoverageReport report = ScheduleCoverage(*mpi_core, 2, "mpi", *spaces);
  ExpectComplete(report, 2000);
  EXPECT_NE(report.Text().find("schedules (world 8 4, ep 2 4): "), std::string::npos)
      << report.Text();
}

TEST_F(ProfilesTest, FullOnMpiCoversEveryTripleOfExpertsAndSchedules) {
  ExpectComplete(ScheduleCoverage(*mpi_full, 3, "mpi", *spaces), 20000);
}

TEST_F(ProfilesTest, MpiCoreHasBothSchedulesForTwoAndFourExpertRanks) {
  std::set<std::pair<int32_t, bool>> seen;
  for (const Case& c : *mpi_core) {
    const InstanceSpec& spec = c.instances[0];
    if (spec.strategy == ShardingStrategy::kLayerWise || spec.chunks > 1) continue;
    if (spec.model.moe.experts > 0) seen.insert({spec.ep, spec.overlap_moe});
  }
  for (const int32_t ep : {2, 4}) {
    for (const bool overlap : {false, true}) EXPECT_TRUE(seen.contains({ep, overlap})) << ep;
  }
}

TEST_F(ProfilesTest, NamedPipelinesAreInCoreOfSimAndInFullOfMpi) {
  for (const std::vector<Case>* cases : {core, mpi_full}) {
    std::set<std::string> ids;
    for (const Case& c : *cases) ids.insert(Id(c));
    for (const Case& c : PipelineCases()) {
      EXPECT_TRUE(ids.contains(Id(c))) << Id(c);
      EXPECT_GT(c.instances[0].model.pp, 1) << Id(c);
    }
  }
  EXPECT_GE(PipelineCases().size(), 10u);
}

// An array has no row for a pair that a named case has, and of values that close as much those that
// cost least.
TEST_F(ProfilesTest, CoreIsCheap) {
  const auto legal = [](const std::vector<Case>& cases) {
    return std::count_if(cases.begin(), cases.end(),
                         [](const Case& c) { return c.illegal.empty(); });
  };
  const auto small = std::count_if(mpi_core->begin(), mpi_core->end(),
                                   [](const Case& c) { return c.illegal.empty() && c.world <= 4; });
  EXPECT_GT(small, 80) << "four ranks would do";
  EXPECT_LT(legal(*core), 620);
  EXPECT_LT(legal(*mpi_core), 300);
}

TEST_F(ProfilesTest, FurtherSchedulesAreInFull) {
  std::set<std::string> in_core, in_full;
  for (const Case& c : *core) in_core.insert(Id(c));
  for (const Case& c : *full) in_full.insert(Id(c));
  for (const Case& c : FurtherScheduleCases()) {
    EXPECT_FALSE(in_core.contains(Id(c))) << Id(c);
    EXPECT_TRUE(in_full.contains(Id(c))) << Id(c);
  }
}

TEST_F(ProfilesTest, CoreCoversEveryPairOfLayerWiseEngines) {
  ExpectComplete(LayerWiseCoverage(*core, 2, "sim", *spaces));
  const CoverageReport on_mpi = LayerWiseCoverage(*mpi_core, 2, "mpi", *spaces);
  ExpectComplete(on_mpi);
  EXPECT_NE(on_mpi.Text().find("layer-wise engines (world 8 4): "), std::string::npos);
}

TEST_F(ProfilesTest, FullCoversEveryTripleOfLayerWiseEngines) {
  ExpectComplete(LayerWiseCoverage(*full, 3, "sim", *spaces), 60000);
  ExpectComplete(LayerWiseCoverage(*mpi_full, 3, "mpi", *spaces), 60000);
}

TEST_F(ProfilesTest, MissingPairsOfLayerWiseEnginesAreSeen) {
  std::vector<Case> without = *core;
  for (Case& c : without) {
    Choice<LayerWiseTransport>& transport = c.instances[0].layer_wise.transport;
    if (transport == LayerWiseTransport::kPadded) transport = LayerWiseTransport::kAllGatherV;
  }
  const CoverageReport report = LayerWiseCoverage(without, 2, "sim", *spaces);
  EXPECT_LT(report.count.covered, report.count.possible);
  EXPECT_NE(report.Text().find("layer_wise_transport=padded"), std::string::npos);
}

TEST_F(ProfilesTest, CoreCoversEveryPairOfPipelines) {
  ExpectComplete(PipelineCoverage(*core, 2, "sim", *spaces), 2500);
  ExpectComplete(PipelineCoverage(*mpi_core, 2, "mpi", *spaces), 2500);
  ExpectComplete(PipelineCoverage(*full, 3, "sim", *spaces), 20000);
  std::vector<Case> fewer;
  for (const Case& c : *core) {
    if (c.instances[0].strategy != ShardingStrategy::kLayerWise) fewer.push_back(c);
  }
  const CoverageReport report = PipelineCoverage(fewer, 2, "sim", *spaces);
  EXPECT_LT(report.count.covered, report.count.possible);
  EXPECT_NE(report.Text().find("strategy=layer_wise"), std::string::npos) << report.Text();
}

// How values travel: each legal combination of when, how and into what, in both odd worlds of mpi.
TEST_F(ProfilesTest, LayerWiseEnginesRunInOddWorldsAndAreRefused) {
  std::set<int32_t> worlds;
  int refused = 0;
  for (const Case& c : *mpi_core) {
    if (c.instances[0].strategy != ShardingStrategy::kLayerWise) continue;
    worlds.insert(c.world);
    refused += c.illegal.empty() ? 0 : 1;
  }
  for (int32_t world : {3, 5, 8}) EXPECT_EQ(worlds.count(world), 1u) << world;
  EXPECT_GE(refused, 2);
}

// What is counted in one space is in no other.
TEST_F(ProfilesTest, EachCaseIsCountedOnce) {
  const CoverageReport a = Coverage(*core, 2, SpaceWorlds("sim"), *spaces),
                       b = ScheduleCoverage(*core, 2, "sim", *spaces),
                       c = LayerWiseCoverage(*core, 2, "sim", *spaces),
                       d = PipelineCoverage(*core, 2, "sim", *spaces);
  EXPECT_EQ(static_cast<size_t>(a.cases + b.cases + c.cases + d.cases), core->size());
  EXPECT_LE(c.legal, 100);
  EXPECT_LE(d.legal, 120);
}

// Which tuples a space goes through, with and without leaving out what cannot go on.
class SmallSpace : public FactorSpace {
 public:
  SmallSpace() : FactorSpace(Space::kDense) {
    AddWorld({1, 2, 3, 4});
    AddKnobs({"tp", "cp", "microbatches"});
  }
  std::vector<std::vector<uint8_t>> Tuples(bool prune) const {
    const auto divides = [](const Case& c) {
      return c.world % (c.instances[0].tp * c.instances[0].cp) == 0;
    };
    std::vector<std::vector<uint8_t>> tuples;
    ForEachTuple(
        {"world", "tp", "cp", "microbatches"},
        [&](const std::vector<uint8_t>& tuple, const Case& c) {
          if (prune || divides(c)) tuples.push_back(tuple);
        },
        prune ? Goes(divides) : nullptr);
    return tuples;
  }
};

TEST(FactorSpaceTest, PruningLeavesOutWhatIsRefusedAndNothingElse) {
  const SmallSpace space;
  EXPECT_EQ(space.Tuples(true), space.Tuples(false));
  EXPECT_EQ(space.Tuples(true).size(), 3u * (1 + 3 + 1 + 4));
}

TEST_F(ProfilesTest, UnknownNamesAreRefused) {
  EXPECT_THROW(Profile("huge", "sim", *spaces), std::invalid_argument);
  EXPECT_THROW(Profile("core", "gpu", *spaces), std::invalid_argument);
}

TEST_F(ProfilesTest, RowsAndCasesConvertBothWays) {
  const CaseSpace space({1, 2, 3, 4, 8});
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const CoveringRow row = RandomRow(space.problem(), seed);
    EXPECT_EQ(space.RowOf(space.Make(row, 1)), row);
  }
}

TEST_F(ProfilesTest, RowsOfSchedulesAndCasesConvertBothWays) {
  const ScheduleSpace& space = spaces->Schedule({2, 4, 8});
  for (uint64_t seed = 0; seed < 300; ++seed) ExpectRowIsACase(space, seed);
}

TEST_F(ProfilesTest, RowsOfPipelinesAndCasesConvertBothWays) {
  const PipelineSpace& space = spaces->Pipeline({2, 4, 8});
  for (uint64_t seed = 0; seed < 300; ++seed) ExpectRowIsACase(space, seed);
}

TEST_F(ProfilesTest, CoverageIsReadable) {
  const std::string text =
      Coverage(Profile("smoke", "sim", *spaces), 2, SpaceWorlds("sim"), *spaces).Text();
  EXPECT_NE(text.find("pairs of knob values: "), std::string::npos);
  EXPECT_NE(text.find(" impossible; 12 cases (2 illegal, 1 with several engines)"),
            std::string::npos);
  EXPECT_NE(text.find("\n  not covered: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof
