#include "conformance/fabric/nccl/rendezvous_file.h"

#include <fstream>

#include "conformance/fabric/nccl/rendezvous_testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<FileStore> MeetIn(const TestFolder& folder, int rank, int size,
                                  const std::string& job = "job", double patience_seconds = 60) {
  return FileStore::Meet({folder.path(), job, rank, size, patience_seconds});
}

// Both ranks exchange a number of the run; answers whether each got this run's.
bool ExchangeInProcesses(const TestFolder& folder, const std::string& run) {
  const auto rank_main = [&](int rank) {
    const auto store = MeetIn(folder, rank, 2);
    StoreRendezvous r(*store, "case", rank, 2);
    const auto all = AllGather(r, "run", {0, 1}, run + std::to_string(rank), nullptr);
    return all == std::vector<std::string>{run + "0", run + "1"} ? 0 : 1;
  };
  const pid_t one = Fork([&] { return rank_main(1); });
  const pid_t zero = Fork([&] { return rank_main(0); });
  return (CodeOf(one) == 0) & (CodeOf(zero) == 0);
}

int Tables(const TestFolder& folder) {
  int tables = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/job")) {
    tables += entry.path().filename().string().starts_with("table-") ? 1 : 0;
  }
  return tables;
}

TEST(FileStore, OneRunAfterAnotherInOneFolder) {
  const TestFolder folder;
  for (int run = 0; run < 3; ++run)
    EXPECT_TRUE(ExchangeInProcesses(folder, "run " + std::to_string(run) + " rank "));
  EXPECT_EQ(Tables(folder), 0);
}

// Both processes of a job are killed when they have met and put their values.
void LeaveStaleFiles(const TestFolder& folder) {
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 2; ++rank) {
    processes.push_back(Fork([&] {
      const auto store = MeetIn(folder, rank, 2);
      StoreRendezvous r(*store, "case", rank, 2);
      AllGather(r, "run", {0, 1}, "stale", nullptr);
      store->Put("ready/" + std::to_string(rank), "");
      pause();
      return 0;
    }));
  }
  const auto ready = [&] {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
      if (entry.path().filename() == "ready%2F1") return true;
    }
    return false;
  };
  for (int round = 0; !ready() && round < 20'000; ++round) RestBeforeLook(round);
  for (const pid_t process : processes) kill(process, SIGKILL), CodeOf(process);
}

TEST(FileStore, FilesOfARunThatWasKilledAreNotRead) {
  const TestFolder folder;
  LeaveStaleFiles(folder);
  EXPECT_EQ(Tables(folder), 1);
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, 1, 2, "job", 0.2); }), HasSubstr("rank 0 did not come"));
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, 0, 2, "job", 0.2); }), HasSubstr("rank 1 did not come"));
  EXPECT_TRUE(ExchangeInProcesses(folder, "fresh "));
  EXPECT_EQ(Tables(folder), 0);
}

TEST(FileStore, JobsWithNamesShareAFolder) {
  const TestFolder folder;
  AsThreads(6, [&](int thread) {
    const std::string job = "job " + std::to_string(thread % 3);
    const int rank = thread / 3;
    const auto store = MeetIn(folder, rank, 2, job);
    StoreRendezvous r(*store, "case", rank, 2);
    EXPECT_EQ(AllGather(r, "job", {0, 1}, job, nullptr), (std::vector<std::string>{job, job}));
  });
}

TEST(FileStore, AKilledProcessIsNoticed) {
  const TestFolder folder;
  const pid_t peer = Fork([&] {
    const auto store = MeetIn(folder, 1, 2);
    raise(SIGKILL);
    return 0;
  });
  const auto store = MeetIn(folder, 0, 2);
  StoreRendezvous r(*store, "case", 0, 2);
  EXPECT_FALSE(r.Get("never", nullptr).has_value());
  EXPECT_THAT(r.Aborted().value_or(""), HasSubstr("rank 1 of the job is gone"));
  EXPECT_EQ(CodeOf(peer), -SIGKILL);
}

TEST(FileStore, AProcessThatHasLeftIsNotLost) {
  const TestFolder folder;
  const pid_t peer = Fork([&] {
    MeetIn(folder, 1, 2)->Put("value", "of one that has left");
    return 0;
  });
  const auto store = MeetIn(folder, 0, 2);
  EXPECT_EQ(CodeOf(peer), 0);
  for (int round = 0; round < 10; ++round) EXPECT_EQ(store->Broken(), std::nullopt);
  EXPECT_EQ(store->Look("value"), "of one that has left");
}

TEST(FileStore, AProcessThatLeavesWithAnExceptionIsLost) {
  const TestFolder folder;
  const pid_t peer = Fork([&] {
    const auto store = MeetIn(folder, 1, 2);
    throw std::runtime_error("on purpose");
    return 0;
  });
  const auto store = MeetIn(folder, 0, 2);
  EXPECT_THAT(BrokenBecause(*store), HasSubstr("rank 1 of the job is gone"));
  EXPECT_EQ(CodeOf(peer), 99);
}

TEST(FileStore, AForkedChildHasAnEndOfItsOwn) {
  const TestFolder folder;
  const auto store = MeetIn(folder, 0, 1);
  const pid_t child = Fork([&] {
    store->ForChild()->Put("from", "the child");
    return 0;
  });
  EXPECT_EQ(CodeOf(child), 0);
  EXPECT_EQ(store->Look("from"), "the child");
}

TEST(FileStore, TwoProcessesWithOneRank) {
  const TestFolder folder;
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int thread) {  // two of them say 1, nobody says 2
    const int rank = thread == 2 ? 1 : thread;
    errors[static_cast<size_t>(thread)] = ErrorOf([&] { MeetIn(folder, rank, 3); });
  });
  EXPECT_THAT(errors[0], HasSubstr("two processes were started with RANK=1"));
  const bool swapped = errors[1].find("another process has this rank") != std::string::npos;
  EXPECT_THAT(errors[swapped ? 1 : 2], HasSubstr("another process has this rank"));
  EXPECT_THAT(errors[swapped ? 2 : 1], HasSubstr("two processes were started with RANK=1"));
}

TEST(FileStore, ALateSecondOneDoesNotEndTheJob) {
  const TestFolder folder;
  const auto store = MeetIn(folder, 0, 1);
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, 0, 1); }), HasSubstr("another process has this rank"));
  EXPECT_EQ(store->Broken(), std::nullopt);
}

TEST(FileStore, RanksThatWereToldDifferentSizes) {
  const TestFolder folder;
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int rank) {
    errors[static_cast<size_t>(rank)] = ErrorOf([&] { MeetIn(folder, rank, rank == 2 ? 4 : 3); });
  });
  for (const std::string& error : errors) EXPECT_THAT(error, HasSubstr("WORLD_SIZE=")) << error;
}

TEST(FileStore, SomebodyWhoDoesNotCome) {
  const TestFolder folder;
  std::vector<std::string> errors(2);
  AsThreads(2, [&](int rank) {
    errors[static_cast<size_t>(rank)] =
        ErrorOf([&] { MeetIn(folder, rank, 3, "job", rank == 0 ? 0.3 : 60); });
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("rank 2 did not come within")) << error;
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, 1, 2, "nobody", 0.1); }),
              HasSubstr("rank 0 did not come"));
}

TEST(FileStore, RankOutOfRange) {
  const TestFolder folder;
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, 2, 2); }), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(ErrorOf([&] { MeetIn(folder, -1, 2); }), HasSubstr("rank -1 of 2"));
}

TEST(FileStore, AFolderThatCannotBeMade) {
  const TestFolder folder;
  std::ofstream(folder.path() + "/file") << "a file";
  EXPECT_THAT(ErrorOf([&] {
                FileStore::Meet({folder.path() + "/file/below", "job", 0, 1});
              }),
              HasSubstr("cannot write " + folder.path() + "/file/below"));
}

TEST(FileTable, AFolderThatGoesAwayBreaksTheTable) {
  const TestFolder folder;
  const std::string path = folder.path() + "/table";
  std::filesystem::create_directory(path);
  FileTable table(path, 0, 1);
  table.Put("key", "value");
  std::filesystem::remove_all(path);
  table.Put("key", "value");
  EXPECT_THAT(table.Broken().value_or(""), HasSubstr("cannot write " + path));
}

TEST(FileTable, DraftsAreNotLeftBehind) {
  const TestFolder folder;
  FileTable table(folder.path(), 0, 1);
  for (int i = 0; i < 3; ++i) table.Put("key", "value");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace shardproof
