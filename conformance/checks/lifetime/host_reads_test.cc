// host_reads_test: GE-38 in a small engine's trace to which reads of the host are added.
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

constexpr int32_t kPinned = 1000, kDevice = 1001;
constexpr int64_t kBytes = 16;

// Adds work to the end of create on rank 0.
class Added {
 public:
  Added() : mini_(RunMini(MiniCase(2))) {}

  Added& Alloc(int32_t block) {
    Event& event = Add(EventKind::kAlloc, {});
    event.alloc = block;
    event.count = kBytes;
    event.id = block == kPinned ? SPF_PINNED : SPF_DEVICE;
    return *this;
  }
  Added& Fill(int64_t bytes) {
    Add(EventKind::kLaunch, {{kDevice, kWrite, 0, bytes}}).id = SPF_K_FILL;
    return *this;
  }
  Added& Copy() {
    Add(EventKind::kCopy, {{kDevice, kRead, 0, kBytes}, {kPinned, kWrite, 0, kBytes}});
    return *this;
  }
  Added& Sync() {
    Add(EventKind::kStreamSync, {});
    return *this;
  }
  Added& Host(uint8_t access, int64_t bytes = kBytes) {
    Add(EventKind::kHostAccess, {{kPinned, access, 0, bytes}}).stream = -1;
    return *this;
  }
  CheckResult Checked() {
    Trace& trace = mini_.run.traces[0];
    const auto end = std::ranges::find_if(
        trace.events, [](const Event& event) { return event.kind == EventKind::kCallEnd; });
    trace.events.insert(end, events_.begin(), events_.end());
    return CheckHostReads(mini_.run);
  }

 private:
  Event& Add(EventKind kind, const std::vector<Range>& ranges) {
    Trace& trace = mini_.run.traces[0];
    Event& event = events_.emplace_back();
    event.kind = kind;
    event.stream = 0;
    event.call = 0;
    event.ranges.begin = static_cast<uint32_t>(trace.ranges.size());
    trace.ranges.insert(trace.ranges.end(), ranges.begin(), ranges.end());
    event.ranges.end = static_cast<uint32_t>(trace.ranges.size());
    return event;
  }
  MiniRun mini_;
  std::vector<Event> events_;
};

Added Blocks() {
  Added added;
  added.Alloc(kPinned).Alloc(kDevice);
  return added;
}

TEST(HostReads, WhatWasWrittenAndCopied) {
  const CheckResult result = Blocks().Fill(kBytes).Copy().Sync().Host(kRead).Checked();
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("GE-38"));
}

TEST(HostReads, WhatNobodyCopied) {
  EXPECT_EQ(FoundIn(Blocks().Fill(kBytes).Sync().Host(kRead).Checked()), "GE-38");
}

TEST(HostReads, ACopyOfWhatNobodyWrote) {
  const CheckResult result = Blocks().Fill(kBytes / 2).Copy().Sync().Host(kRead).Checked();
  EXPECT_EQ(FoundIn(result), "GE-38");
  EXPECT_EQ(result.findings.at(0).seen, "bytes [8, 16) of the block hold what nothing wrote");
}

TEST(HostReads, AsFarAsItWasWritten) {
  EXPECT_EQ(FoundIn(Blocks().Fill(kBytes / 2).Copy().Sync().Host(kRead, kBytes / 2).Checked()), "");
}

TEST(HostReads, WhatTheHostWroteItself) {
  EXPECT_EQ(FoundIn(Blocks().Host(kWrite).Host(kRead).Checked()), "");
  EXPECT_EQ(FoundIn(Blocks().Host(kRead | kWrite).Checked()), "") << "it may only write";
}

TEST(HostReads, NotSpokenOfWithoutAny) {
  const CheckResult result = CheckHostReads(RunMini(MiniCase(2)).run);
  EXPECT_FALSE(result.judged.contains("GE-38"));
  EXPECT_TRUE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
