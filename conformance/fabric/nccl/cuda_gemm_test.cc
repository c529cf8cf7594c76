// Do products of cuBLAS have the bits of plain loops, on tensor cores too, when operands lie on
// grids?
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cuda/immediate_queue.h"
#include "conformance/fabric/nccl/cuda_testing.h"

namespace shardproof {
namespace {

// k 2^-5 with |k| <= 127: 8 bits; with at most 1040 summands fp32 holds all sums.
std::vector<float> OnGrid(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> quanta(-127, 127);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(quanta(random)) / 32;
  return values;
}

class CudaGemmTest : public CudaTest, public testing::WithParamInterface<GemmMode> {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (gpu_ != nullptr) Open({.gemm = GetParam()});
  }

  // The same product on the host and on the device; C holds c before.
  void ExpectSame(Gemm g, const std::vector<float>& a, const std::vector<float>& b,
                  const std::vector<float>& c) {
    std::vector<float> wanted = c;
    Gemm host = g;
    host.a = a.data(), host.b = b.data(), host.c = wanted.data();
    MultiplyOnHost(host);
    g.a = ToDevice(a), g.b = ToDevice(b), g.c = ToDevice(c);
    gpu_->QueueOf(stream_).Multiply(g);
    const std::vector<float> found = FromDevice(g.c, c.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (std::isnan(wanted[i]) && std::isnan(found[i])) continue;
      ASSERT_EQ(found[i], wanted[i])
          << "element " << i << " of " << g.m << " x " << g.n << " x " << g.k;
    }
  }
};

TEST_P(CudaGemmTest, GivesTheBitsOfPlainLoops) {
  const int64_t shapes[][3] = {{1, 1, 1},      {1, 7, 3},      {16, 16, 16}, {33, 65, 17},
                               {64, 128, 256}, {8, 100, 1040}, {257, 1, 31}};
  uint32_t seed = 0;
  for (const auto& [m, n, k] : shapes) {
    for (int bits = 0; bits < 8; ++bits) {
      Gemm g;
      g.m = m, g.n = n, g.k = k;
      g.a_transposed = (bits & 1) != 0, g.b_transposed = (bits & 2) != 0, g.add = (bits & 4) != 0;
      SCOPED_TRACE("transposed and added to: " + std::to_string(bits));
      seed += 3;
      ExpectSame(g, OnGrid(m * k, seed), OnGrid(k * n, seed + 1), OnGrid(m * n, seed + 2));
    }
  }
}

TEST_P(CudaGemmTest, KeepsToRowStridesAndSteps) {
  for (int bits = 0; bits < 8; ++bits) {
    SCOPED_TRACE("transposed and added to: " + std::to_string(bits));
    Gemm g;
    g.m = 6, g.n = 10, g.k = 14, g.batch = 3;
    g.a_transposed = (bits & 1) != 0, g.b_transposed = (bits & 2) != 0, g.add = (bits & 4) != 0;
    g.a_stride = 19, g.b_stride = 21, g.c_stride = 13;
    g.a_step = 300, g.b_step = 310, g.c_step = 100;
    ExpectSame(g, OnGrid(900, 1), OnGrid(930, 2), OnGrid(300, 3));
  }
}

// As attention's heads lie: a product's columns between those of the others.
TEST_P(CudaGemmTest, ProductsOfABatchMayLieSideBySide) {
  for (bool transposed : {false, true}) {
    Gemm g;
    g.m = 5, g.n = 4, g.k = 5, g.batch = 3;
    g.a_transposed = transposed;
    g.a_step = 25;
    g.b_stride = 36, g.b_step = 4;
    g.c_stride = 12, g.c_step = 4;
    ExpectSame(g, OnGrid(75, 1), OnGrid(180, 2), OnGrid(60, 3));
    g.c_stride = 14;  // and something behind them
    ExpectSame(g, OnGrid(75, 1), OnGrid(180, 2), OnGrid(70, 3));
  }
}

TEST_P(CudaGemmTest, AnOperandMayServeAllProductsOfABatch) {
  Gemm g;
  g.m = 5, g.n = 4, g.k = 3, g.batch = 4;
  g.b_step = 12, g.c_step = 20;
  ExpectSame(g, OnGrid(15, 1), OnGrid(48, 2), OnGrid(80, 3));
  g.a_step = 15, g.b_step = 0;
  ExpectSame(g, OnGrid(60, 1), OnGrid(12, 2), OnGrid(80, 3));
}

TEST_P(CudaGemmTest, ReadsCOnlyToAddToIt) {
  constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
  Gemm g;
  g.m = g.n = g.k = 8;
  ExpectSame(g, OnGrid(64, 1), OnGrid(64, 2), std::vector<float>(64, kPoison));
  g.add = true;
  ExpectSame(g, OnGrid(64, 1), OnGrid(64, 2), std::vector<float>(64, kPoison));
}

TEST_P(CudaGemmTest, PoisonInAnOperandShows) {
  std::vector<float> a = OnGrid(64, 1);
  a[13] = std::numeric_limits<float>::quiet_NaN();
  Gemm g;
  g.m = g.n = g.k = 8;
  ExpectSame(g, a, OnGrid(64, 2), OnGrid(64, 3));
}

TEST_P(CudaGemmTest, ASumOfNothingIsZero) {
  Gemm g;
  g.m = 2, g.n = 3, g.k = 0, g.c_stride = 4;
  ExpectSame(g, {1}, {1}, OnGrid(8, 1));
  g.add = true;
  ExpectSame(g, {1}, {1}, OnGrid(8, 1));
}

TEST_P(CudaGemmTest, ProductsThatOverlapInCAreRefused) {
  Gemm g;
  g.m = 2, g.n = 3, g.k = 1, g.batch = 2, g.c_step = 5;
  EXPECT_THROW(gpu_->QueueOf(stream_).Multiply(g), std::invalid_argument);
  g.c_stride = 5, g.c_step = 3;  // side by side, but wider than a row
  EXPECT_THROW(gpu_->QueueOf(stream_).Multiply(g), std::invalid_argument);
  g.c_stride = 6, g.c_step = 2;
  EXPECT_THROW(gpu_->QueueOf(stream_).Multiply(g), std::invalid_argument);
}

// Streams do not share what cuBLAS computes in.
TEST_P(CudaGemmTest, StreamsMultiplyAtTheSameTime) {
  constexpr int64_t kSize = 128, kDepth = 256;
  constexpr int kStreams = 4;
  const std::vector<float> a = OnGrid(kSize * kDepth, 1), b = OnGrid(kDepth * kSize, 2);
  std::vector<float> wanted(kSize * kSize);
  Gemm g;
  g.m = g.n = kSize, g.k = kDepth;
  g.a = a.data(), g.b = b.data(), g.c = wanted.data();
  MultiplyOnHost(g);
  g.a = ToDevice(a), g.b = ToDevice(b);
  Finish();
  std::vector<int32_t> streams;
  std::vector<std::vector<float>> found(kStreams, std::vector<float>(wanted.size()));
  for (int s = 0; s < kStreams; ++s)
    streams.push_back(gpu_->CreateStream("stream " + std::to_string(s), 0));
  for (int round = 0; round < 3; ++round) {
    for (size_t s = 0; s < kStreams; ++s) {
      std::byte* c = gpu_->Alloc(streams[s], wanted.size() * sizeof(float)).data;
      g.c = reinterpret_cast<float*>(c);
      gpu_->QueueOf(streams[s]).Multiply(g);
      gpu_->QueueOf(streams[s]).Download(found[s].data(), c, wanted.size() * sizeof(float));
      gpu_->Free(streams[s], c);
    }
  }
  for (size_t s = 0; s < kStreams; ++s) {
    Finish(streams[s]);
    EXPECT_EQ(found[s], wanted) << "stream " << s;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CudaGemmTest,
                         testing::Values(GemmMode::kFp32, GemmMode::kTf32, GemmMode::kBf16),
                         ModeName);

}  // namespace
}  // namespace shardproof
