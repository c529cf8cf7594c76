#include "reference/checkpoint/shard_report.h"

#include <gtest/gtest.h>

namespace reference {
namespace {

// Rank 0 holds the first half of a, rank 1 the second, both hold b.
const TensorFacts kFour{"F32", {4}}, kTwo{"F32", {2}};
SavePlan Plan() {
  return PlanSave(
      {{{"a", kFour, 0, 2}, {"b", kTwo, 0, 2}}, {{"a", kFour, 2, 2}, {"b", kTwo, 0, 2}}});
}

TEST(ShardReport, BecomesAnIndex) {
  const Index index = IndexOf(5, Plan(), {{{100, 1}, {11, 22}}, {{200, 2}, {33, 22}}});
  EXPECT_EQ(index.generation, 5);
  const std::string first = "shard-5-0.safetensors", second = "shard-5-1.safetensors";
  EXPECT_EQ(index.files.at(first), (StoredFile{100, 1}));
  EXPECT_EQ(index.files.at(second), (StoredFile{200, 2}));
  EXPECT_EQ(index.tensors.at("a").slices,
            (std::vector<StoredSlice>{{first, "a[0:2]", 0, 2, 11}, {second, "a[2:4]", 2, 2, 33}}));
  EXPECT_EQ(index.tensors.at("b").slices, (std::vector<StoredSlice>{{first, "b", 0, 2, 22}}));
  EXPECT_EQ(ParseIndex("i", IndexText(index)), index);
}

TEST(ShardReport, ReplicasThatDifferAreNotSaved) {
  try {
    IndexOf(5, Plan(), {{{100, 1}, {11, 22}}, {{200, 2}, {33, 23}}});
    ADD_FAILURE() << "b differs between ranks 0 and 1";
  } catch (const CheckpointError& error) {
    EXPECT_NE(
        std::string(error.what()).find("tensor b: elements 0 to 2 differ between ranks 0 and 1"),
        std::string::npos)
        << error.what();
  }
}

TEST(ShardReport, TextsComeBack) {
  const ShardReport report{{1234567890123, 4294967295U}, {0, 7, 4294967295U}};
  const ShardReport back = ShardReport::Parse(report.Text());
  EXPECT_EQ(back.file, report.file);
  EXPECT_EQ(back.crcs, report.crcs);
}

}  // namespace
}  // namespace reference
