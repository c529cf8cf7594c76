// launch_math.h: of which single operations do the named kernels of spf_launch consist?
//
// One source for the CPU (launch_kernels.cc) and for devices (cuda/launch.cc): functions of one
// element, or of one chunk of a sum, each made of IEEE operations in a given order. What is not a
// number is stored as one quiet NaN, because machines differ in the payload that an operation
// makes.
#pragma once
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/model/launch_kernels.h"
#include "conformance/model/quant.h"

namespace shardproof::launch_math {

constexpr int64_t Elements(const SpanData& span) { return static_cast<int64_t>(span.count); }

// Element i of memory that is aligned to T.
template <class T>
constexpr T Load(const std::byte* data, int64_t i) {
  T value{};
  std::memcpy(&value,
              __builtin_assume_aligned(data + i * static_cast<int64_t>(sizeof(T)), sizeof(T)),
              sizeof(T));
  return value;
}
template <class T>
constexpr void Save(std::byte* data, int64_t i, T value) {
  std::memcpy(__builtin_assume_aligned(data + i * static_cast<int64_t>(sizeof(T)), sizeof(T)),
              &value, sizeof(T));
}

constexpr double Canonical(double value) {
  return value == value ? value : std::bit_cast<double>(0x7FF8000000000000u);
}
constexpr float Canonical(float value) {
  return value == value ? value : std::bit_cast<float>(0x7FC00000u);
}

// From F64 straight to bf16 in one rounding: fp32 with the lost bits kept visible in the last one
// ("round to odd").
constexpr uint16_t Bf16Of(double value) {
  if (value != value) return 0x7FC0;
  const auto narrow = static_cast<float>(value);
  const auto back = static_cast<double>(narrow);
  auto bits = std::bit_cast<uint32_t>(narrow);
  if (back != value) {
    // Rounded away from zero: one step back.
    const bool away = value < 0 ? back < value : back > value;
    bits = (away ? bits - 1u : bits) | 1u;
  }
  return ToBf16(std::bit_cast<float>(bits));
}

// How real numbers lie in memory.
struct StoredF32 {
  template <class Value>
  static constexpr Value At(const std::byte* data, int64_t i) {
    return static_cast<Value>(Load<float>(data, i));
  }
};
struct StoredBf16 {
  template <class Value>
  static constexpr Value At(const std::byte* data, int64_t i) {
    return static_cast<Value>(FromBf16(Load<uint16_t>(data, i)));
  }
};
struct StoredF64 {
  template <class Value>
  static constexpr Value At(const std::byte* data, int64_t i) {
    return static_cast<Value>(Load<double>(data, i));
  }
};

template <class Value>
constexpr Value ValueOf(const SpanData& span, int64_t i) {
  if (span.dtype == SPF_F32) return StoredF32::At<Value>(span.data, i);
  if (span.dtype == SPF_BF16) return StoredBf16::At<Value>(span.data, i);
  return StoredF64::At<Value>(span.data, i);
}

// Rounds to the dtype of the span.
template <class Value>
constexpr void StoreReal(const SpanData& span, int64_t i, Value value) {
  if (span.dtype == SPF_F32) return Save(span.data, i, Canonical(static_cast<float>(value)));
  if (span.dtype == SPF_BF16) return Save(span.data, i, Bf16Of(static_cast<double>(value)));
  Save(span.data, i, Canonical(static_cast<double>(value)));
}
// Integers must be values of the dtype.
constexpr void Store(const SpanData& span, int64_t i, double value) {
  switch (span.dtype) {
    case SPF_U8:
      return Save(span.data, i, static_cast<uint8_t>(value));
    case SPF_I32:
      return Save(span.data, i, static_cast<int32_t>(value));
    case SPF_I64:
      return Save(span.data, i, static_cast<int64_t>(value));
    default:
      return StoreReal(span, i, value);
  }
}

// The dtype in which elementary operations round.
constexpr int32_t Wider(int32_t a, int32_t b) {
  if (a == SPF_F64 || b == SPF_F64) return SPF_F64;
  return a == SPF_F32 || b == SPF_F32 ? SPF_F32 : SPF_BF16;
}

// Operations that round once, to F32 or F64. Value holds the numbers of the dtype.
template <class Real>
struct Ieee {
  using Value = Real;
  static constexpr Value Round(double x) { return static_cast<Real>(x); }
  static constexpr Value Product(Value x, Value y) { return x * y; }
  static constexpr Value Sum(Value x, Value y) { return x + y; }
};
// To bf16. Products of two are exact in F64; sums are rounded so finely there that rounding twice
// changes nothing.
struct InBf16 {
  using Value = float;
  static constexpr Value Round(double x) { return FromBf16(Bf16Of(x)); }
  static constexpr Value Product(Value x, Value y) {
    return Round(static_cast<double>(x) * static_cast<double>(y));
  }
  static constexpr Value Sum(Value x, Value y) {
    return Round(static_cast<double>(x) + static_cast<double>(y));
  }
};

// AXPBY. In is Ieee or InBf16; a and b are rounded to it.
template <class In>
constexpr typename In::Value AxpbyFactor(double a, double s) {
  return In::Product(In::Round(a), In::Round(s));
}
template <class In>
constexpr void AxpbyElement(const SpanData& x, const SpanData& y, typename In::Value a,
                            typename In::Value b, int64_t i) {
  using Value = typename In::Value;
  Value value = In::Product(a, ValueOf<Value>(x, i));
  if (y.access != SPF_WRITE) value = In::Sum(value, In::Product(b, ValueOf<Value>(y, i)));
  StoreReal(y, i, value);
}

// Sums over a span, in F64: chunks of kSumChunk elements, each from 0 in order of its elements; the
// sums of chunks are added to what was there, in order of chunks.
constexpr int64_t kSumChunk = 4096;
constexpr int64_t SumChunks(const SpanData& x) { return (Elements(x) + kSumChunk - 1) / kSumChunk; }

struct SquareTerm {
  static constexpr double Of(double x) { return x * x; }
};
struct NonFiniteTerm {
  static constexpr double Of(double x) { return x - x == 0 ? 0.0 : 1.0; }
};
struct ZeroTerm {
  static constexpr double Of(double x) { return x == 0 ? 1.0 : 0.0; }
};
template <class Term>
constexpr double ChunkSum(const SpanData& x, int64_t chunk) {
  const int64_t begin = chunk * kSumChunk;
  const int64_t end = Elements(x) - begin < kSumChunk ? Elements(x) : begin + kSumChunk;
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum = sum + Term::Of(ValueOf<double>(x, i));
  return sum;
}

constexpr void NormScale(const SpanData& ss, const SpanData& out, double num, double eps,
                         double cap) {
  const double scale = num / (std::sqrt(Load<double>(ss.data, 0)) + eps);
  Save(out.data, 0, Canonical(cap < scale ? cap : scale));
}

// ADAMW with what is the same for all elements.
struct AdamW {
  float lr = 0, b1 = 0, b2 = 0, eps = 0;
  float keep1 = 0, keep2 = 0, decay = 0;  // 1 - b1, 1 - b2, lr wd
  float c1 = 0, c2 = 0;                   // 1 - b^t by repeated multiplication
};
constexpr AdamW AdamWOf(const double* scalars) {
  AdamW rule;
  rule.lr = static_cast<float>(scalars[0]);
  rule.b1 = static_cast<float>(scalars[1]);
  rule.b2 = static_cast<float>(scalars[2]);
  rule.eps = static_cast<float>(scalars[3]);
  rule.keep1 = 1.0f - rule.b1;
  rule.keep2 = 1.0f - rule.b2;
  rule.decay = rule.lr * static_cast<float>(scalars[4]);
  float power1 = 1.0f, power2 = 1.0f;
  for (auto t = static_cast<int64_t>(scalars[5]); t > 0; --t) {
    power1 = power1 * rule.b1;
    power2 = power2 * rule.b2;
  }
  rule.c1 = 1.0f - power1;
  rule.c2 = 1.0f - power2;
  return rule;
}
constexpr void AdamWElement(const AdamW& rule, std::byte* p_data, std::byte* m_data,
                            std::byte* v_data, const std::byte* g_data, int64_t i) {
  auto p = Load<float>(p_data, i), m = Load<float>(m_data, i), v = Load<float>(v_data, i);
  const auto g = Load<float>(g_data, i);
  m = rule.b1 * m + rule.keep1 * g;
  v = rule.b2 * v + rule.keep2 * (g * g);
  const float u = (m / rule.c1) / (std::sqrt(v / rule.c2) + rule.eps);
  p = p - rule.decay * p;
  p = p - rule.lr * u;
  Save(p_data, i, Canonical(p));
  Save(m_data, i, Canonical(m));
  Save(v_data, i, Canonical(v));
}

// GEMM: op(A) is (m, k), op(B) is (k, n), row-major. The sum runs over k in order, in the wider
// dtype of the operands, in fp32 at least.
struct GemmShape {
  int64_t n = 0, k = 0;
  int64_t a_row = 0, a_step = 0;  // element (i, l) of op(A) lies at i a_row + l a_step
  int64_t b_step = 0, b_col = 0;  // element (l, j) of op(B) lies at l b_step + j b_col
};
struct GemmCall {
  GemmShape shape;
  SpanData a, b, c;
  double alpha = 0, beta = 0;
};
inline GemmCall GemmCallOf(const std::vector<SpanData>& spans, const std::vector<double>& scalars) {
  const auto m = static_cast<int64_t>(scalars[0]), n = static_cast<int64_t>(scalars[1]),
             k = static_cast<int64_t>(scalars[2]);
  const bool ta = scalars[3] != 0, tb = scalars[4] != 0;
  return {{n, k, ta ? 1 : k, ta ? m : 1, tb ? 1 : n, tb ? k : 1},
          spans[0],
          spans[1],
          spans[2],
          scalars[5],
          scalars[6]};
}

// Element `at` of C, counted row by row. A and B are StoredF32, StoredBf16 or StoredF64.
template <class In, class A, class B>
constexpr void GemmElement(const GemmShape& shape, const std::byte* a, const std::byte* b,
                           const SpanData& c, typename In::Value alpha, typename In::Value beta,
                           int64_t at) {
  using Value = typename In::Value;
  const int64_t first_a = at / shape.n * shape.a_row, first_b = at % shape.n * shape.b_col;
  Value sum = 0;
  for (int64_t l = 0; l < shape.k; ++l) {
    const Value x = A::template At<Value>(a, first_a + l * shape.a_step);
    const Value y = B::template At<Value>(b, first_b + l * shape.b_step);
    sum = In::Sum(sum, In::Product(x, y));
  }
  Value value = In::Product(alpha, sum);
  if (c.access != SPF_WRITE) value = In::Sum(value, In::Product(beta, ValueOf<Value>(c, at)));
  StoreReal(c, at, value);
}

// Calls runner.Run<In, A, B>(call) for the dtypes of the call.
template <class A, class B, class Runner>
void WithWider(const GemmCall& call, const Runner& runner) {
  const bool wide = Wider(Wider(call.a.dtype, call.b.dtype), call.c.dtype) == SPF_F64;
  if (wide) return runner.template Run<Ieee<double>, A, B>(call);
  runner.template Run<Ieee<float>, A, B>(call);
}
template <class A, class Runner>
void WithB(const GemmCall& call, const Runner& runner) {
  if (call.b.dtype == SPF_F32) return WithWider<A, StoredF32>(call, runner);
  if (call.b.dtype == SPF_BF16) return WithWider<A, StoredBf16>(call, runner);
  runner.template Run<Ieee<double>, A, StoredF64>(call);
}
template <class Runner>
void WithTypes(const GemmCall& call, const Runner& runner) {
  if (call.a.dtype == SPF_F32) return WithB<StoredF32>(call, runner);
  if (call.a.dtype == SPF_BF16) return WithB<StoredBf16>(call, runner);
  if (call.b.dtype == SPF_F32) return runner.template Run<Ieee<double>, StoredF64, StoredF32>(call);
  if (call.b.dtype == SPF_BF16)
    return runner.template Run<Ieee<double>, StoredF64, StoredBf16>(call);
  runner.template Run<Ieee<double>, StoredF64, StoredF64>(call);
}

}  // namespace shardproof::launch_math
