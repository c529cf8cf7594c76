// digest_test: is the digest that a device works out that of trace/digest.h?
#include "conformance/trace/cuda/digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/trace/digest.h"

namespace shardproof {
namespace {

constexpr int32_t kDtypes[] = {SPF_U8, SPF_I32, SPF_I64, SPF_BF16, SPF_F16, SPF_F32, SPF_F64};

size_t SizeOf(int32_t dtype) {
  if (dtype == SPF_U8) return 1;
  if (dtype == SPF_BF16 || dtype == SPF_F16) return 2;
  return dtype == SPF_I32 || dtype == SPF_F32 ? 4 : 8;
}

// Any bits, NaN and infinities among them, with elements of no bits and of the highest bit alone
// (-0 of real dtypes).
std::vector<std::byte> RandomElements(int32_t dtype, int64_t count, std::mt19937_64& random) {
  const size_t size = SizeOf(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size + 1);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const uint64_t word = random(), kind = random() % 8;
    if (kind == 0) continue;
    if (kind == 1) {
      bytes[i * size + size - 1] = std::byte{0x80};
    } else {
      std::memcpy(bytes.data() + i * size, &word, size);
    }
  }
  return bytes;
}

TEST(DigestOnDevice, IsThatOfTheHostForAllTypesAndSizes) {
  std::mt19937_64 random(3);
  for (const int64_t count :
       {0, 1, 4095, 4096, 4097, 70000, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 600001}) {
    for (const int32_t dtype : kDtypes) {
      const std::vector<std::byte> data = RandomElements(dtype, count, random);
      const auto first = static_cast<int64_t>(random() >> 20);
      uint64_t sum = 5;
      LateQueue queue;
      DigestOnDevice(queue, data.data(), dtype, first, count, &sum);
      EXPECT_EQ(sum, 5u) << "before the queue comes to it";
      queue.Flush();
      EXPECT_EQ(sum, 5 + DigestValues(data.data(), dtype, first, count))
          << count << " of dtype " << dtype;
    }
  }
}

TEST(DigestOnDevice, SumsOfShardsAddUp) {
  const std::vector<float> whole = {1.5f, -2, -0.0f, 7, std::numeric_limits<float>::quiet_NaN(), 3};
  const auto* data = reinterpret_cast<const std::byte*>(whole.data());
  uint64_t sum = 0;
  LateQueue queue;
  DigestOnDevice(queue, data, SPF_F32, 0, 2, &sum);
  DigestOnDevice(queue, data + 2 * sizeof(float), SPF_F32, 2, 4, &sum);
  queue.Flush();
  EXPECT_EQ(sum, DigestValues(data, SPF_F32, 0, 6));
}

TEST(DigestOnDevice, AnUnknownTypeIsRefused) {
  LateQueue queue;
  uint64_t sum = 0;
  EXPECT_THROW(DigestOnDevice(queue, nullptr, 0, 0, 1, &sum), std::invalid_argument);
  EXPECT_THROW(DigestOnDevice(queue, nullptr, 99, 0, 1, &sum), std::invalid_argument);
}

}  // namespace
}  // namespace shardproof
