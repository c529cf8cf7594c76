// What a finding says of two accesses that race.
#include "conformance/checks/graph/race_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/checks/graph/gathering_rank.h"

namespace shardproof {
namespace {

using graph::Check, graph::Found, graph::Ids;
using ::testing::HasSubstr;
using ::testing::Not;
using Rank = graph::GatheringRank;

// A block that the host wrote, a copy of it, and its free on the copy's stream.
CheckResult FreedBehindItsCopy(int kind) {
  Rank rank(0, 1);
  const int device = rank.trace.Alloc(rank.compute, 64);
  const int block = rank.trace.Alloc(rank.compute, 64, {}, kind);
  rank.trace.Copy(rank.compute, Reads(block, 0, 64), Writes(device, 0, 64));
  rank.trace.Free(rank.compute, block);
  return Check(rank);
}

TEST(RaceWords, PinnedMemoryIsFreedInHostOrder) {
  const CheckResult result = FreedBehindItsCopy(SPF_PINNED);
  ASSERT_EQ(Found(result), Ids{"GE-11"});
  const Finding& finding = result.findings[0];
  EXPECT_EQ(finding.operation, "free of block 1 (host, pinned memory)");
  EXPECT_EQ(finding.stream, "") << "it is in no stream's order";
  EXPECT_THAT(finding.message, HasSubstr("copy (stream compute) reads it, free of block 1 (host, "
                                         "pinned memory) frees it"));
  EXPECT_THAT(finding.message, HasSubstr("Pinned memory is freed in host order"));
  EXPECT_THAT(finding.message, HasSubstr("event_sync or stream_sync"));
}

TEST(RaceWords, DeviceMemoryIsFreedInTheOrderOfAStream) {
  EXPECT_EQ(Found(FreedBehindItsCopy(SPF_DEVICE)), Ids{});
  Rank rank(0, 1);
  const int block = rank.trace.Alloc(rank.compute, 64);
  rank.trace.Launch(rank.compute, SPF_K_AXPBY, {Writes(block, 0, 64)});
  rank.trace.Free(rank.comm, block);
  const CheckResult result = Check(rank);
  ASSERT_FALSE(result.findings.empty());
  for (const Finding& finding : result.findings) {
    EXPECT_THAT(finding.message, Not(HasSubstr("host order"))) << finding.requirement;
    EXPECT_THAT(finding.message, HasSubstr("free of block 0 (stream comm) frees it"));
  }
}

}  // namespace
}  // namespace shardproof
