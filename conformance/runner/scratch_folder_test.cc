#include "conformance/runner/scratch_folder.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "conformance/fabric/process/descendants.h"
#include "conformance/fabric/process/shared_words_for_test.h"

namespace shardproof {
namespace {

namespace fs = std::filesystem;

class ScratchFolderTest : public ::testing::Test {
 protected:
  ScratchFolderTest() {
    AdoptOrphans();
    setenv("TMPDIR", below_.c_str(), 1);
    fs::remove_all(below_);
    fs::create_directory(below_);
  }
  size_t Folders() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(below_), fs::directory_iterator()));
  }
  // A process that has made one, with a file in it, and does nothing more.
  pid_t Holder() {
    const pid_t holder = fork();
    if (holder == 0) {
      const ScratchFolder folder;
      std::ofstream(folder.path() + "/file") << "text";
      words_->word[0] = 1;
      while (true) pause();
    }
    words_.Await(0);
    return holder;
  }
  const std::string below_ = ::testing::TempDir() + "/scratch_folder_test";
  SharedWords words_;
};

TEST_F(ScratchFolderTest, ItGoesWithItsObject) {
  {
    const ScratchFolder folder;
    EXPECT_TRUE(fs::is_directory(folder.path()));
    EXPECT_EQ(Folders(), 1u);
  }
  EXPECT_EQ(Folders(), 0u);
  EXPECT_TRUE(DescendantsOf(getpid()).empty());
}

TEST_F(ScratchFolderTest, ItGoesWithAProcessThatIsKilled) {
  kill(Holder(), SIGKILL);
  for (int left = 2; left > 0; --left) EXPECT_GT(wait(nullptr), 0);  // it, and what tidies
  EXPECT_EQ(Folders(), 0u);
}

TEST_F(ScratchFolderTest, TheNextRunRemovesWhatWasLeft) {
  const pid_t holder = Holder();
  const ScratchFolder while_it_lives;
  EXPECT_EQ(Folders(), 2u);  // a living process keeps its own
  kill(holder, SIGSTOP);
  for (const pid_t pid : DescendantsOf(holder)) kill(pid, SIGKILL);
  kill(holder, SIGKILL);
  for (int left = 2; left > 0; --left) EXPECT_GT(wait(nullptr), 0);
  EXPECT_EQ(Folders(), 2u);
  const ScratchFolder next;
  EXPECT_EQ(Folders(), 2u);
}

TEST_F(ScratchFolderTest, OtherFoldersStay) {
  fs::create_directory(below_ + "/shardproof-scratch");
  fs::create_directory(below_ + "/mine");
  const ScratchFolder folder;
  EXPECT_EQ(Folders(), 3u);
}

}  // namespace
}  // namespace shardproof
