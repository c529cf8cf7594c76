// Communicators of NCCL on a real device, of one rank each: calls, groups, registration and every
// way to end. What takes more ranks takes more processes: ci/gpu runs the conformance cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/nccl/cuda_testing.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof {
namespace {

class CudaCommsTest : public CudaTest {
 protected:
  int32_t Begin() {
    return gpu_->BeginComm({.id = gpu_->NewCommId(), .name = "alone", .world_ranks = {0}, .me = 0});
  }
  int32_t Open1() {
    const int32_t comm = Begin();
    EXPECT_TRUE(gpu_->AwaitComm(comm, {}));
    return comm;
  }
  void End(int32_t comm) {
    Finish();
    gpu_->FinalizeComm(comm);
    ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
    gpu_->DestroyComm(comm);
  }
  // A call on memory of the test: [send | recv], count elements each.
  GpuCall CallOn(GpuCall::Kind kind, int32_t dtype, std::byte* data, uint64_t count) const {
    GpuCall call;
    call.kind = kind, call.dtype = dtype, call.stream = stream_, call.count = count, call.peer = 0;
    call.send = data, call.recv = data + count * DtypeBytes(dtype);
    return call;
  }
};

std::vector<std::byte> SmallNumbers(int32_t dtype, uint64_t count) {
  std::vector<std::byte> bytes(count * DtypeBytes(dtype));
  for (uint64_t i = 0; i < count; ++i) {
    const auto number = static_cast<float>(i % 7);
    std::byte* at = bytes.data() + i * DtypeBytes(dtype);
    const auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (dtype) {
      case SPF_U8:
        put(static_cast<uint8_t>(number));
        break;
      case SPF_I32:
        put(static_cast<int32_t>(number));
        break;
      case SPF_I64:
        put(static_cast<int64_t>(number));
        break;
      case SPF_BF16:
        put(wire::ToBf16(number));
        break;
      case SPF_F16:
        put(wire::ToF16(number));
        break;
      case SPF_F32:
        put(number);
        break;
      case SPF_F64:
        put(static_cast<double>(number));
        break;
      default:
        throw std::logic_error("no such dtype");
    }
  }
  return bytes;
}

struct Row {
  GpuCall::Kind kind;
  int32_t collective;  // spf_collective_kind
};
constexpr Row kRows[] = {{GpuCall::Kind::kAllGather, SPF_ALL_GATHER},
                         {GpuCall::Kind::kAllReduce, SPF_ALL_REDUCE},
                         {GpuCall::Kind::kReduceScatter, SPF_REDUCE_SCATTER},
                         {GpuCall::Kind::kBroadcast, SPF_BROADCAST}};

TEST_F(CudaCommsTest, CollectivesOfOneRankAreThoseOfTheOtherFabrics) {
  constexpr uint64_t kCount = 1001;
  const int32_t comm = Open1();
  for (const Row& row : kRows) {
    for (int32_t dtype = SPF_U8; dtype <= SPF_F64; ++dtype) {
      for (int32_t reduction : {SPF_SUM, SPF_AVG}) {
        SCOPED_TRACE("collective " + std::to_string(row.collective) + " dtype " +
                     std::to_string(dtype));
        std::vector<std::byte> sent = SmallNumbers(dtype, kCount),
                               wanted(sent.size(), std::byte{0xFF});
        CommOp op;
        op.kind = row.collective, op.dtype = dtype, op.reduction = reduction, op.count = kCount,
        op.peer = 0;
        op.send = sent.data(), op.recv = wanted.data();
        RunCollective({{&op, sent.data()}}, 0);

        std::vector<std::byte> both = sent;
        both.resize(2 * sent.size(), std::byte{0xFF});
        std::byte* data = ToDevice(both);
        GpuCall call = CallOn(row.kind, dtype, data, kCount);
        call.reduction = reduction;
        gpu_->Launch(comm, {call});
        ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
        EXPECT_EQ(FromDevice(data + sent.size(), wanted.size()), wanted);
      }
    }
  }
  End(comm);
}

TEST_F(CudaCommsTest, ARankMaySendToItself) {
  const int32_t comm = Open1();
  const std::vector<std::byte> sent = SmallNumbers(SPF_F32, 100);
  std::vector<std::byte> both = sent;
  both.resize(2 * sent.size(), std::byte{0xFF});
  std::byte* data = ToDevice(both);
  gpu_->Launch(comm, {CallOn(GpuCall::Kind::kSend, SPF_F32, data, 100),
                      CallOn(GpuCall::Kind::kRecv, SPF_F32, data, 100)});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  EXPECT_EQ(FromDevice(data + sent.size(), sent.size()), sent);
  End(comm);
}

// The user guide, "CUDA Stream Semantics": a group that names several streams begins after all and
// ends before all.
TEST_F(CudaCommsTest, AGroupOnTwoStreamsIsOneOperationOnBoth) {
  const int32_t comm = Open1(), other = gpu_->CreateStream("other", 0);
  std::byte* data = gpu_->Alloc(stream_, 64).data;
  gpu_->QueueOf(stream_).Fill(data, 0, 64);
  Finish();
  KeepBusy(other);
  gpu_->QueueOf(other).Fill(data, 1, 16);  // what the first call reads, although it names stream_
  KeepBusy(other);
  GpuCall first = CallOn(GpuCall::Kind::kAllGather, SPF_U8, data, 16);
  GpuCall second = first;
  second.stream = other, second.send = data + 32, second.recv = data + 48;
  gpu_->Launch(comm, {first, second});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  gpu_->QueueOf(other).Fill(data, 2, 16);  // after the group, although the first call names stream_
  EXPECT_EQ(FromDevice(data + 16, 16), std::vector<std::byte>(16, std::byte{1}));
  Finish(other);
  End(comm);
}

TEST_F(CudaCommsTest, GroupsOfNothingAreNothing) {
  const int32_t comm = Open1();
  gpu_->Launch(comm, {});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  GpuCall none = CallOn(GpuCall::Kind::kAllGather, SPF_F32, nullptr, 0);
  gpu_->Launch(comm, {none});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  End(comm);
}

TEST_F(CudaCommsTest, RegisteredMemoryCanBeUsed) {
  const int32_t comm = Open1();
  const std::vector<std::byte> sent = SmallNumbers(SPF_F32, 1000);
  std::byte* data = gpu_->AllocRegistrable(2 * sent.size()).data;
  const int64_t handle = gpu_->Register(comm, data, 2 * sent.size());
  gpu_->QueueOf(stream_).Upload(data, sent.data(), sent.size());
  gpu_->Launch(comm, {CallOn(GpuCall::Kind::kAllGather, SPF_F32, data, 1000)});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  EXPECT_EQ(FromDevice(data + sent.size(), sent.size()), sent);
  gpu_->Deregister(comm, handle);
  EXPECT_THROW(gpu_->Deregister(comm, handle + 1), std::logic_error);
  End(comm);
}

TEST_F(CudaCommsTest, IdsAreDifferent) { EXPECT_NE(gpu_->NewCommId(), gpu_->NewCommId()); }

TEST_F(CudaCommsTest, SeveralCommunicatorsLiveTogether) {
  const int32_t a = Open1(), b = Open1();
  std::byte* data = ToDevice(std::vector<std::byte>(64, std::byte{7}));
  gpu_->Launch(a, {CallOn(GpuCall::Kind::kAllGather, SPF_U8, data, 16)});
  ASSERT_TRUE(gpu_->AwaitComm(a, {}));
  gpu_->Launch(b, {CallOn(GpuCall::Kind::kAllReduce, SPF_U8, data + 32, 16)});
  ASSERT_TRUE(gpu_->AwaitComm(b, {}));
  End(a);
  gpu_->CheckComm(b);
  End(b);
}

TEST_F(CudaCommsTest, ACommunicatorWhoseMembersDoNotComeCanBeAborted) {
  const int32_t comm =
      gpu_->BeginComm({.id = gpu_->NewCommId(), .name = "pair", .world_ranks = {0, 1}, .me = 0});
  int asked = 0;
  EXPECT_FALSE(gpu_->AwaitComm(comm, [&] { return ++asked == 100; }));
  gpu_->AbortComms({comm});
  EXPECT_THROW(gpu_->CheckComm(comm), std::logic_error);
}

TEST_F(CudaCommsTest, AbortEndsACommunicatorInUse) {
  const int32_t comm = Open1();
  std::byte* data = ToDevice(std::vector<std::byte>(64));
  KeepBusy(stream_);
  gpu_->Launch(comm, {CallOn(GpuCall::Kind::kAllGather, SPF_U8, data, 16)});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  gpu_->AbortComms({comm});
  Finish();
}

// Both are told before either is waited for.
TEST_F(CudaCommsTest, CommunicatorsAreAbortedTogether) {
  const int32_t a = Open1(), b = Open1();
  KeepBusy(stream_);
  std::byte* data = ToDevice(std::vector<std::byte>(64));
  for (const int32_t comm : {a, b}) {
    gpu_->Launch(comm, {CallOn(GpuCall::Kind::kSend, SPF_U8, data, 16),
                        CallOn(GpuCall::Kind::kRecv, SPF_U8, data, 16)});
    ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  }
  EXPECT_NO_THROW(gpu_->AbortComms({b, a}));
  EXPECT_THROW(gpu_->CheckComm(a), std::logic_error);
  EXPECT_THROW(gpu_->CheckComm(b), std::logic_error);
  Finish();
}

TEST_F(CudaCommsTest, OpenCommunicatorsEndWithTheGpu) {
  Open1();
  Begin();
  gpu_ = nullptr;
}

TEST_F(CudaCommsTest, MistakesAreNamed) {
  EXPECT_THROW(gpu_->BeginComm({.id = "short", .name = "x", .world_ranks = {0}, .me = 0}),
               std::invalid_argument);
  try {
    gpu_->BeginComm({.id = gpu_->NewCommId(), .name = "stranger", .world_ranks = {0}, .me = 5});
    FAIL() << "rank 5 of 1 was taken";
  } catch (const GpuError& error) {
    EXPECT_NE(error.call().find("ncclCommInitRankConfig on stranger"), std::string::npos)
        << error.what();
  }
  const int32_t comm = Open1();
  std::vector<std::byte> zeros_and_ones(64);
  std::fill(zeros_and_ones.begin() + 16, zeros_and_ones.begin() + 32, std::byte{1});
  std::byte* data = ToDevice(zeros_and_ones);
  EXPECT_THROW(gpu_->Launch(comm, {CallOn(GpuCall::Kind::kAllGather, 99, data, 1)}),
               std::invalid_argument);
  // The group that failed is over: the communicator goes on.
  gpu_->Launch(comm, {CallOn(GpuCall::Kind::kSend, SPF_U8, data, 16),
                      CallOn(GpuCall::Kind::kRecv, SPF_U8, data, 16)});
  ASSERT_TRUE(gpu_->AwaitComm(comm, {}));
  EXPECT_EQ(FromDevice(data, 64), std::vector<std::byte>(64));
  End(comm);
}

}  // namespace
}  // namespace shardproof
