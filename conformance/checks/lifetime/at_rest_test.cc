// What FS-31 and FS-32 allow engines in other styles: padding that gathers show, memory that is
// discarded and kept.
#include "conformance/checks/lifetime/at_rest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

constexpr int32_t kWorld = 2;

// Every shard has so many elements more; the gathers show so many of them.
std::string FoundWithPadding(int64_t elements, int64_t shown) {
  MiniRun mini = RunMini(MiniCase(kWorld));
  for (Trace& trace : mini.run.traces) {
    for (Event& event : trace.events) {
      const bool values = event.count == 1 << 12;
      if (event.kind == EventKind::kAlloc && !values)
        event.count += 4 * elements * (event.call > 0 ? kWorld : 1);
      if (event.kind != EventKind::kCollective || event.collective != SPF_ALL_GATHER) continue;
      event.count += shown;
      trace.ranges[event.ranges.begin].length += 4 * shown;
      trace.ranges[event.ranges.begin + 1].length += 4 * shown * kWorld;
    }
  }
  return FoundIn(CheckMemory(mini.run));
}

TEST(AtRest, PaddingThatGathersShowIsAllowed) {
  EXPECT_EQ(FoundWithPadding(0, 0), "");
  EXPECT_EQ(FoundWithPadding((1 << 16) - 1, (1 << 16) - 1), "");
}

TEST(AtRest, PaddingThatNoGatherShowsIsNot) { EXPECT_EQ(FoundWithPadding(4096, 0), "FS-31"); }

TEST(AtRest, PaddingBeyondAMultipleOfTwoToThe16IsNot) {
  EXPECT_EQ(FoundWithPadding(1 << 18, 1 << 18), "FS-31");
}

enum class Pool { kInUse, kDiscarded, kNeverUsed };

// Rank 1's create makes so many blocks, each far larger than what a strategy keeps; each train_step
// uses one after the other.
std::string FoundWithPool(int blocks, Pool pool) {
  MiniRun mini = RunMini(MiniCase(kWorld));
  Trace& trace = mini.run.traces[1];
  std::vector<Event> events;
  const auto work = [&](const Event& beside, int32_t block, int32_t kernel) {
    Event launch = beside;
    launch.kind = EventKind::kLaunch;
    launch.alloc = -1;
    launch.id = kernel;
    launch.ranges = {uint32_t(trace.ranges.size()), uint32_t(trace.ranges.size()) + 1};
    trace.ranges.push_back(Writes(block, 0, 1 << 20));
    events.push_back(launch);
  };
  Event alloc;
  for (const Event& event : trace.events) {
    const bool ends = event.kind == EventKind::kStreamDestroy;
    const bool first = event.kind == EventKind::kAlloc && alloc.kind != EventKind::kAlloc;
    const bool begins = event.kind == EventKind::kCallEnd && event.call > 0;
    if (first) alloc = event;
    for (int32_t k = 0; k < blocks && (first || ends || begins); ++k) {
      const int32_t block = (1 << 20) + k;
      Event own = alloc;
      own.call = event.call;
      own.alloc = block;
      own.count = 1 << 20;
      if (first) events.push_back(own);
      own.kind = EventKind::kFree;
      if (ends) events.push_back(own);
      if (!begins || pool == Pool::kNeverUsed) continue;
      work(own, block, SPF_K_FILL);
      if (pool == Pool::kDiscarded) work(own, block, SPF_K_DISCARD);
    }
    events.push_back(event);
  }
  trace.events = std::move(events);
  return FoundIn(CheckMemory(mini.run));
}

TEST(AtRest, ABlockThatIsDiscardedAndKeptIsAllowed) {
  EXPECT_EQ(FoundWithPool(0, Pool::kDiscarded), "");
  EXPECT_EQ(FoundWithPool(1, Pool::kDiscarded), "");
  EXPECT_EQ(FoundWithPool(2, Pool::kDiscarded), "") << "double buffers";
}

TEST(AtRest, MoreThanIsNeededAtOnceIsNot) {
  EXPECT_EQ(FoundWithPool(3, Pool::kDiscarded), "FS-31");
}

// One unit at a time, each into the block that has been idle longest.
std::string FoundWithDoubleBuffers(int32_t buffers, bool asked) {
  MiniFaults faults;
  faults.buffers = buffers;
  MiniRun mini =
      RunMini(MiniCase(kWorld, [](InstanceSpec& spec) { spec.double_buffer = true; }), faults);
  mini.spec->instances[0].double_buffer = asked;
  return FoundIn(CheckMemory(mini.run));
}

TEST(AtRest, DoubleBuffersAreTwoOfEachThatIsInUse) {
  EXPECT_EQ(FoundWithDoubleBuffers(1, true), "");
  EXPECT_EQ(FoundWithDoubleBuffers(2, true), "");
  EXPECT_EQ(FoundWithDoubleBuffers(3, true), "FS-31");
  EXPECT_EQ(FoundWithDoubleBuffers(2, false), "FS-31") << "without the knob: one more";
}

TEST(AtRest, WhatIsInUseOrWasNeverUsedIsNot) {
  EXPECT_EQ(FoundWithPool(1, Pool::kInUse), "FS-31");
  EXPECT_EQ(FoundWithPool(2, Pool::kNeverUsed), "FS-31");
}

}  // namespace
}  // namespace shardproof
