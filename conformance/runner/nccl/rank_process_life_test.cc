// How do rank processes come and go?
#include <fstream>

#include "conformance/fabric/nccl/rendezvous/testing.h"
#include "conformance/runner/nccl/rank_processes.h"
#include "conformance/runner/nccl/rank_work_for_test.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(RankProcessLife, ACaseOfFewerRanksLeavesTheOthersAlone) {
  RankProcesses processes(Patient(), [&](const RankSide& side) {
    class Alone : public RankWork {
      RankAnswer Run(const std::string&) override {
        return {{RankEnd::kReturned, "", true, "alone"}, false, true, {"a mismatch"}};
      }
    };
    static_cast<void>(side);
    return std::make_unique<Alone>();
  });
  processes.Prepare(1);
  EXPECT_EQ(processes.pid(1), -1);
  const auto answers = processes.Run("0", 1, {});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].end.blob, "alone");
  EXPECT_THAT(answers[0].mismatches, ::testing::ElementsAre("a mismatch"));
  EXPECT_EQ(processes.started(), 1);
}

TEST(RankProcessLife, FactsComeFromARankProcess) {
  const auto store = Store::Local();
  RankProcesses processes(Patient(), [&](const RankSide& side) {
    return std::make_unique<Standin>(side, *store, [](const RankSide&) {});
  });
  EXPECT_THAT(processes.facts(), IsEmpty());
  processes.Prepare(1);
  EXPECT_THAT(processes.facts(), ::testing::ElementsAre("made for rank 0"));
}

TEST(RankProcessLife, AProcessThatCannotStartSaysWhy) {
  RankProcesses processes(Patient(), [](const RankSide& side) -> std::unique_ptr<RankWork> {
    throw std::runtime_error("no device for rank " + std::to_string(side.rank));
  });
  EXPECT_THAT(ErrorOf([&] { processes.Prepare(1); }),
              HasSubstr("rank 0 could not start: the process left before the run was "
                        "over, with exit code 1: no device for rank 0"));
}

TEST(RankProcessLife, AProcessThatIsNeverReady) {
  RankProcessOptions options = Patient();
  options.start_seconds = 0.2;
  RankProcesses processes(options, [](const RankSide&) -> std::unique_ptr<RankWork> {
    pause();
    return nullptr;
  });
  EXPECT_THAT(ErrorOf([&] { processes.Prepare(1); }), HasSubstr("rank 0 was not ready after 0 s"));
}

bool Exists(pid_t process) { return kill(process, 0) == 0; }
bool EndsSoon(pid_t process) {
  for (int round = 0; round < 20'000 && Exists(process); ++round) RestBeforeLook(round);
  return !Exists(process);
}

TEST(RankProcessLife, NoProcessIsLeftBehind) {
  pid_t pids[kRanks];
  {
    const auto store = Store::Local();
    RankProcesses processes(Patient(), [&](const RankSide& side) {
      return std::make_unique<Standin>(side, *store, [](const RankSide&) {});
    });
    processes.Prepare(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) pids[rank] = processes.pid(rank);
  }
  for (const pid_t process : pids) EXPECT_FALSE(Exists(process)) << "neither running nor a zombie";
}

TEST(RankProcessLife, TheyDieWithTheOneThatWatchesThem) {
  const TestFolder folder;
  const pid_t watcher = Fork([&] {
    const auto store = Store::Local();
    RankProcesses processes(Patient(), [&](const RankSide& side) {
      return std::make_unique<Standin>(side, *store, [](const RankSide&) { pause(); });
    });
    processes.Prepare(kRanks);
    std::ofstream(folder.path() + "/draft") << processes.pid(0) << " " << processes.pid(1);
    std::filesystem::rename(folder.path() + "/draft", folder.path() + "/pids");
    processes.Run(std::to_string(kBad), kRanks, {});
    return 0;
  });
  pid_t zero = 0, one = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::ifstream in(folder.path() + "/pids");
    if (in >> zero >> one) break;
    RestBeforeLook(round);
  }
  ASSERT_GT(one, 0);
  kill(watcher, SIGKILL);
  EXPECT_EQ(CodeOf(watcher), -SIGKILL);
  EXPECT_TRUE(EndsSoon(zero));
  EXPECT_TRUE(EndsSoon(one));
}

}  // namespace
}  // namespace shardproof
