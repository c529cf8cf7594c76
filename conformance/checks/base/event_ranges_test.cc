#include "conformance/checks/base/event_ranges.h"

#include <gtest/gtest.h>

#include <string>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

std::string Runs(const std::vector<Range>& ranges) {
  TraceBuilder t(0, 1);
  const int s = t.Stream("s");
  t.Copy(s, ranges);
  const Trace trace = t.Done();
  std::string text;
  for (const auto& [from, to] : CopiedRuns(trace, trace.events.back())) {
    text += (text.empty() ? "" : " ") + std::to_string(from.alloc) + ":" +
            std::to_string(from.offset) + ">" + std::to_string(to.alloc) + ":" +
            std::to_string(to.offset) + "x" + std::to_string(from.length);
    EXPECT_EQ(from.length, to.length);
  }
  return text;
}

TEST(CopiedRuns, AreOneWhereOneRangeIsCopied) {
  EXPECT_EQ(Runs({Reads(0, 8, 4), Writes(1, 0, 4)}), "0:8>1:0x4");
}

// Columns of a matrix, end to end.
TEST(CopiedRuns, GatherAndScatter) {
  EXPECT_EQ(Runs({Reads(0, 0, 4), Reads(0, 16, 4), Writes(1, 0, 8)}), "0:0>1:0x4 0:16>1:4x4");
  EXPECT_EQ(Runs({Reads(0, 0, 8), Writes(1, 0, 2), Writes(1, 32, 6)}), "0:0>1:0x2 0:2>1:32x6");
}

TEST(CopiedRuns, EndWhereEitherSideEnds) {
  EXPECT_EQ(Runs({Reads(0, 0, 8), Reads(0, 8, 0), Writes(1, 0, 4)}), "0:0>1:0x4");
  EXPECT_EQ(Runs({Reads(0, 0, 8)}), "");
}

}  // namespace
}  // namespace shardproof
