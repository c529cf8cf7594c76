// How do items end in rank processes?
#include "conformance/runner/nccl/rank_processes.h"

#include "conformance/fabric/nccl/rendezvous/testing.h"
#include "conformance/runner/nccl/rank_work_for_test.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  std::vector<std::vector<RankAnswer>> items;
  int started = 0;
};

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
        std::to_string(item), world,
        {[&](const std::string& why) { r.Abort(why); }, [&] { return r.Aborted(); }}));
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
  const auto answers =
      processes.Run(std::to_string(kBad), kRanks, {});  // nobody tells rank 0, which waits
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
  const auto answers = processes.Run("0", kRanks, {nullptr, [&] { return r.Aborted(); }});
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].end.kind, RankEnd::kAborted);
  EXPECT_EQ(answers[0].end.detail, "told: the death of rank 1 over there");
}

}  // namespace
}  // namespace shardproof
