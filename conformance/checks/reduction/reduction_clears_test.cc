// Gradient memory that is not cleared is told as that.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

void DropFills(MiniRun& mini) {
  for (Trace& trace : mini.run.traces) {
    std::erase_if(trace.events, [](const Event& event) {
      return event.kind == EventKind::kLaunch && event.id == SPF_K_FILL;
    });
  }
}

TEST(Clears, MemoryThatWasNeverWrittenIsNoSummand) {
  MiniRun mini = RunMini(MiniCase(2));
  EXPECT_EQ(FoundIn(CheckClears(mini.run)), "");
  EXPECT_TRUE(UnclearedSums(mini.run).empty());
  DropFills(mini);
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-05") << "and not FS-27, which is about padding";
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].message.find("is added to memory that was not cleared"),
            std::string::npos)
      << result.findings[0].message;
}

TEST(Clears, WhatIsPublishedFromMemoryThatNobodyWroteIsNoGradient) {
  MiniRun mini = RunMini(MiniCase(2));
  Trace& trace = mini.run.traces[0];
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_GRAD) continue;
    trace.ranges[event.ranges.begin].alloc += 100;  // a block that nobody uses
    break;
  }
  const CheckResult result = CheckReduction(mini.run);
  ASSERT_EQ(FoundIn(result), "FS-27");
  EXPECT_NE(result.findings[0].message.find("it was never written, or was freed or discarded"),
            std::string::npos)
      << result.findings[0].message;
}

// The blocks in which a rank's nodes add up gradients in an entry call, by parameter.
std::map<int32_t, int32_t> GradientBlocks(const MiniRun& mini, const Trace& trace, int32_t call) {
  const InstanceFacts facts(mini.spec->instances[0], mini.spec->world);
  std::map<int32_t, int32_t> blocks;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCompute || event.call != call || event.phase != SPF_BWD) continue;
    const spf_uses& uses = facts.Node(event.id, trace.rank).uses[event.phase];
    for (int32_t i = 0; i < uses.n; ++i) {
      if (uses.use[i].table == SPF_IN_GRAD)
        blocks[uses.use[i].id] = trace.ranges[event.ranges.begin + size_t(i)].alloc;
    }
  }
  return blocks;
}

TEST(Clears, AMicrobatchWhoseMemoryWasNotClearedIsNotOneThatIsNotReduced) {
  MiniRun mini = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.microbatches = 2; }));
  for (Trace& trace : mini.run.traces) {
    std::set<int32_t> last;  // blocks of the second microbatch
    for (const auto& [param, block] : GradientBlocks(mini, trace, 1)) last.insert(block);
    std::erase_if(trace.events, [&](const Event& event) {
      return event.kind == EventKind::kLaunch && event.id == SPF_K_FILL &&
             last.contains(trace.ranges[event.ranges.begin].alloc);
    });
  }
  EXPECT_EQ(FoundIn(CheckReduction(mini.run)), "FS-05");
}

// Whole gradients are reduced in place, in blocks that live on.
void ReduceInPlace(MiniRun& mini, Trace& trace) {
  const std::map<int32_t, int32_t> first = GradientBlocks(mini, trace, 1);
  std::map<int32_t, int32_t> now;  // block of step 1 -> block of step 0
  for (const auto& [param, block] : GradientBlocks(mini, trace, 2)) now[block] = first.at(param);
  std::erase_if(trace.events, [&](const Event& event) {
    const bool frees = event.kind == EventKind::kFree && event.call == 1;
    if (frees)
      return std::any_of(now.begin(), now.end(),
                         [&](const auto& pair) { return pair.second == event.alloc; });
    const bool fills = event.kind == EventKind::kLaunch && event.id == SPF_K_FILL;
    return (event.kind == EventKind::kAlloc && now.contains(event.alloc)) ||
           (fills && now.contains(trace.ranges[event.ranges.begin].alloc));
  });
  for (Event& event : trace.events) {
    if (event.kind == EventKind::kFree && now.contains(event.alloc)) event.alloc = now[event.alloc];
  }
  for (Range& range : trace.ranges) {
    if (now.contains(range.alloc)) range.alloc = now[range.alloc];
  }
  Range result;
  for (const Event& event : trace.events) {
    Range* ranges = trace.ranges.data() + event.ranges.begin;
    if (event.kind == EventKind::kCollective && event.collective == SPF_REDUCE_SCATTER) {
      ranges[1].alloc = ranges[0].alloc;
      ranges[1].offset = trace.rank * ranges[1].length;
      result = ranges[1];
    } else if (event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY && result.alloc >= 0) {
      ranges[0].alloc = result.alloc;
      ranges[0].offset = result.offset;
    }
  }
}

TEST(Clears, WhatAnEarlierStepLeftIsNeitherAddedLateNorReducedTwice) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Trace& trace : mini.run.traces) ReduceInPlace(mini, trace);
  const CheckResult result = CheckReduction(mini.run);
  EXPECT_EQ(FoundIn(result), "FS-22") << "and neither FS-36 nor FS-37";
  ASSERT_FALSE(result.findings.empty());
  const bool says =
      std::any_of(result.findings.begin(), result.findings.end(), [](const Finding& finding) {
        return finding.message.find("is added to what train_step 0 left there: clear") !=
               std::string::npos;
      });
  EXPECT_TRUE(says);
}

}  // namespace
}  // namespace shardproof
