#include "conformance/common/read_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::filesystem::path InTestFolder(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / name;
}

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(ReadFile, GivesAllBytes) {
  for (const size_t bytes : {0UL, 1UL, 65'535UL, 65'536UL, 200'001UL}) {
    const std::string text(bytes, '\0');
    Write(InTestFolder("bytes"), text);
    EXPECT_THAT(ReadFile(InTestFolder("bytes")), Optional(text)) << bytes;
  }
}

TEST(ReadFile, UsesMemoryAgain) {
  Write(InTestFolder("long"), std::string(100'000, 'a'));
  Write(InTestFolder("short"), "bc");
  std::string text;
  ASSERT_TRUE(ReadFileInto(InTestFolder("long"), text));
  const char* memory = text.data();
  ASSERT_TRUE(ReadFileInto(InTestFolder("short"), text));
  EXPECT_EQ(text, "bc");
  EXPECT_EQ(text.data(), memory);
  EXPECT_FALSE(ReadFileInto(InTestFolder("none"), text));
}

TEST(ReadFile, ReadsFilesThatDoNotTellTheirSize) {
  EXPECT_THAT(ReadFile("/proc/self/stat"), Optional(HasSubstr(std::to_string(getpid()))));
}

TEST(ReadFile, SaysThatThereIsNoFile) {
  EXPECT_FALSE(ReadFile(InTestFolder("none")));
  EXPECT_EQ(errno, ENOENT);
}

TEST(ReadFile, SaysThatAFolderIsNoFile) {
  EXPECT_FALSE(ReadFile(::testing::TempDir()));
  EXPECT_EQ(errno, EISDIR);
}

// A run looks at all processes of the machine (fabric/process/descendants.cc); some end meanwhile.
TEST(ReadFile, OutlivesTheProcessThatItReads) {
  for (int round = 0; round < 200; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const std::string stat = "/proc/" + std::to_string(child) + "/stat";
    EXPECT_TRUE(ReadFile(stat));  // it runs or is a zombie: not reaped yet
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(ReadFile(stat));
  }
}

}  // namespace
}  // namespace shardproof
