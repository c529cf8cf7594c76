// Rank processes with a stand-in for engine and fabric: ranks exchange their numbers, and rank 1 of
// item 2 misbehaves.
#include "conformance/runner/nccl/rank_processes.h"

#include <fstream>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int kRanks = 2;
constexpr size_t kItems = 5, kBad = 2;

std::vector<int32_t> Everybody(int world) {
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < world; ++rank) all.push_back(rank);
  return all;
}

class Standin : public RankWork {
 public:
  Standin(const RankSide& side, Store& store, std::function<void(const RankSide&)> bad)
      : side_(side), store_(store.ForChild()), bad_(std::move(bad)) {}
  std::vector<std::string> Facts() override {
    return {"made for rank " + std::to_string(side_.rank)};
  }
  RankAnswer Run(size_t item) override {
    side_.progress->rank.store(side_.rank);
    Progress::Set(side_.progress->call, sizeof side_.progress->call, "train_step 0");
    Progress::Set(side_.progress->last, sizeof side_.progress->last, "communicate");
    side_.progress->beats.fetch_add(1);
    if (item == kBad && side_.rank == 1) bad_(side_);
    CaseTable r(*store_, "case " + std::to_string(item), side_.rank, kRanks);
    const auto all = AllGather(r, "numbers", Everybody(kRanks),
                               std::to_string(item * 10) + std::to_string(side_.rank), [&] {
                                 side_.waits->fetch_add(1);
                                 return false;
                               });
    RankAnswer answer;
    if (!all) {
      answer.end = {RankEnd::kAborted, "told: " + r.Aborted().value_or("?"), false, ""};
      answer.waited = true;
      answer.reusable = false;
      return answer;
    }
    answer.end.returned = true;
    for (const std::string& number : *all) answer.end.blob += number + " ";
    answer.end.blob += "from " + std::to_string(getpid());
    return answer;
  }

 private:
  RankSide side_;
  std::unique_ptr<Store> store_;
  std::function<void(const RankSide&)> bad_;
};

struct Outcome {
  std::vector<std::vector<RankAnswer>> items;
  int started = 0;
};

RankProcessOptions Patient() {
  RankProcessOptions options;
  options.ranks = kRanks;
  options.stall_seconds = 60;
  options.grace_seconds = 60;
  return options;
}

Outcome RunWith(const std::function<void(const RankSide&)>& bad,
                const RankProcessOptions& options = Patient(), int world = kRanks) {
  const auto store = Store::Local();
  RankProcesses processes(
      options, [&](const RankSide& side) { return std::make_unique<Standin>(side, *store, bad); });
  Outcome outcome;
  for (size_t item = 0; item < kItems; ++item) {
    CaseTable r(*store, "case " + std::to_string(item), 0, kRanks);
    processes.Prepare(world);
    outcome.items.push_back(processes.Run(
        item, world, {[&](const std::string& why) { r.Abort(why); }, [&] { return r.Aborted(); }}));
  }
  outcome.started = processes.started();
  return outcome;
}

// All items but the bad one are done, and done right; of that one, rank 1 ended so.
void ExpectOnlyTheBadOne(const Outcome& outcome, RankEnd::Kind kind, const std::string& detail) {
  ASSERT_EQ(outcome.items.size(), kItems);
  for (size_t item = 0; item < kItems; ++item) {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const RankAnswer& answer = outcome.items[item].at(rank);
      if (item == kBad) continue;
      EXPECT_EQ(answer.end.kind, RankEnd::kReturned)
          << item << " " << rank << " " << answer.end.detail;
      const std::string tens = std::to_string(item * 10);
      EXPECT_THAT(answer.end.blob, StartsWith(tens + "0 " + tens + "1 "));
    }
  }
  const RankAnswer& bad = outcome.items[kBad].at(1);
  EXPECT_EQ(bad.end.kind, kind) << bad.end.detail;
  EXPECT_THAT(bad.end.detail, HasSubstr(detail));
  EXPECT_FALSE(bad.reusable);
  EXPECT_EQ(outcome.items[kBad].at(0).end.kind, RankEnd::kAborted);
  EXPECT_EQ(outcome.started, 4) << "both processes of the bad item, and no other, are replaced";
}

TEST(RankProcesses, OneProcessServesAllItems) {
  const Outcome outcome = RunWith([](const RankSide&) {});
  EXPECT_EQ(outcome.started, 2);
  const auto process = [&](size_t item, size_t rank) {
    const std::string& blob = outcome.items[item].at(rank).end.blob;
    return blob.substr(blob.find("from"));
  };
  for (size_t item = 0; item < kItems; ++item) {
    EXPECT_EQ(process(item, 0), process(0, 0));
    EXPECT_EQ(process(item, 1), process(0, 1));
  }
  EXPECT_NE(process(0, 0), process(0, 1));
  EXPECT_NE(process(0, 0), "from " + std::to_string(getpid()));
}

TEST(RankProcesses, ACrashEndsOneItem) {
  const Outcome outcome =
      RunWith([](const RankSide&) { *reinterpret_cast<volatile int*>(uintptr_t{0x34}) = 1; });
  ExpectOnlyTheBadOne(outcome, RankEnd::kSignal,
                      "ended by SIGSEGV (Segmentation fault): address 0x34; it was in engine code "
                      "of train_step 0, after "
                      "communicate");
  EXPECT_THAT(outcome.items[kBad][0].end.detail,
              HasSubstr("told: the death of rank 1 (ended by SIGSEGV"));
}
TEST(RankProcesses, AKillEndsOneItem) {
  ExpectOnlyTheBadOne(RunWith([](const RankSide&) { raise(SIGKILL); }), RankEnd::kSignal,
                      "ended by SIGKILL (Killed)");
}
TEST(RankProcesses, AnExitEndsOneItem) {
  ExpectOnlyTheBadOne(RunWith([](const RankSide&) { _exit(0); }), RankEnd::kExit,
                      "with exit code 0");
}
TEST(RankProcesses, AnExitWithoutHandlersOfTheParent) {
  ExpectOnlyTheBadOne(RunWith([](const RankSide&) { std::exit(3); }), RankEnd::kExit,
                      "exit code 3: exit(3) was called");
}
TEST(RankProcesses, AnExceptionEndsOneItem) {
  ExpectOnlyTheBadOne(RunWith([](const RankSide&) { throw std::runtime_error("of no use"); }),
                      RankEnd::kExit, "of no use");
}

RankProcessOptions Strict() {
  RankProcessOptions options = Patient();
  options.stall_seconds = 0.4;
  return options;
}

TEST(RankProcesses, AnEndlessLoopEndsOneItem) {
  const Outcome outcome = RunWith(
      [](const RankSide&) {
        volatile bool forever = true;
        while (forever) {
        }
      },
      Strict());
  ExpectOnlyTheBadOne(outcome, RankEnd::kHung, "without progress for");
  EXPECT_THAT(outcome.items[kBad][1].end.detail,
              HasSubstr("it was in engine code of train_step 0, after communicate"));
  EXPECT_THAT(outcome.items[kBad][0].end.detail, HasSubstr("told: rank 1, which is stuck"));
}

TEST(RankProcesses, SleepingForEverEndsOneItem) {
  ExpectOnlyTheBadOne(RunWith([](const RankSide&) { pause(); }, Strict()), RankEnd::kHung,
                      "without progress for");
}

TEST(RankProcesses, ARankThatStaysWithTheFabricIsNotStuckButLate) {
  RankProcessOptions options = Strict();
  options.case_seconds = 3;
  const Outcome outcome = RunWith(
      [](const RankSide& side) {
        while (true) side.waits->fetch_add(1), RestBeforeLook(100);
      },
      options);
  EXPECT_EQ(outcome.items[kBad][1].end.kind, RankEnd::kHung);
  EXPECT_THAT(outcome.items[kBad][1].end.detail,
              HasSubstr("not ended after 3 s; it was waiting for other ranks in train_step 0, "
                        "after communicate"));
  EXPECT_EQ(outcome.items[kBad + 1][1].end.kind, RankEnd::kReturned);
}

TEST(RankProcesses, WhoDoesNotHeedTheEndIsKilled) {
  RankProcessOptions options = Patient();
  options.grace_seconds = 0.2;
  const auto store = Store::Local();
  RankProcesses processes(options, [&](const RankSide& side) {
    return std::make_unique<Standin>(side, *store, [](const RankSide&) { raise(SIGKILL); });
  });
  processes.Prepare(kRanks);
  const auto answers = processes.Run(kBad, kRanks, {});  // nobody tells rank 0, which waits
  EXPECT_EQ(answers[0].end.kind, RankEnd::kAborted);
  EXPECT_THAT(answers[0].end.detail,
              HasSubstr("ended because of the death of rank 1 (ended by SIGKILL (Killed)); it was "
                        "waiting for other ranks"));
}

TEST(RankProcesses, AnEndFromElsewhereReachesAll) {
  RankProcessOptions options = Patient();
  options.ranks = 1;  // the other one is on another host
  const auto store = Store::Local();
  CaseTable r(*store, "case 0", 0, kRanks);
  RankProcesses processes(options, [&](const RankSide& side) {
    return std::make_unique<Standin>(side, *store, [](const RankSide&) {});
  });
  processes.Prepare(kRanks);
  r.Abort("the death of rank 1 over there");
  const auto answers = processes.Run(0, kRanks, {nullptr, [&] { return r.Aborted(); }});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].end.kind, RankEnd::kAborted);
  EXPECT_EQ(answers[0].end.detail, "told: the death of rank 1 over there");
}

TEST(RankProcesses, ACaseOfFewerRanksLeavesTheOthersAlone) {
  RankProcesses processes(Patient(), [&](const RankSide& side) {
    class Alone : public RankWork {
      RankAnswer Run(size_t) override {
        return {{RankEnd::kReturned, "", true, "alone"}, false, true, {"a mismatch"}};
      }
    };
    static_cast<void>(side);
    return std::make_unique<Alone>();
  });
  processes.Prepare(1);
  EXPECT_EQ(processes.pid(1), -1);
  const auto answers = processes.Run(0, 1, {});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].end.blob, "alone");
  EXPECT_THAT(answers[0].mismatches, ::testing::ElementsAre("a mismatch"));
  EXPECT_EQ(processes.started(), 1);
}

TEST(RankProcesses, FactsComeFromARankProcess) {
  const auto store = Store::Local();
  RankProcesses processes(Patient(), [&](const RankSide& side) {
    return std::make_unique<Standin>(side, *store, [](const RankSide&) {});
  });
  EXPECT_THAT(processes.facts(), IsEmpty());
  processes.Prepare(1);
  EXPECT_THAT(processes.facts(), ::testing::ElementsAre("made for rank 0"));
}

TEST(RankProcesses, AProcessThatCannotStartSaysWhy) {
  RankProcesses processes(Patient(), [](const RankSide& side) -> std::unique_ptr<RankWork> {
    throw std::runtime_error("no device for rank " + std::to_string(side.rank));
  });
  EXPECT_THAT(ErrorOf([&] { processes.Prepare(1); }),
              HasSubstr("rank 0 could not start: the process left before the run was "
                        "over, with exit code 1: no device for rank 0"));
}

TEST(RankProcesses, AProcessThatIsNeverReady) {
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

TEST(RankProcesses, NoProcessIsLeftBehind) {
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

TEST(RankProcesses, TheyDieWithTheOneThatWatchesThem) {
  const TestFolder folder;
  const pid_t watcher = Fork([&] {
    const auto store = Store::Local();
    RankProcesses processes(Patient(), [&](const RankSide& side) {
      return std::make_unique<Standin>(side, *store, [](const RankSide&) { pause(); });
    });
    processes.Prepare(kRanks);
    std::ofstream(folder.path() + "/draft") << processes.pid(0) << " " << processes.pid(1);
    std::filesystem::rename(folder.path() + "/draft", folder.path() + "/pids");
    processes.Run(kBad, kRanks, {});
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
