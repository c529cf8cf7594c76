#include "reference/checkpoint/shard_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reference/fsdp/context.h"

namespace reference {
namespace {

class ShardFileTest : public testing::Test {
 protected:
  ShardFileTest()
      : folder_(testing::TempDir() + "shards_" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(ShardFileTest, OtherShardBoundariesReadTheSameTensor) {
  WriteShardFile(folder_, 0, 3,
                 {{"weight", "a b", 0, {0, 1, 2}}, {"exp_avg", "a b", 0, {9, 9, 9}}});
  WriteShardFile(folder_, 1, 3, {{"weight", "a b", 3, {3, 4, 5, 6}}});
  const ShardFolder files(folder_);
  EXPECT_EQ(files.updates(), 3);
  std::vector<float> values(5);
  files.Read("weight", "a b", 1, 5, values.data());
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5}));
}

TEST_F(ShardFileTest, ReplicasMayOverlap) {
  WriteShardFile(folder_, 0, 1, {{"weight", "w", 0, {0, 1, 2}}});
  WriteShardFile(folder_, 1, 1, {{"weight", "w", 0, {0, 1, 2}}});
  std::vector<float> values(3);
  ShardFolder(folder_).Read("weight", "w", 0, 3, values.data());
  EXPECT_EQ(values, (std::vector<float>{0, 1, 2}));
}

TEST_F(ShardFileTest, MissingElementIsNamed) {
  WriteShardFile(folder_, 0, 1, {{"weight", "w", 0, {0, 1}}});
  std::vector<float> values(3);
  try {
    ShardFolder(folder_).Read("weight", "w", 0, 3, values.data());
    ADD_FAILURE() << "element 2 is nowhere";
  } catch (const Failed& error) {
    EXPECT_NE(std::string(error.what()).find("element 2 of weight w"), std::string::npos);
  }
}

TEST_F(ShardFileTest, TruncatedFileIsRefused) {
  WriteShardFile(folder_, 0, 1, {{"weight", "w", 0, {0, 1}}});
  std::filesystem::resize_file(folder_ + "/shard_0.ckpt",
                               std::filesystem::file_size(folder_ + "/shard_0.ckpt") - 1);
  EXPECT_THROW(ShardFolder{folder_}, Failed);
}

TEST_F(ShardFileTest, FilesOfDifferentStepsAreRefused) {
  WriteShardFile(folder_, 0, 1, {{"weight", "w", 0, {0}}});
  WriteShardFile(folder_, 1, 2, {{"weight", "w", 1, {0}}});
  EXPECT_THROW(ShardFolder{folder_}, Failed);
}

TEST_F(ShardFileTest, EmptyFolderIsRefused) { EXPECT_THROW(ShardFolder{folder_}, Failed); }

TEST_F(ShardFileTest, NothingIsLeftAside) {
  WriteShardFile(folder_, 0, 1, {{"weight", "w", 0, {0}}});
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1);
}

}  // namespace
}  // namespace reference
