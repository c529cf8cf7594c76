#include "conformance/checks/graph/priorities.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// The note on deadlock of two ranks that gather on one stream and reduce on another.
std::string NoteOf(int gather_priority, int reduce_priority, bool serial_safe = true) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int twin = t.Group("twin", {0, 1}), dp = t.Group("dp", {0, 1});
    const int compute = t.Stream("compute", 5);
    const int gather = t.Stream("gather", gather_priority),
              reduce = t.Stream("reduce", reduce_priority);
    const int block = t.Alloc(compute, 64);
    t.Launch(compute, SPF_K_FILL, {Writes(block, 0, 64)});
    const bool swapped = !serial_safe && rank == 1;
    t.Collective(SPF_ALL_REDUCE, swapped ? dp : twin, swapped ? reduce : gather, 8);
    t.Collective(SPF_ALL_REDUCE, swapped ? twin : dp, swapped ? gather : reduce, 8);
    traces.push_back(t.Done());
  }
  const CheckResult result = CheckDeadlock(traces);
  EXPECT_TRUE(result.judged.contains("GE-04"));
  return result.notes.size() == 1 ? result.notes[0] : "";
}

TEST(Priorities, ThatAreEqualLeaveE1Shown) {
  EXPECT_NE(NoteOf(0, 0).find("E0, E1, E2s: safe"), std::string::npos) << NoteOf(0, 0);
  EXPECT_NE(NoteOf(-1, -1).find("E0, E1, E2s: safe"), std::string::npos);
}

TEST(Priorities, ThatDifferVoidE1) {
  const std::string note = NoteOf(-1, 0);
  EXPECT_NE(note.find("E0, E2s: safe; E1: not claimed"), std::string::npos) << note;
  EXPECT_NE(note.find("stream gather and stream reduce of rank 0 have priorities -1 and 0"),
            std::string::npos)
      << note;
}

TEST(Priorities, VoidE1WhereKernelsMustRunSideBySideToo) {
  const std::string equal = NoteOf(0, 0, /*serial_safe=*/false);
  EXPECT_NE(equal.find("E0: safe; E1: safe; E2: safe; E2s: can hang"), std::string::npos) << equal;
  const std::string differ = NoteOf(0, 1, /*serial_safe=*/false);
  EXPECT_NE(differ.find("E0: safe; E1: not claimed"), std::string::npos) << differ;
}

}  // namespace
}  // namespace shardproof
