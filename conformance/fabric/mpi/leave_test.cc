#include "conformance/fabric/mpi/leave.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace shardproof::mpi {
namespace {

constexpr char kMpich[] = "MPICH Version:\t4.0.2\nMPICH Device:\tch4:ucx\n";

TEST(Leave, SharedMemoryIsRecognised) {
  for (const char* with : {"all", "sm", "self,sm", "tcp,posix,self", "shm"})
    EXPECT_TRUE(NamesSharedMemory(with)) << with;
  for (const char* without : {"", "tcp", "tcp,self", "rc,ud,self"})
    EXPECT_FALSE(NamesSharedMemory(without)) << without;
}

TEST(Leave, OnlyMpichOverUcxWithoutSharedMemoryMayHang) {
  setenv("PMI_FD", "9", 1);
  setenv("UCX_TLS", "tcp,self", 1);
  EXPECT_TRUE(FinaliseMayHang(kMpich));
  EXPECT_FALSE(FinaliseMayHang("Open MPI v4.1.4"));
  EXPECT_FALSE(FinaliseMayHang("MPICH Version:\t4.0.2\nMPICH Device:\tch4:ofi\n"));
  setenv("UCX_TLS", "all", 1);
  EXPECT_FALSE(FinaliseMayHang(kMpich));
  unsetenv("UCX_TLS");
  EXPECT_FALSE(FinaliseMayHang(kMpich));
  setenv("UCX_TLS", "tcp,self", 1);
  unsetenv("PMI_FD");
  EXPECT_FALSE(FinaliseMayHang(kMpich));
}

std::string Line(int fd) {
  std::string line;
  for (char letter = 0; read(fd, &letter, 1) == 1 && letter != '\n';) line += letter;
  return line;
}

// A process that leaves, and what the process manager hears and answers. Its exit code.
int LeaveWith(int code, bool manager_stays) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
    LeaveWithoutFinalise(code);
  }
  close(ends[1]);
  EXPECT_EQ(Line(ends[0]), "cmd=barrier_in");
  if (manager_stays) {
    const std::string out = "cmd=barrier_out\n", ack = "cmd=finalize_ack\n";
    EXPECT_EQ(write(ends[0], out.data(), out.size()), static_cast<ssize_t>(out.size()));
    EXPECT_EQ(Line(ends[0]), "cmd=finalize");
    EXPECT_EQ(write(ends[0], ack.data(), ack.size()), static_cast<ssize_t>(ack.size()));
  }
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST(Leave, MeetsEverybodyAtTheProcessManagerAndEndsWithTheCode) {
  EXPECT_EQ(LeaveWith(0, true), 0);
  EXPECT_EQ(LeaveWith(1, true), 1);
  EXPECT_EQ(LeaveWith(0, false), 2);  // nobody to meet: not a good end
}

// A process that writes a word and waits for its reader.
class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    EXPECT_EQ(pipe(ends_), 0);
    child_ = fork();
    if (child_ != 0) return;
    close(ends_[0]);
    const bool written = write(ends_[1], "word", 4) == 4;
    AwaitReader(ends_[1], std::chrono::minutes(10));
    _exit(written ? 0 : 1);
  }
  void SetUp() override { ASSERT_GT(child_, 0) << "no process"; }
  ~WriterTest() override {
    if (child_ > 0) kill(child_, SIGKILL);
  }
  void ExpectEnd() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child_ = 0;
  }

  int ends_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(WriterTest, WaitsUntilAllIsRead) {
  char letter = 0;
  for (int i = 0; i < 4; ++i) {  // a pause that is too short hides a fault, and makes none
    usleep(50000);
    EXPECT_EQ(waitpid(child_, nullptr, WNOHANG), 0) << i;
    EXPECT_EQ(read(ends_[0], &letter, 1), 1);
  }
  ExpectEnd();
}

TEST_F(WriterTest, WaitsForNoReaderThatIsGone) {
  char letter = 0;
  EXPECT_EQ(read(ends_[0], &letter, 1), 1);
  close(ends_[0]);
  close(ends_[1]);
  ExpectEnd();
}

TEST(AwaitReader, WaitsNoLongerThanItMay) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "word", 4), 4);
  AwaitReader(ends[1], std::chrono::milliseconds(20));
}

TEST(AwaitReader, WaitsForPipesAlone) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_EQ(write(ends[1], "word", 4), 4);
  AwaitReader(ends[0], std::chrono::minutes(10));  // has something to read itself
  AwaitReader(-1, std::chrono::minutes(10));
}

}  // namespace
}  // namespace shardproof::mpi
