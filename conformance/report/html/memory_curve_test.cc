#include "conformance/report/html/memory_curve.h"

#include <gtest/gtest.h>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

TEST(MemoryCurve, BlocksCountFromTheirAllocationToTheirFree) {
  TraceBuilder t(1, 2);
  const int s = t.Stream("main");                            // 0
  const int shard = t.Alloc(s, 100, {SPF_FOR_PARAM_SHARD});  // 1
  const int full = t.Alloc(s, 300, {SPF_FOR_PARAM_FULL});    // 2
  t.Free(s, full);                                           // 3
  const int again = t.Alloc(s, 150, {SPF_FOR_PARAM_FULL});   // 4
  t.Free(s, again);                                          // 5
  t.Free(s, shard);                                          // 6
  const MemoryCurve curve = MemoryOf(t.Done(), 3);
  EXPECT_EQ(curve.rank, 1);
  EXPECT_EQ(curve.finding, 3);
  EXPECT_EQ(curve.peak, 2);
  EXPECT_EQ(curve.peak_bytes, 400);
  ASSERT_EQ(curve.purposes.size(), 2u);
  EXPECT_EQ(curve.purposes[0].name, "param_full") << "the most first";
  EXPECT_EQ(curve.purposes[0].bytes, (std::vector<int64_t>{0, 0, 300, 0, 150, 0, 0}));
  EXPECT_EQ(curve.at_finding, (std::vector<int64_t>{0, 100}));
  EXPECT_EQ(curve.at_peak, (std::vector<int64_t>{300, 100}));
  EXPECT_EQ(curve.purposes[1].name, "param_shard");
  EXPECT_EQ(curve.purposes[1].bytes, (std::vector<int64_t>{0, 100, 100, 100, 100, 100, 0}));
}

TEST(MemoryCurve, AColumnShowsItsHighestMoment) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("main");
  for (int i = 0; i < 1000; ++i) {
    const int block = t.Alloc(s, i == 700 ? 5000 : 10, {SPF_FOR_SCRATCH});
    t.Free(s, block);
  }
  const MemoryCurve curve = MemoryOf(t.Done(), 0);
  EXPECT_EQ(curve.events, 2001);
  ASSERT_EQ(curve.purposes.size(), 1u);
  const std::vector<int64_t>& bytes = curve.purposes[0].bytes;
  ASSERT_EQ(bytes.size(), kMemoryColumns);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 5000), 1);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 10), static_cast<int>(kMemoryColumns) - 1);
  EXPECT_EQ(curve.peak, 1401);
}

// What is never the most of a column is still told of, and the finding's amounts are its own.
TEST(MemoryCurve, NothingIsLostBesideTheHighestMoments) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("main");
  for (int i = 0; i < 1000; ++i) {
    t.Free(s, t.Alloc(s, 5000, {SPF_FOR_SCRATCH}));
    t.Free(s, t.Alloc(s, 10, {SPF_FOR_PARAM_FULL}));
  }
  const MemoryCurve curve = MemoryOf(t.Done(), 3);
  ASSERT_EQ(curve.purposes.size(), 2u);
  EXPECT_EQ(curve.purposes[1].name, "param_full");
  EXPECT_EQ(curve.at_finding, (std::vector<int64_t>{0, 10}));
}

TEST(MemoryCurve, AHostileTraceDoesNotOverflow) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("main");
  for (int i = 0; i < 9; ++i)
    t.Alloc(s, int64_t{1} << 61, {i % 2 == 0 ? SPF_FOR_SCRATCH : SPF_FOR_GRAD});
  const MemoryCurve curve = MemoryOf(t.Done(), -1);
  EXPECT_EQ(curve.peak_bytes, int64_t{1} << 62);
  EXPECT_TRUE(curve.at_finding.empty());
}

TEST(MemoryCurve, PinnedMemoryIsNotTheDevices) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("main");
  t.Alloc(s, 64, {SPF_FOR_NORM}, SPF_PINNED);
  EXPECT_TRUE(MemoryOf(t.Done(), 0).purposes.empty());
}

TEST(MemoryCurve, IsForFindingsAboutAmounts) {
  for (const char* id : {"BU-01", "FS-03", "FS-31", "EP-08"}) EXPECT_TRUE(BoundsMemory(id)) << id;
  for (const char* id : {"GE-05", "BU-03", "BU-04", "BU-07", "GE-40", ""})
    EXPECT_FALSE(BoundsMemory(id)) << id;
}

}  // namespace
}  // namespace shardproof
