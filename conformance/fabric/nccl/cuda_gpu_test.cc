// Streams, events and memory of a real device: what NcclFabric takes for granted of them.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/fabric/nccl/cuda_testing.h"

namespace shardproof {
namespace {

using CudaGpuTest = CudaTest;

TEST_F(CudaGpuTest, SaysWhatItRunsOn) {
  const GpuVersions versions = gpu_->Versions();
  EXPECT_NE(versions.device, "");
  EXPECT_GE(versions.cuda_driver, versions.cuda_runtime);
  EXPECT_GT(versions.nccl, 20000);
}

TEST_F(CudaGpuTest, MemoryHoldsPoison) {
  std::byte* data = gpu_->Alloc(stream_, 4096).data;
  gpu_->QueueOf(stream_).Fill(data, 0xFF, 4096);
  EXPECT_EQ(FromDevice(data, 4096), std::vector<std::byte>(4096, std::byte{0xFF}));
}

TEST_F(CudaGpuTest, AddressesOfMemoryAreThoseOfKernels) {
  const GpuMemory memory = gpu_->Alloc(stream_, 1);
  EXPECT_EQ(memory.address, reinterpret_cast<uint64_t>(memory.data));
}

TEST_F(CudaGpuTest, FreedMemoryIsReusedOnItsStream) {
  std::byte* first = gpu_->Alloc(stream_, 1 << 20).data;
  gpu_->Free(stream_, first);
  EXPECT_EQ(gpu_->Alloc(stream_, 1 << 20).data, first);
}

// The pool would otherwise make the other stream wait, which is an order that the program does not
// have.
TEST_F(CudaGpuTest, MemoryThatIsNotYetFreeIsNotHandedToAnotherStream) {
  const int32_t other = gpu_->CreateStream("other", 0);
  std::byte* block = gpu_->Alloc(stream_, 1 << 20).data;
  KeepBusy(stream_);
  gpu_->Record(end_, stream_);
  gpu_->Free(stream_, block);
  std::byte* elsewhere = gpu_->Alloc(other, 1 << 20).data;
  EXPECT_TRUE(gpu_->Done(end_) || elsewhere != block);
}

TEST_F(CudaGpuTest, UploadHasReadItsSourceWhenItReturns) {
  KeepBusy(stream_);
  std::vector<int64_t> values(1000);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<int64_t> before = values;
  const int64_t* data = ToDevice(values);
  std::fill(values.begin(), values.end(), -1);
  EXPECT_EQ(FromDevice(data, before.size()), before);
}

TEST_F(CudaGpuTest, DownloadSeesWhatIsThereInItsPlace) {
  Queue& queue = gpu_->QueueOf(stream_);
  std::byte* data = gpu_->Alloc(stream_, 8).data;
  int64_t first = 0, second = 0;
  KeepBusy(stream_);
  queue.Fill(data, 1, 8);
  queue.Download(&first, data, 8);
  queue.Fill(data, 2, 8);
  queue.Download(&second, data, 8);
  Finish();
  EXPECT_EQ(first, 0x0101010101010101);
  EXPECT_EQ(second, 0x0202020202020202);
}

// Also while an older download of another stream is far from done, so that they are not delivered
// in order of issue.
TEST_F(CudaGpuTest, WhatAStreamBringsLaterIsNotThereFirst) {
  const int32_t other = gpu_->CreateStream("other", 0), idle = gpu_->CreateEvent(false);
  std::byte *data = gpu_->Alloc(stream_, 8).data, *far = gpu_->Alloc(other, 8).data;
  int64_t last = 0;
  for (int i = 0; i < 20; ++i) KeepBusy(other);
  gpu_->QueueOf(other).Download(&last, far, 8);
  Queue& queue = gpu_->QueueOf(stream_);
  for (int fills = 1; fills <= 50; ++fills) {
    int64_t first = 0, second = 0;
    for (int fill = 0; fill < fills; ++fill) queue.Fill(data, 1, 8);
    queue.Download(&first, data, 8);
    queue.Download(&second, data, 8);
    while (second == 0) {
      ASSERT_TRUE(gpu_->Done(idle));  // was not recorded: delivers what is there
      ASSERT_FALSE(second != 0 && first == 0) << "behind " << fills << " fills";
    }
  }
  Finish(other);
}

TEST_F(CudaGpuTest, CopiesLargerThanTheStagingMemoryArrive) {
  Open({.staging_bytes = 4096});
  KeepBusy(stream_);  // nothing is free again for long
  std::vector<int32_t> values(12345);
  std::iota(values.begin(), values.end(), 7);
  EXPECT_EQ(FromDevice(ToDevice(values), values.size()), values);
}

TEST_F(CudaGpuTest, AWaitForStagingMemoryCanBeGivenUp) {
  Open({.staging_bytes = 4096});
  KeepBusy(stream_);
  std::string waited_for;
  gpu_->SetBeginWait([&](const std::string& what) {
    waited_for = what;
    return [] { return true; };
  });
  std::byte* data = gpu_->Alloc(stream_, 8192).data;
  const std::vector<std::byte> bytes(8192);
  EXPECT_THROW(gpu_->QueueOf(stream_).Upload(data, bytes.data(), bytes.size()), GpuError);
  EXPECT_EQ(waited_for, "room for 1024 bytes in a staging ring of 4096");
  gpu_->SetBeginWait({});
  Finish();
}

TEST_F(CudaGpuTest, ManySmallCopiesArrive) {
  Open({.staging_bytes = 4096});
  Queue& queue = gpu_->QueueOf(stream_);
  std::byte* data = gpu_->Alloc(stream_, 3).data;
  std::vector<std::vector<uint8_t>> wanted, found(2000, std::vector<uint8_t>(3));
  for (auto& bytes : found) {
    const auto i = static_cast<uint8_t>(wanted.size());
    wanted.push_back({i, static_cast<uint8_t>(i + 1), static_cast<uint8_t>(i * 3)});
    queue.Upload(data, wanted.back().data(), 3);
    queue.Download(bytes.data(), data, 3);
  }
  Finish();
  EXPECT_EQ(found, wanted);
}

TEST_F(CudaGpuTest, AnEventThatWasNotRecordedIsDoneAndNobodyWaitsForIt) {
  const int32_t event = gpu_->CreateEvent(false);
  EXPECT_TRUE(gpu_->Done(event));
  gpu_->Wait(event, stream_);
  Finish();
}

TEST_F(CudaGpuTest, AStreamThatWaitsSeesWhatTheOtherWrote) {
  const int32_t other = gpu_->CreateStream("other", 0), written = gpu_->CreateEvent(false);
  std::byte* data = gpu_->Alloc(stream_, 8).data;
  int64_t seen = 0;
  KeepBusy(stream_);
  gpu_->QueueOf(stream_).Fill(data, 3, 8);
  gpu_->Record(written, stream_);
  gpu_->Wait(written, other);
  gpu_->QueueOf(other).Download(&seen, data, 8);
  Finish(other);
  EXPECT_EQ(seen, 0x0303030303030303);
}

// Were it the later record, the two streams would wait for each other.
TEST_F(CudaGpuTest, AWaitTakesTheRecordAtItsIssue) {
  const int32_t other = gpu_->CreateStream("other", 0);
  const int32_t forth = gpu_->CreateEvent(false), back = gpu_->CreateEvent(false);
  KeepBusy(stream_);
  gpu_->Record(forth, stream_);
  gpu_->Wait(forth, other);
  gpu_->Record(back, other);
  gpu_->Wait(back, stream_);
  gpu_->Record(forth, stream_);
  Finish();
  Finish(other);
}

TEST_F(CudaGpuTest, AnEventIsOfItsLatestRecord) {
  const int32_t event = gpu_->CreateEvent(false), idle = gpu_->CreateStream("idle", 0);
  KeepBusy(stream_);
  gpu_->Record(event, stream_);
  gpu_->Record(event, idle);
  ASSERT_TRUE(gpu_->Await(event, {}));
}

TEST_F(CudaGpuTest, AwaitStopsWhenItIsTold) {
  KeepBusy(stream_);
  gpu_->Record(end_, stream_);
  int asked = 0;
  const bool done = gpu_->Await(end_, [&] { return ++asked == 3; });
  EXPECT_TRUE(done || asked == 3);
  Finish();
}

TEST_F(CudaGpuTest, WhatADestroyedStreamHoldsStillRuns) {
  const int32_t doomed = gpu_->CreateStream("doomed", 0), written = gpu_->CreateEvent(false);
  std::byte* data = gpu_->Alloc(doomed, 8).data;
  KeepBusy(doomed);
  gpu_->QueueOf(doomed).Fill(data, 5, 8);
  gpu_->Record(written, doomed);
  gpu_->DestroyStream(doomed);
  gpu_->Wait(written, stream_);
  EXPECT_EQ(FromDevice(data, 8), std::vector<std::byte>(8, std::byte{5}));
}

TEST_F(CudaGpuTest, ADestroyedEventLeavesItsWaitsValid) {
  const int32_t other = gpu_->CreateStream("other", 0), event = gpu_->CreateEvent(false);
  std::byte* data = gpu_->Alloc(stream_, 8).data;
  int64_t seen = 0;
  KeepBusy(stream_);
  gpu_->QueueOf(stream_).Fill(data, 6, 8);
  gpu_->Record(event, stream_);
  gpu_->Wait(event, other);
  gpu_->DestroyEvent(event);
  gpu_->QueueOf(other).Download(&seen, data, 8);
  Finish(other);
  EXPECT_EQ(seen, 0x0606060606060606);
}

TEST_F(CudaGpuTest, TimingEventsMeasure) {
  const int32_t from = gpu_->CreateEvent(true), to = gpu_->CreateEvent(true);
  gpu_->Record(from, stream_);
  KeepBusy(stream_);
  gpu_->Record(to, stream_);
  ASSERT_TRUE(gpu_->Await(to, {}));
  EXPECT_GT(gpu_->ElapsedMs(from, to), 0);
}

TEST_F(CudaGpuTest, PrioritiesOutOfRangeAreClamped) {
  EXPECT_NO_THROW(gpu_->CreateStream("urgent", -1000));
  EXPECT_NO_THROW(gpu_->CreateStream("patient", 1000));
}

TEST_F(CudaGpuTest, PinnedMemoryIsTheHostsToo) {
  std::byte* pinned = gpu_->AllocPinned(8);
  std::memset(pinned, 9, 8);
  std::byte* data = gpu_->Alloc(stream_, 8).data;
  Queue& queue = gpu_->QueueOf(stream_);
  queue.Copy(data, pinned, 8);
  queue.Fill(data, 0xFF, 4);
  queue.Copy(pinned, data, 8);
  Finish();
  EXPECT_EQ(pinned[3], std::byte{0xFF});
  EXPECT_EQ(pinned[4], std::byte{9});
}

TEST_F(CudaGpuTest, RegistrableMemoryIsMemory) {
  std::byte* data = gpu_->AllocRegistrable(1000).data;
  gpu_->QueueOf(stream_).Fill(data, 4, 1000);
  EXPECT_EQ(FromDevice(data, 1000), std::vector<std::byte>(1000, std::byte{4}));
}

TEST_F(CudaGpuTest, CopiesOfNothingAreNothing) {
  Queue& queue = gpu_->QueueOf(stream_);
  queue.Upload(nullptr, nullptr, 0);
  queue.Download(nullptr, nullptr, 0);
  queue.Copy(nullptr, nullptr, 0);
  queue.Fill(nullptr, 0, 0);
  Finish();
}

TEST_F(CudaGpuTest, ARefusedCallIsNamedWithCudasReason) {
  try {
    static_cast<void>(gpu_->Alloc(stream_, uint64_t{1} << 60));
    FAIL() << "2^60 bytes were handed out";
  } catch (const GpuError& error) {
    EXPECT_NE(error.call().find("cudaMallocFromPoolAsync of 1152921504606846976 bytes on test"),
              std::string::npos);
    EXPECT_NE(error.status().find("cudaError"), std::string::npos);
  }
  // Nothing of it is left for the next kernel.
  EXPECT_NO_THROW(gpu_->QueueOf(stream_).CheckLaunch("none"));
}

TEST_F(CudaGpuTest, BodiesOfTheHostAreRefused) {
  EXPECT_THROW(gpu_->QueueOf(stream_).Run([] {}), std::logic_error);
}

TEST_F(CudaGpuTest, UnknownIdsAreRefused) {
  EXPECT_THROW(gpu_->QueueOf(77), std::logic_error);
  EXPECT_THROW(gpu_->Record(77, stream_), std::logic_error);
  EXPECT_THROW(gpu_->CheckComm(0), std::logic_error);
}

TEST_F(CudaGpuTest, IdsOfWhatWasDestroyedAreGivenAgain) {
  const int32_t event = gpu_->CreateEvent(false);
  gpu_->DestroyEvent(event);
  EXPECT_THROW(gpu_->Done(event), std::logic_error);
  EXPECT_EQ(gpu_->CreateEvent(false), event);
}

}  // namespace
}  // namespace shardproof
