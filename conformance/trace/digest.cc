#include "conformance/trace/digest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "conformance/abi/shardproof.h"

namespace shardproof {
namespace {

// Element i of data as a Bits (memcpy: data need not be aligned).
template <class Bits>
Bits Load(const void* data, int64_t i) {
  Bits bits;
  std::memcpy(&bits, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(Bits)),
              sizeof bits);
  return bits;
}

// minus_zero is the bit pattern that counts as zero; 0 for integers.
template <class Bits>
uint64_t Sum(const void* data, int64_t first_index, int64_t count, Bits minus_zero) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Bits bits = Load<Bits>(data, i);
    sum += DigestElement(first_index + i, bits == minus_zero ? 0 : bits);
  }
  return sum;
}

[[noreturn]] void ThrowUnknown(int32_t dtype) {
  throw std::invalid_argument("digest: unknown dtype " + std::to_string(dtype));
}

double WidenF16(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude = 0;
  if (exponent == 0x1F) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double WidenF32(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

uint64_t DigestValues(const void* data, int32_t dtype, int64_t first_index, int64_t count) {
  switch (dtype) {
    case SPF_U8:
      return Sum<uint8_t>(data, first_index, count, 0);
    case SPF_I32:
      return Sum<uint32_t>(data, first_index, count, 0);
    case SPF_I64:
      return Sum<uint64_t>(data, first_index, count, 0);
    case SPF_BF16:
    case SPF_F16:
      return Sum<uint16_t>(data, first_index, count, 0x8000);
    case SPF_F32:
      return Sum<uint32_t>(data, first_index, count, 0x80000000u);
    case SPF_F64:
      return Sum<uint64_t>(data, first_index, count, uint64_t{1} << 63);
    default:
      ThrowUnknown(dtype);
  }
}

double ValueAt(const void* data, int32_t dtype, int64_t i) {
  switch (dtype) {
    case SPF_U8:
      return Load<uint8_t>(data, i);
    case SPF_I32:
      return Load<int32_t>(data, i);
    case SPF_I64:
      return static_cast<double>(Load<int64_t>(data, i));
    case SPF_BF16:
      return WidenF32(static_cast<uint32_t>(Load<uint16_t>(data, i)) << 16);
    case SPF_F16:
      return WidenF16(Load<uint16_t>(data, i));
    case SPF_F32:
      return WidenF32(Load<uint32_t>(data, i));
    case SPF_F64:
      return Load<double>(data, i);
    default:
      ThrowUnknown(dtype);
  }
}

}  // namespace shardproof
