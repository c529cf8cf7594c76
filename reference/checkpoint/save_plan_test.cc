#include "reference/checkpoint/save_plan.h"

#include <gtest/gtest.h>

#include "reference/checkpoint/file_system.h"

namespace reference {
namespace {

using Held = std::vector<std::vector<TensorSlice>>;

TensorSlice Slice(const std::string& name, int64_t numel, int64_t begin, int64_t end) {
  return {name, {"F32", {numel}}, begin, end - begin};
}

// tensor begin-end held by ... written by ...
std::string Text(const SavePlan& plan) {
  std::string text;
  for (const SavePart& part : plan) {
    text += part.slice.tensor + " " + std::to_string(part.slice.offset) + "-" +
            std::to_string(part.slice.offset + part.slice.count) + " by";
    for (int32_t rank : part.holders)
      text += (rank == part.writer ? " *" : " ") + std::to_string(rank);
    text += "\n";
  }
  return text;
}

std::string Refusal(const Held& held) {
  try {
    PlanSave(held);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

TEST(SavePlan, ShardsAreWrittenByTheirOwners) {
  EXPECT_EQ(Text(PlanSave({{Slice("a", 8, 0, 3)}, {Slice("a", 8, 3, 8)}, {}})),
            "a 0-3 by *0\na 3-8 by *1\n");
}

TEST(SavePlan, ReplicasShareTheWork) {
  const std::vector<TensorSlice> all{Slice("a", 4, 0, 4), Slice("b", 2, 0, 2), Slice("c", 2, 0, 2)};
  EXPECT_EQ(Text(PlanSave({all, all})), "a 0-4 by *0 1\nb 0-2 by 0 *1\nc 0-2 by 0 *1\n");
}

TEST(SavePlan, DifferentBoundariesAreCut) {
  EXPECT_EQ(Text(PlanSave({{Slice("a", 6, 0, 4)}, {Slice("a", 6, 4, 6)}, {Slice("a", 6, 2, 6)}})),
            "a 0-2 by *0\na 2-4 by 0 *2\na 4-6 by *1 2\n");
}

TEST(SavePlan, WhatIsHeldByNobodyOrTwiceIsRefused) {
  EXPECT_EQ(Refusal({{Slice("a", 6, 0, 2)}, {Slice("a", 6, 4, 6)}}),
            "cannot save tensor a: elements 2 to 4 are held by no rank");
  EXPECT_EQ(Refusal({{Slice("a", 6, 0, 6), Slice("a", 6, 1, 2)}}),
            "cannot save tensor a: elements 1 to 2 are held twice by one rank");
  EXPECT_EQ(Refusal({{Slice("a", 6, 0, 6)}, {Slice("a", 7, 0, 6)}}),
            "cannot save tensor a: it is F32 [6] on rank 0 and F32 [7] on rank 1");
  EXPECT_EQ(Refusal({{Slice("a", 6, 0, 9)}}),
            "cannot save tensor a: F32 [6] has no elements from 0 to 9");
}

TEST(SavePlan, TextsOfSlicesComeBack) {
  const std::vector<TensorSlice> slices{{"weight/a b", {"F32", {2, 3}}, 1, 4},
                                        {"updates", {"I64", {}}, 0, 1}};
  EXPECT_EQ(ParseSlices(SlicesText(slices)), slices);
  EXPECT_TRUE(ParseSlices("").empty());
}

}  // namespace
}  // namespace reference
