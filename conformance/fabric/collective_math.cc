#include "conformance/fabric/collective_math.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace shardproof {
namespace {

template <class T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// data[i] = f(data[i], from[i]) for elements stored as T. Memory may be unaligned: memcpy compiles
// to plain moves.
template <class T, class F>
void ForEach(std::byte* data, uint64_t count, F f) {
  for (uint64_t i = 0; i < count; ++i) {
    const T value = f(Load<T>(data + i * sizeof(T)), i);
    std::memcpy(data + i * sizeof(T), &value, sizeof value);
  }
}

template <class T>
void AddPlain(std::byte* into, const std::byte* from, uint64_t count) {
  ForEach<T>(into, count, [&](T a, uint64_t i) {
    const T b = Load<T>(from + i * sizeof(T));
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
      return a + b;
    }
  });
}

}  // namespace

namespace wire {

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

float FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu, fraction = bits & 0x3FFu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal: exact in fp32
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
}

uint16_t ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto with_sign = [&](uint32_t half) { return static_cast<uint16_t>(sign | half); };
  if (magnitude > 0x7F800000u) return with_sign(0x7E00u | ((magnitude >> 13) & 0x3FFu));
  if (magnitude >= 0x477FF000u) return with_sign(0x7C00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {
    // Subnormal result: adding 0.5 leaves the value, rounded to multiples of 2^-24, in the low
    // bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return with_sign(std::bit_cast<uint32_t>(shifted) - 0x3F000000u);
  }
  return with_sign((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13);
}

}  // namespace wire

using wire::FromBf16, wire::FromF16, wire::ToBf16, wire::ToF16;

void AddInto(std::byte* into, const std::byte* from, uint64_t count, int32_t dtype) {
  const auto half = [&](uint64_t i) { return Load<uint16_t>(from + 2 * i); };
  switch (dtype) {
    case SPF_U8:
      return AddPlain<uint8_t>(into, from, count);
    case SPF_I32:
      return AddPlain<int32_t>(into, from, count);
    case SPF_I64:
      return AddPlain<int64_t>(into, from, count);
    case SPF_F32:
      return AddPlain<float>(into, from, count);
    case SPF_F64:
      return AddPlain<double>(into, from, count);
    case SPF_BF16:
      // Rounding twice (fp32, then 16 bits) is harmless for one + or *: 24 >= 2 * 11 + 2.
      return ForEach<uint16_t>(into, count, [&](uint16_t a, uint64_t i) {
        return ToBf16(FromBf16(a) + FromBf16(half(i)));
      });
    case SPF_F16:
      return ForEach<uint16_t>(into, count, [&](uint16_t a, uint64_t i) {
        return ToF16(FromF16(a) + FromF16(half(i)));
      });
    default:
      return;
  }
}

void ScaleForAverage(std::byte* data, uint64_t count, int32_t dtype, int32_t n) {
  switch (dtype) {
    case SPF_F32: {
      const float scale = 1.0f / static_cast<float>(n);
      return ForEach<float>(data, count, [&](float a, uint64_t) { return a * scale; });
    }
    case SPF_F64: {
      const double scale = 1.0 / n;
      return ForEach<double>(data, count, [&](double a, uint64_t) { return a * scale; });
    }
    case SPF_BF16: {
      const float scale = FromBf16(ToBf16(1.0f / static_cast<float>(n)));
      return ForEach<uint16_t>(data, count,
                               [&](uint16_t a, uint64_t) { return ToBf16(FromBf16(a) * scale); });
    }
    case SPF_F16: {
      const float scale = FromF16(ToF16(1.0f / static_cast<float>(n)));
      return ForEach<uint16_t>(data, count,
                               [&](uint16_t a, uint64_t) { return ToF16(FromF16(a) * scale); });
    }
    default:
      return;
  }
}

void FinishAverage(std::byte* data, uint64_t count, int32_t dtype, int32_t n) {
  switch (dtype) {
    case SPF_U8:
      return ForEach<uint8_t>(data, count,
                              [&](uint8_t a, uint64_t) { return static_cast<uint8_t>(a / n); });
    case SPF_I32:
      return ForEach<int32_t>(data, count, [&](int32_t a, uint64_t) { return a / n; });
    case SPF_I64:
      return ForEach<int64_t>(data, count, [&](int64_t a, uint64_t) { return a / n; });
    default:
      return;
  }
}

}  // namespace shardproof
