// launch_test: do the named kernels give the same bits on a device as on the CPU?
#include "conformance/model/cuda/launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/quant.h"

namespace shardproof {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int32_t kReals[] = {SPF_F32, SPF_BF16, SPF_F64};
constexpr uint64_t kCounts[] = {0, 1, 4095, 4096, 4097, 70000};

size_t SizeOf(int32_t dtype) {
  if (dtype == SPF_U8) return 1;
  if (dtype == SPF_BF16) return 2;
  return dtype == SPF_F32 || dtype == SPF_I32 ? 4 : 8;
}

template <class T>
void Put(Bytes& bytes, size_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

bool IsReal(int32_t dtype) { return dtype == SPF_F32 || dtype == SPF_BF16 || dtype == SPF_F64; }

// Numbers about 1, numbers of any size, zeros of both signs, infinities, NaN of any payload.
Bytes RandomValues(int32_t dtype, uint64_t count, std::mt19937_64& random) {
  static constexpr double kSpecial[] = {0.0,
                                        -0.0,
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        std::numeric_limits<double>::quiet_NaN(),
                                        1e-44,
                                        3e38,
                                        1.0};
  Bytes bytes(count * SizeOf(dtype) + 1);  // never empty
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = random(), kind = random() % 16;
    double value = std::ldexp(static_cast<double>(static_cast<int64_t>(word)), -63);
    if (kind == 0) value = kSpecial[word % 8];
    if (kind == 1 || !IsReal(dtype)) {
      std::memcpy(bytes.data() + i * SizeOf(dtype), &word, SizeOf(dtype));
    } else if (dtype == SPF_F64) {
      Put(bytes, i, value);
    } else if (dtype == SPF_F32) {
      Put(bytes, i, static_cast<float>(value));
    } else {
      Put(bytes, i, ToBf16(static_cast<float>(value)));
    }
  }
  return bytes;
}

struct Operand {
  int32_t dtype;
  uint64_t count;
  int32_t access;
  int same_as = -1;  // index of an operand whose range this is
};

class Machine {
 public:
  Machine(const std::vector<Operand>& operands, std::mt19937_64& random) : operands_(operands) {
    for (const Operand& o : operands_) memory_.push_back(RandomValues(o.dtype, o.count, random));
  }
  std::vector<SpanData> Spans() {
    std::vector<SpanData> spans;
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& o = operands_[i];
      Bytes& bytes = memory_[o.same_as < 0 ? i : static_cast<size_t>(o.same_as)];
      spans.push_back({bytes.data(), o.count, o.dtype, o.access});
    }
    return spans;
  }
  bool operator==(const Machine& other) const { return memory_ == other.memory_; }

 private:
  std::vector<Operand> operands_;
  std::vector<Bytes> memory_;
};

class LaunchOnDevice : public testing::Test {
 protected:
  // Runs the kernel on both machines and compares all memory.
  void Check(int32_t kernel, const std::vector<Operand>& operands,
             const std::vector<double>& scalars) {
    Machine host(operands, random_), device = host;
    const Machine before = host;
    ASSERT_EQ(ValidateLaunch(kernel, host.Spans(), scalars), "");
    LateQueue queue;
    RunLaunchOnDevice(queue, kernel, device.Spans(), scalars);
    EXPECT_TRUE(device == before) << "work was done before the queue came to it";
    queue.Flush();
    RunLaunch(kernel, host.Spans(), scalars);
    std::string text = "kernel " + std::to_string(kernel);
    for (const Operand& o : operands)
      text += ", " + std::to_string(o.count) + " of dtype " + std::to_string(o.dtype);
    EXPECT_TRUE(device == host) << text;
  }
  double Scalar() { return std::ldexp(static_cast<double>(static_cast<int64_t>(random_())), -62); }

  std::mt19937_64 random_{7};
};

TEST_F(LaunchOnDevice, Fill) {
  for (const uint64_t count : kCounts) {
    for (const int32_t dtype : kReals) {
      for (const double value : {1.5, -0.0, 0.1, 1e300, double{NAN}}) {
        Check(SPF_K_FILL, {{dtype, count, SPF_WRITE}}, {value});
      }
    }
    Check(SPF_K_FILL, {{SPF_U8, count, SPF_WRITE}}, {255});
    Check(SPF_K_FILL, {{SPF_I32, count, SPF_WRITE}}, {-2147483648.0});
    Check(SPF_K_FILL, {{SPF_I64, count, SPF_WRITE}}, {9007199254740991.0});
  }
}

TEST_F(LaunchOnDevice, Axpby) {
  for (const uint64_t count : kCounts) {
    for (const int32_t x : kReals) {
      for (const int32_t y : kReals) {
        const Operand read{x, count, SPF_READ}, write{y, count, SPF_WRITE}, add{y, count, SPF_ADD};
        const Operand scalar{SPF_F64, 1, SPF_READ};
        Check(SPF_K_AXPBY, {read, write}, {1, 0});
        Check(SPF_K_AXPBY, {read, add}, {Scalar(), Scalar()});
        Check(SPF_K_AXPBY, {read, write, scalar}, {Scalar(), 0});
        Check(SPF_K_AXPBY, {read, add, scalar}, {Scalar(), Scalar()});
      }
    }
  }
}

TEST_F(LaunchOnDevice, Sums) {
  for (const int32_t kernel : {SPF_K_SUM_SQUARES, SPF_K_COUNT_NONFINITE, SPF_K_COUNT_ZERO}) {
    for (const uint64_t count : kCounts) {
      for (const int32_t x : kReals)
        Check(kernel, {{x, count, SPF_READ}, {SPF_F64, 1, SPF_ADD}}, {});
    }
  }
}

// Without NaN, which would hide every order.
TEST_F(LaunchOnDevice, SumsOfNumbersThatRound) {
  for (const uint64_t count :
       {0u, 1u, 4095u, 4096u, 4097u, 70000u, 70001u, 70002u, 70003u, 70004u}) {
    std::vector<double> x(count + 1);
    for (double& value : x) value = Scalar();
    std::vector<double> host{0.3}, device{0.3};
    const SpanData from{reinterpret_cast<std::byte*>(x.data()), count, SPF_F64, SPF_READ};
    RunLaunch(SPF_K_SUM_SQUARES,
              {from, {reinterpret_cast<std::byte*>(host.data()), 1, SPF_F64, SPF_ADD}}, {});
    LateQueue queue;
    RunLaunchOnDevice(queue, SPF_K_SUM_SQUARES,
                      {from, {reinterpret_cast<std::byte*>(device.data()), 1, SPF_F64, SPF_ADD}},
                      {});
    queue.Flush();
    EXPECT_EQ(host[0], device[0]) << count;
  }
}

TEST_F(LaunchOnDevice, NormScale) {
  for (int trial = 0; trial < 200; ++trial)
    Check(SPF_K_NORM_SCALE, {{SPF_F64, 1, SPF_READ}, {SPF_F64, 1, SPF_WRITE}}, {Scalar(), 1e-6, 1});
}

TEST_F(LaunchOnDevice, AdamW) {
  for (const uint64_t count : kCounts) {
    const Operand state{SPF_F32, count, SPF_ADD}, grad{SPF_F32, count, SPF_READ};
    for (const double t : {1.0, 2.0, 1000.0})
      Check(SPF_K_ADAMW, {state, state, state, grad}, {0.1, 0.9, 0.999, 1e-3, 0.01, t});
  }
}

TEST_F(LaunchOnDevice, GemmOfAllTypesAndShapes) {
  for (const int32_t a : kReals) {
    for (const int32_t b : kReals) {
      for (const int32_t c : kReals) {
        for (const double k : {1.0, 33.0}) {
          const double m = 5, n = 7;
          const Operand left{a, static_cast<uint64_t>(m * k), SPF_READ};
          const Operand right{b, static_cast<uint64_t>(k * n), SPF_READ};
          const Operand write{c, 35, SPF_WRITE}, add{c, 35, SPF_ADD};
          for (const double t : {0.0, 1.0}) {
            Check(SPF_K_GEMM, {left, right, write}, {m, n, k, t, 1 - t, Scalar(), 0});
            Check(SPF_K_GEMM, {left, right, add}, {m, n, k, t, t, Scalar(), Scalar()});
          }
        }
      }
    }
  }
}

TEST_F(LaunchOnDevice, TheSameRangeTwice) {
  for (const int32_t dtype : kReals) {
    const Operand x{dtype, 4097, SPF_READ};
    Check(SPF_K_AXPBY, {x, {dtype, 4097, SPF_ADD, 0}}, {0.3, 0.7});
    Check(SPF_K_AXPBY, {x, {dtype, 4097, SPF_WRITE, 0}}, {0.3, 0});
  }
  const Operand state{SPF_F32, 4097, SPF_ADD}, same{SPF_F32, 4097, SPF_ADD, 0};
  Check(SPF_K_ADAMW, {state, same, same, {SPF_F32, 4097, SPF_READ, 0}},
        {0.1, 0.9, 0.999, 1e-3, 0.01, 3});
  Check(SPF_K_SUM_SQUARES, {{SPF_F64, 1, SPF_READ}, {SPF_F64, 1, SPF_ADD, 0}}, {});
  Check(SPF_K_NORM_SCALE, {{SPF_F64, 1, SPF_READ}, {SPF_F64, 1, SPF_WRITE, 0}}, {1, 1e-6, 1});
}

// The scalar is read before anything is written, whichever index comes first.
TEST_F(LaunchOnDevice, AScalarInTheBytesThatAreWritten) {
  const double s = 1.0 / 3;
  std::vector<float> x{1, 2};
  double y = s;
  LateQueue queue;
  const auto bytes = [](auto& value) { return reinterpret_cast<std::byte*>(&value); };
  const SpanData from{bytes(x[0]), 2, SPF_F32, SPF_READ}, to{bytes(y), 2, SPF_F32, SPF_WRITE};
  RunLaunchOnDevice(queue, SPF_K_AXPBY, {from, to, {bytes(y), 1, SPF_F64, SPF_READ}}, {1, 0});
  queue.Flush();
  float out[2];
  std::memcpy(out, &y, sizeof out);
  EXPECT_EQ(out[0], static_cast<float>(s));
  EXPECT_EQ(out[1], static_cast<float>(s) * 2);
}

TEST_F(LaunchOnDevice, WhatIsNoNamedKernelIsRefused) {
  LateQueue queue;
  EXPECT_THROW(RunLaunchOnDevice(queue, SPF_K_DISCARD, {}, {}), std::invalid_argument);
  EXPECT_THROW(RunLaunchOnDevice(queue, 99, {}, {}), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
