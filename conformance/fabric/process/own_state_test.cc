#include "conformance/fabric/process/own_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace shardproof {
namespace {

using ::testing::HasSubstr;

TEST(OwnState, NothingHasChanged) { EXPECT_EQ(OwnState().ChangedNow(), ""); }

TEST(OwnState, ALimit) {
  const OwnState before;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlim_t files = limit.rlim_cur;
  limit.rlim_cur = files - 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(before.ChangedNow(), "the limit RLIMIT_NOFILE is " + std::to_string(files - 1) +
                                     ", it was " + std::to_string(files));
  limit.rlim_cur = files;
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(before.ChangedNow(), "");
}

TEST(OwnState, AHandler) {
  const OwnState before;
  const auto old = signal(SIGFPE, SIG_IGN);
  EXPECT_EQ(before.ChangedNow(), "SIGFPE has another handler");
  signal(SIGFPE, old);
}

TEST(OwnState, AStandardFile) {
  const OwnState before;
  const int kept = dup(0);
  close(0);
  EXPECT_EQ(before.ChangedNow(), "standard input is closed");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // the lowest number is that of the file that was closed
  EXPECT_EQ(before.ChangedNow(), "standard input is another file");
  dup2(kept, 0);
  EXPECT_EQ(before.ChangedNow(), "");
}

TEST(OwnState, TheFolder) {
  const OwnState before;
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_THAT(before.ChangedNow(), HasSubstr("the working folder is /, it was "));
}

}  // namespace
}  // namespace shardproof
