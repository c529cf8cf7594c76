#include "conformance/fabric/device.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

// Verbs for a device with three streams and two communicators.
class DeviceTest : public ::testing::Test {
 protected:
  DeviceTest() : device(0) {
    for (const char* name : {"compute", "comm", "copy"}) device.CreateStream(name);
    device.AddGroup("dp", {0, 1});
    device.AddGroup("ep", {0, 2});
  }
  EntryId Local(int32_t stream) {
    return device.AddLocal(stream, "work", [] {});
  }
  CommOp Op(int32_t group, int32_t stream, int32_t kind = SPF_ALL_REDUCE) {
    CommOp op;
    op.kind = kind;
    op.group = group;
    op.stream = stream;
    op.peer = 1;
    op.what = "op";
    return op;
  }
  EntryId Kernel(int32_t group, int32_t stream) {
    return device.AddGroupCall({Op(group, stream)}).front();
  }
  bool Ready(EntryId id) {
    return !device.Done(id) && device.entry(id).state == EntryState::kReady;
  }
  void Run(EntryId id) {
    device.Start(id);
    device.Complete(id);
  }
  Device device;
};

TEST_F(DeviceTest, AStreamRunsItsEntriesInOrder) {
  const EntryId first = Local(0), second = Local(0), other = Local(1);
  EXPECT_EQ(device.ready(), (std::vector<EntryId>{first, other}));
  Run(first);
  EXPECT_TRUE(Ready(second));
  EXPECT_TRUE(device.Done(first));
}

TEST_F(DeviceTest, AWaitWithoutARecordIsNoEdge) {
  const int32_t event = device.CreateEvent();
  EXPECT_EQ(device.AddWait(event, 1), -1);
  const EntryId work = Local(1);
  Local(0);
  device.AddRecord(event, 0);  // too late
  EXPECT_TRUE(Ready(work));
}

TEST_F(DeviceTest, AWaitTakesTheLatestRecordBeforeIt) {
  const int32_t event = device.CreateEvent();
  const EntryId early = Local(0), first = device.AddRecord(event, 0);
  const EntryId late = Local(0), second = device.AddRecord(event, 0);
  const EntryId wait = device.AddWait(event, 1);
  const EntryId third = device.AddRecord(event, 2);  // does not count
  device.DestroyEvent(event);                        // and leaves the wait valid
  Run(third);
  Run(early);
  Run(first);
  EXPECT_FALSE(Ready(wait));
  Run(late);
  EXPECT_FALSE(Ready(wait));
  Run(second);
  EXPECT_TRUE(Ready(wait));
}

TEST_F(DeviceTest, AWaitForACompletedRecordIsReadyAtOnce) {
  const int32_t event = device.CreateEvent();
  Run(device.AddRecord(event, 0));
  EXPECT_TRUE(Ready(device.AddWait(event, 1)));
}

TEST_F(DeviceTest, KernelsOfOneCommunicatorStartInIssueOrderAcrossStreams) {
  const EntryId work = Local(0), first = Kernel(0, 0), second = Kernel(0, 1), other = Kernel(1, 2);
  EXPECT_TRUE(Ready(other));
  EXPECT_FALSE(Ready(second));
  Run(work);
  device.Start(first);
  EXPECT_FALSE(Ready(second));
  device.Complete(first);
  EXPECT_TRUE(Ready(second));
}

TEST_F(DeviceTest, AGroupCallIsOneKernelPerCommunicatorOnAllItsStreams) {
  const EntryId before = Local(1);
  const auto kernels = device.AddGroupCall({Op(1, 0), Op(0, 0), Op(1, 1)});
  ASSERT_EQ(kernels.size(), 2u);
  const EntryId after = Local(1);
  EXPECT_EQ(device.entry(kernels[0]).group, 1);
  EXPECT_EQ(device.entry(kernels[0]).streams, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(device.entry(kernels[0]).ops.size(), 2u);
  EXPECT_EQ(device.entry(kernels[0]).positions, (std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(Ready(kernels[0]));  // waits for all of its streams
  EXPECT_FALSE(Ready(kernels[1]));  // stream 0 comes after the first kernel
  Run(before);
  EXPECT_TRUE(Ready(kernels[0]));
  EXPECT_FALSE(Ready(after));  // and blocks all of them
  Run(kernels[0]);
  EXPECT_TRUE(Ready(after));
  EXPECT_TRUE(Ready(kernels[1]));
}

TEST_F(DeviceTest, MessagesAndCollectivesAreNumberedApart) {
  const auto kernels =
      device.AddGroupCall({Op(0, 0, SPF_SEND), Op(0, 0, SPF_RECV), Op(0, 0), Op(0, 0, SPF_SEND)});
  EXPECT_EQ(device.entry(kernels[0]).positions, (std::vector<int64_t>{0, 0, 0, 1}));
}

TEST_F(DeviceTest, ADestroyedStreamStillRunsWhatItHas) {
  const EntryId work = Local(0);
  device.DestroyStream(0);
  EXPECT_TRUE(Ready(work));
  EXPECT_EQ(device.pending(), 1);
  Run(work);
  EXPECT_EQ(device.pending(), 0);
}

TEST_F(DeviceTest, AbandonDropsWhatHasNotStartedAndKeepsWhatRuns) {
  bool alive = true;
  const auto token = std::shared_ptr<bool>(&alive, [](bool* flag) { *flag = false; });
  const EntryId running = Local(0), queued = device.AddLocal(0, "work", [token] {}),
                kernel = Kernel(0, 1);
  const_cast<std::shared_ptr<bool>&>(token).reset();
  device.Start(running);
  device.Abandon();
  EXPECT_FALSE(alive);  // its captures are gone
  EXPECT_TRUE(device.Done(queued));
  EXPECT_TRUE(device.Done(kernel));
  EXPECT_FALSE(device.Done(running));
  device.Complete(running);
  EXPECT_EQ(device.pending(), 0);
  EXPECT_TRUE(Ready(Local(0)));
}

TEST_F(DeviceTest, SaysWhyAnEntryCannotStart) {
  const int32_t event = device.CreateEvent();
  Local(0);
  device.AddRecord(event, 0);
  Local(1);
  const EntryId wait = device.AddWait(event, 1);
  EXPECT_EQ(device.WhyQueued(wait),
            "behind work on comm (stream 1), its record on compute (stream 0) is not complete");
  EXPECT_EQ(device.Fronts(), (std::vector<EntryId>{0, 2}));
  EXPECT_EQ(device.CompletesFirst({wait, -1}), (std::vector<EntryId>{0, 1, 2, wait}));
  EXPECT_EQ(device.CompletesFirst({2, 1}), (std::vector<EntryId>{0, 1, 2}));
}

// Long runs on one queue: not each entry through all before it.
TEST_F(DeviceTest, WhatALongQueueNeedsIsFoundInOnePass) {
  constexpr int32_t kEntries = 50000;
  Device one(0, 1);
  for (const char* name : {"compute", "comm"}) one.CreateStream(name);
  EntryId last = -1;
  for (int32_t i = 0; i < kEntries; ++i) last = one.AddLocal(i % 2, "work", [] {});
  // The one before it must start, and need not complete.
  EXPECT_EQ(one.CompletesFirst({last}).size(), size_t{kEntries - 1});
}

// One hardware queue: the second stream's work waits until the first stream's has started, no
// longer.
TEST_F(DeviceTest, OneHardwareQueueStartsEntriesInTheOrderOfIssue) {
  Device one(0, 1);
  for (const char* name : {"compute", "comm"}) one.CreateStream(name);
  const auto ready = [&](EntryId id) {
    return !one.Done(id) && one.entry(id).state == EntryState::kReady;
  };
  const EntryId first = one.AddLocal(0, "first", [] {}), behind = one.AddLocal(0, "behind", [] {}),
                other = one.AddLocal(1, "other", [] {});
  EXPECT_TRUE(ready(first) && !ready(behind) && !ready(other));
  EXPECT_EQ(one.WhyQueued(other), "the hardware queue serves behind on compute (stream 0) first");
  // Completes before behind starts.
  EXPECT_EQ(one.CompletesFirst({other}), (std::vector<EntryId>{first, other}));
  one.Start(first);
  EXPECT_FALSE(ready(other));  // behind still waits for its stream
  one.Complete(first);
  EXPECT_TRUE(ready(behind) && !ready(other));
  one.Start(behind);
  EXPECT_TRUE(ready(other));  // while behind runs
  one.Start(other);
  one.Complete(other);
  one.Complete(behind);
  EXPECT_EQ(one.pending(), 0);
  EXPECT_TRUE(ready(one.AddLocal(1, "later", [] {})));
}

TEST_F(DeviceTest, StreamsOfDifferentHardwareQueuesDoNotWaitForEachOther) {
  Device two(0, 2);
  for (const char* name : {"a", "b", "c"}) two.CreateStream(name);  // a and c share a queue
  two.AddLocal(0, "a", [] {});
  two.AddLocal(0, "a again", [] {});
  const EntryId b = two.AddLocal(1, "b", [] {}), c = two.AddLocal(2, "c", [] {});
  EXPECT_EQ(two.entry(b).state, EntryState::kReady);
  EXPECT_EQ(two.entry(c).state, EntryState::kQueued);
  two.Abandon();
  EXPECT_EQ(two.pending(), 0);
}

TEST_F(DeviceTest, FinishedEntriesCostNoMemory) {
  for (int i = 0; i < 1000; ++i) Run(Local(i % 3));
  EXPECT_EQ(device.issued(), 1000);
  EXPECT_EQ(device.pending(), 0);
  EXPECT_TRUE(device.Done(999));
}

}  // namespace
}  // namespace shardproof
