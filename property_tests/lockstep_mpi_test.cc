// Under mpirun: ranks that judge differently still draw and shrink the same cases. No fabric is
// used here.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <sstream>

#include "property_tests/lockstep.h"

namespace shardproof {
namespace {

class MpiRanks : public RankAgreement {
 public:
  MpiRanks() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  int rank() const override { return rank_; }
  int size() const { return size_; }
  uint64_t FromRankZero(uint64_t value) override {
    MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return value;
  }
  bool OnAllRanks(bool holds) override {
    int mine = holds ? 1 : 0, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all != 0;
  }

 private:
  int rank_ = 0, size_ = 1;
};

TEST(LockstepMpiTest, FailureOnOneRankShrinksOnAll) {
  MpiRanks ranks;
  ASSERT_GT(ranks.size(), 1) << "run me under mpirun";
  const auto space = std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 4, 8});
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  std::string smallest;
  // Only the last rank sees the fault.
  const auto holds = [&](const Case& c) {
    return ranks.rank() != ranks.size() - 1 || c.instances[0].twin == GatherTwin::kNone ||
           c.instances[0].outer == 1;
  };
  EXPECT_FALSE(
      CheckInLockstep("no twin with hsdp", ranks, GenCase(space), holds, options, &smallest));
  EXPECT_EQ(smallest, "w2.ddp.n2.twin");
  EXPECT_EQ(log.str().empty(), ranks.rank() != 0);
}

TEST(LockstepMpiTest, ExpertsShrinkOnAllToo) {
  MpiRanks ranks;
  const auto space = std::make_shared<const ScheduleSpace>(std::vector<int32_t>{2, 4, 8});
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  std::string smallest;
  const auto holds = [&](const Case& c) {
    return ranks.rank() != ranks.size() - 1 || !c.instances[0].delay_wgrad ||
           c.instances[0].model.moe.skew.empty();
  };
  EXPECT_FALSE(CheckInLockstep("no skew with delayed weight gradients", ranks, GenCase(space),
                               holds, options, &smallest));
  EXPECT_EQ(smallest, "w2.zero3.ep2.k2.moe8.skew=one.1f1b.dw");
}

TEST(LockstepMpiTest, SeedsComeFromRankZero) {
  MpiRanks ranks;
  const auto space = std::make_shared<const CaseSpace>(std::vector<int32_t>{1, 2, 4, 8});
  std::ostringstream log;
  PropertyOptions options;
  options.log = &log;
  options.seed = static_cast<uint64_t>(1000 + ranks.rank());  // each rank has its own
  const auto holds = [](const Case&) { return true; };
  EXPECT_TRUE(CheckInLockstep("own seeds do not matter", ranks, GenCase(space), holds, options));
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  ::testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS(), any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
