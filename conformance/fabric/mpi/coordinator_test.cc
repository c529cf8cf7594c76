#include "conformance/fabric/mpi/coordinator.h"

#include <gtest/gtest.h>

namespace shardproof::mpi {
namespace {

ControlMessage Message(ControlKind kind, int32_t from, std::vector<uint64_t> numbers,
                       std::string text = "") {
  ControlMessage message;
  message.kind = kind;
  message.from = from;
  message.numbers = std::move(numbers);
  message.text = std::move(text);
  return message;
}

struct Job {
  Coordinator coordinator{2};
  void Level(int32_t rank, mpi::Level level) {
    coordinator.On(Message(ControlKind::kStatus, rank, {static_cast<uint64_t>(level)}));
  }
  void Answer(int32_t rank, uint64_t wave, uint64_t sent, uint64_t received, bool quiet = true) {
    coordinator.On(Message(ControlKind::kAnswer, rank, {wave, quiet, sent, received}));
  }
  void End(int32_t rank, RankEnd::Kind kind, const std::string& detail = "") {
    RankReport report;
    report.end.kind = kind;
    report.end.detail = detail;
    coordinator.On(Message(ControlKind::kResult, rank, {}, PackReport(report)));
  }
};

TEST(Coordinator, OneRankStillRunningMeansWait) {
  Job job;
  job.Level(0, Level::kBlocked);
  EXPECT_FALSE(job.coordinator.Next());
}

TEST(Coordinator, AllBlockedIsAskedTwiceThenADeadlock) {
  Job job;
  job.Level(0, Level::kBlocked);
  job.Level(1, Level::kBlocked);
  for (const uint64_t wave : {1, 2}) {
    const auto probe = job.coordinator.Next();
    ASSERT_TRUE(probe);
    EXPECT_EQ(probe->kind, ControlKind::kProbe);
    EXPECT_FALSE(job.coordinator.Next()) << "asks again before the answers came";
    job.Answer(0, wave, 3, 4);
    job.Answer(1, wave, 4, 3);
  }
  const auto abort = job.coordinator.Next();
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->kind, ControlKind::kAbort);
  EXPECT_TRUE(job.coordinator.hang());
}

TEST(Coordinator, MessageUnderWayIsNoDeadlock) {
  Job job;
  job.Level(0, Level::kBlocked);
  job.Level(1, Level::kBlocked);
  for (const uint64_t wave : {1, 2, 3, 4}) {
    ASSERT_EQ(job.coordinator.Next()->kind, ControlKind::kProbe);
    job.Answer(0, wave, 3, 4);
    job.Answer(1, wave, 4, 2);
  }
  EXPECT_EQ(job.coordinator.Next()->kind, ControlKind::kProbe);
}

TEST(Coordinator, ProgressDuringTheQuestionsStartsAnew) {
  Job job;
  job.Level(0, Level::kBlocked);
  job.Level(1, Level::kBlocked);
  ASSERT_TRUE(job.coordinator.Next());
  job.Level(1, Level::kRunning);
  job.Answer(0, 1, 0, 0);
  job.Answer(1, 1, 0, 0);
  EXPECT_FALSE(job.coordinator.Next());
  job.Level(1, Level::kBlocked);
  EXPECT_EQ(job.coordinator.Next()->numbers[0], 2U);
}

TEST(Coordinator, LoopingRankStallsTheOthers) {
  Job job;
  job.Level(0, Level::kBlocked);
  job.Level(1, Level::kStalled);
  const auto abort = job.coordinator.Next();
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->numbers[0], static_cast<uint64_t>(AbortCause::kHang));
}

TEST(Coordinator, DeathOfARankIsTheCauseWhenTheOthersAreStuck) {
  Job job;
  job.End(1, RankEnd::kSignal, "ended by SIGSEGV");
  EXPECT_FALSE(job.coordinator.Next()) << "rank 0 may still finish";
  job.Level(0, Level::kStalled);
  const auto abort = job.coordinator.Next();
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->numbers[0], static_cast<uint64_t>(AbortCause::kDeath));
  EXPECT_EQ(abort->text, "rank 1: ended by SIGSEGV");
  EXPECT_FALSE(job.coordinator.hang());
}

TEST(Coordinator, FailureEndsTheCaseAtOnce) {
  Job job;
  job.coordinator.On(Message(ControlKind::kFailed, 1, {}, "refused"));
  const auto abort = job.coordinator.Next();
  ASSERT_TRUE(abort);
  EXPECT_EQ(abort->numbers[0], static_cast<uint64_t>(AbortCause::kFailure));
  EXPECT_EQ(abort->text, "rank 1: refused");
  EXPECT_FALSE(job.coordinator.Next());
}

TEST(Coordinator, AllReturnedIsOver) {
  Job job;
  job.End(0, RankEnd::kReturned);
  EXPECT_FALSE(job.coordinator.over());
  job.End(1, RankEnd::kReturned);
  EXPECT_TRUE(job.coordinator.over());
  EXPECT_FALSE(job.coordinator.Next());
}

TEST(HangReport, NamesTheCycleNotTheWayToIt) {
  std::vector<RankReport> reports(3);
  for (RankReport& report : reports) report.end.kind = RankEnd::kHung;
  reports[0].waits = {1};
  reports[1].waits = {2};
  reports[2].waits = {1};
  reports[1].end.detail = "blocked in x";
  EXPECT_EQ(HangReport(reports, "deadlock"),
            "deadlock: rank 1 waits for rank 2, which waits for rank 1\nrank 0: \nrank 1: blocked "
            "in x\nrank 2: ");
}

TEST(HangReport, NamesTheRankThatLeft) {
  std::vector<RankReport> reports(2);
  reports[1].waits = {0};
  reports[1].end.kind = RankEnd::kHung;
  EXPECT_EQ(HangReport(reports, "deadlock").substr(0, 60),
            "deadlock: rank 1 waits for rank 0, which has returned\nrank 0");
}

}  // namespace
}  // namespace shardproof::mpi
