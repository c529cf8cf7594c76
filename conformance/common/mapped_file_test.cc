#include "conformance/common/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace shardproof {
namespace {

std::filesystem::path FileOf(const std::string& bytes) {
  const auto path = std::filesystem::path(testing::TempDir()) / "mapped";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(MappedFileTest, HasTheBytesAlsoThoseThatWereGivenBack) {
  std::string bytes(size_t{9} << 20, 'a');
  for (size_t i = 0; i < bytes.size(); i += 1000) bytes[i] = static_cast<char>('b' + i % 20);
  MappedFile file(FileOf(bytes));
  EXPECT_TRUE(file.bytes() == bytes);
  file.Done(bytes.size());
  EXPECT_TRUE(file.bytes() == bytes);  // read from disk again
}

// The kernel keeps what it read ahead in its cache; what counts as the process's are its pages.
TEST(MappedFileTest, WhatIsDoneIsNoLongerMemoryOfTheProcess) {
  MappedFile file(FileOf(std::string(size_t{16} << 20, 'a')));
  const auto resident = [] {
    std::ifstream facts("/proc/self/statm");
    size_t pages = 0, used = 0;
    facts >> pages >> used;
    return used * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  };
  EXPECT_EQ(std::count(file.bytes().begin(), file.bytes().end(), 'a'), 16 << 20);
  const size_t before = resident();
  file.Done(size_t{16} << 20);
  EXPECT_LT(resident() + (size_t{12} << 20), before);
}

TEST(MappedFileTest, AnEmptyFileHasNoBytes) {
  MappedFile file(FileOf(""));
  EXPECT_TRUE(file.bytes().empty());
  file.Done(0);
}

TEST(MappedFileTest, WhatIsNoFileIsRefusedByName) {
  for (const char* const path : {"/no/such/file", "/tmp", "/dev/null"}) {
    try {
      MappedFile file{std::filesystem::path(path)};
      ADD_FAILURE() << path;
    } catch (const std::system_error& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace shardproof
