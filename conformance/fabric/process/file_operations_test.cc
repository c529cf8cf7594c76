#include "conformance/fabric/process/file_operations.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "conformance/common/read_file.h"
#include "conformance/fabric/process/keeper.h"

namespace shardproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileOperationsTest : public ::testing::Test {
 protected:
  FileOperationsTest() { std::filesystem::create_directories(folder_); }
  ~FileOperationsTest() override { std::filesystem::remove_all(folder_); }

  // Runs it in a process that is ended before operation `at`, counted from 1; 0: never. What it was
  // about to do, operation by operation.
  std::vector<std::string> Run(const std::function<void()>& body, size_t at = 0,
                               bool half = false) {
    std::vector<std::string> seen;
    FileOperations operations;
    const int file = operations.file_of_process();
    Keeper keeper;
    keeper.Start(
        [&] {
          FileOperations::TellFrom(file);
          body();
          _exit(0);
        },
        {file});
    operations.Started();
    while (!keeper.Ended()) {
      pollfd polls[] = {{keeper.file(), POLLIN, 0}, {operations.file(), POLLIN, 0}};
      poll(polls, 2, -1);
      const bool on = operations.Serve([&](const FileOperation& operation) {
        if (!operation.OnDisk()) return true;
        seen.push_back(operation.Text());
        if (seen.size() != at) return true;
        if (half) operation.WriteHalf();
        return false;
      });
      if (!on) keeper.Kill();
    }
    return seen;
  }
  std::string Path(const char* name) const { return folder_ + "/" + name; }
  std::string Contents(const char* name) const { return ReadFile(Path(name)).value_or("nothing"); }

  void WriteThenRename() const {
    const int file = open(Path("a.tmp").c_str(), O_WRONLY | O_CREAT, 0600);
    if (write(file, "12345678", 8) != 8) _exit(1);
    fsync(file);
    close(file);
    rename(Path("a.tmp").c_str(), Path("a").c_str());
  }

  const std::string folder_ = ::testing::TempDir() + "/file_operations." + std::to_string(getpid());
};

TEST_F(FileOperationsTest, AreShownInTheirOrder) {
  EXPECT_THAT(Run([&] { WriteThenRename(); }),
              ElementsAre(HasSubstr(" of a.tmp"), "write of 8 bytes to a.tmp", "fsync of a.tmp",
                          "rename of a.tmp"));
  EXPECT_EQ(Contents("a"), "12345678");
}

TEST_F(FileOperationsTest, AProcessEndsBeforeTheOneThatIsAskedFor) {
  EXPECT_EQ(Run([&] { WriteThenRename(); }, 4).size(), 4u);
  EXPECT_EQ(Contents("a"), "nothing");
  EXPECT_EQ(Contents("a.tmp"), "12345678");
  Run([&] { WriteThenRename(); }, 2);
  EXPECT_EQ(Contents("a.tmp"), "12345678") << "no byte of it was written again, none was lost";
  std::filesystem::remove(Path("a.tmp"));
  Run([&] { WriteThenRename(); }, 2);
  EXPECT_EQ(Contents("a.tmp"), "");
  Run([&] { WriteThenRename(); }, 1);
  EXPECT_EQ(Contents("a.tmp"), "");
}

TEST_F(FileOperationsTest, HalfOfAWriteReachesItsFile) {
  Run([&] { WriteThenRename(); }, 2, true);
  EXPECT_EQ(Contents("a.tmp"), "1234");
  Run(
      [&] {
        const int file = open(Path("parts").c_str(), O_WRONLY | O_CREAT, 0600);
        char one[] = "abc", two[] = "defgh";
        const iovec parts[] = {{one, 3}, {two, 5}};
        if (write(file, "--", 2) != 2) _exit(1);
        static_cast<void>(!writev(file, parts, 2));
      },
      3, true);
  EXPECT_EQ(Contents("parts"), "--abcd");
  Run(
      [&] {
        const int file = open(Path("placed").c_str(), O_WRONLY | O_CREAT, 0600);
        static_cast<void>(!pwrite(file, "123456", 6, 2));
      },
      2, true);
  EXPECT_EQ(Contents("placed"), std::string("\0\0", 2) + "123");
}

TEST_F(FileOperationsTest, OfThreadsAndFurtherProcessesToo) {
  EXPECT_THAT(Run([&] { std::thread([&] { mkdir(Path("b").c_str(), 0700); }).join(); }),
              ElementsAre("mkdir of b"));
  const std::string line = "echo text > " + Path("c");
  EXPECT_THAT(Run([&] { static_cast<void>(!std::system(line.c_str())); }),
              ::testing::Contains(HasSubstr(" of c")));
  EXPECT_EQ(Contents("c"), "text\n");
}

TEST_F(FileOperationsTest, WhatIsNoFileIsNotMeant) {
  EXPECT_THAT(Run([&] {
                int ends[2];
                if (pipe(ends) != 0) _exit(1);
                static_cast<void>(!write(ends[1], "1", 1));
                static_cast<void>(!write(2, "", 0));
                static_cast<void>(open(Path("none").c_str(), O_RDONLY));
              }),
              ElementsAre());
}

}  // namespace
}  // namespace shardproof
