#include "conformance/model/launch_kernels.h"

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/model/model.h"

namespace shardproof {
namespace {

template <typename T>
T Load(const std::byte* data, uint64_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
void Save(std::byte* data, uint64_t i, T value) {
  std::memcpy(data + i * sizeof(T), &value, sizeof(T));
}

double ValueOf(const SpanData& span, uint64_t i) {
  switch (span.dtype) {
    case SPF_F32:
      return static_cast<double>(Load<float>(span.data, i));
    case SPF_BF16:
      return static_cast<double>(FromBf16(Load<uint16_t>(span.data, i)));
    default:
      return Load<double>(span.data, i);
  }
}

// From F64 straight to bf16 in one rounding: fp32 with the lost bits kept visible in the last one
// ("round to odd").
uint16_t Bf16Of(double value) {
  auto narrow = static_cast<float>(value);
  const auto back = static_cast<double>(narrow);
  if (back != value && value == value && !std::isinf(narrow)) {
    if (std::fabs(back) > std::fabs(value)) narrow = std::nextafterf(narrow, 0.0f);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    bits |= 1u;
    std::memcpy(&narrow, &bits, sizeof bits);
  }
  return ToBf16(narrow);
}

void Store(const SpanData& span, uint64_t i, double value) {
  switch (span.dtype) {
    case SPF_U8:
      return Save(span.data, i, static_cast<uint8_t>(value));
    case SPF_I32:
      return Save(span.data, i, static_cast<int32_t>(value));
    case SPF_I64:
      return Save(span.data, i, static_cast<int64_t>(value));
    case SPF_F32:
      return Save(span.data, i, static_cast<float>(value));
    case SPF_BF16:
      return Save(span.data, i, Bf16Of(value));
    default:
      return Save(span.data, i, value);
  }
}

// The dtype in which elementary operations round.
int32_t Wider(int32_t a, int32_t b) {
  if (a == SPF_F64 || b == SPF_F64) return SPF_F64;
  return a == SPF_F32 || b == SPF_F32 ? SPF_F32 : SPF_BF16;
}

// One rounding to dtype of a result that is exact, or rounded so finely in F64 that rounding twice
// changes nothing: sums and products of two numbers of at most 24 bits.
double RoundTo(int32_t dtype, double value) {
  if (dtype == SPF_F64) return value;
  if (dtype == SPF_F32) return static_cast<double>(static_cast<float>(value));
  return static_cast<double>(FromBf16(Bf16Of(value)));
}

void RunFill(const SpanData& y, double value) {
  for (uint64_t i = 0; i < y.count; ++i) Store(y, i, value);
}

void RunAxpby(const std::vector<SpanData>& spans, double a, double b) {
  const SpanData &x = spans[0], &y = spans[1];
  const int32_t wide = Wider(x.dtype, y.dtype);
  a = RoundTo(wide, a);
  if (spans.size() == 3) a = RoundTo(wide, a * RoundTo(wide, ValueOf(spans[2], 0)));
  b = RoundTo(wide, b);
  for (uint64_t i = 0; i < x.count; ++i) {
    double value = RoundTo(wide, a * ValueOf(x, i));
    if (y.access != SPF_WRITE) value = RoundTo(wide, value + RoundTo(wide, b * ValueOf(y, i)));
    Store(y, i, value);
  }
}

template <typename Term>
void Accumulate(const SpanData& x, const SpanData& out, Term term) {
  auto sum = Load<double>(out.data, 0);
  for (uint64_t i = 0; i < x.count; ++i) sum = sum + term(ValueOf(x, i));
  Save(out.data, 0, sum);
}

void RunNormScale(const SpanData& ss, const SpanData& out, double num, double eps, double cap) {
  const double scale = num / (std::sqrt(Load<double>(ss.data, 0)) + eps);
  Save(out.data, 0, cap < scale ? cap : scale);  // NaN stays NaN
}

float RepeatedProduct(float base, int64_t times) {
  float product = 1.0f;
  for (int64_t i = 0; i < times; ++i) product = product * base;
  return product;
}

void RunAdamW(const std::vector<SpanData>& spans, const std::vector<double>& scalars) {
  const auto lr = static_cast<float>(scalars[0]), b1 = static_cast<float>(scalars[1]),
             b2 = static_cast<float>(scalars[2]), eps = static_cast<float>(scalars[3]),
             wd = static_cast<float>(scalars[4]);
  const auto t = static_cast<int64_t>(scalars[5]);
  const float c1 = 1.0f - RepeatedProduct(b1, t), c2 = 1.0f - RepeatedProduct(b2, t);
  const float keep1 = 1.0f - b1, keep2 = 1.0f - b2, decay = lr * wd;
  for (uint64_t i = 0; i < spans[0].count; ++i) {
    auto p = Load<float>(spans[0].data, i), m = Load<float>(spans[1].data, i),
         v = Load<float>(spans[2].data, i);
    const auto g = Load<float>(spans[3].data, i);
    m = b1 * m + keep1 * g;
    v = b2 * v + keep2 * (g * g);
    const float u = (m / c1) / (std::sqrt(v / c2) + eps);
    p = p - decay * p;
    p = p - lr * u;
    Save(spans[0].data, i, p);
    Save(spans[1].data, i, m);
    Save(spans[2].data, i, v);
  }
}

// Sums run over k in order, in the wider dtype of the operands, in fp32 at least.
void RunGemm(const std::vector<SpanData>& spans, const std::vector<double>& scalars) {
  const auto m = static_cast<uint64_t>(scalars[0]), n = static_cast<uint64_t>(scalars[1]),
             k = static_cast<uint64_t>(scalars[2]);
  const bool ta = scalars[3] != 0, tb = scalars[4] != 0;
  const SpanData &a = spans[0], &b = spans[1], &c = spans[2];
  const int32_t wide = Wider(Wider(Wider(a.dtype, b.dtype), c.dtype), SPF_F32);
  const double alpha = RoundTo(wide, scalars[5]), beta = RoundTo(wide, scalars[6]);
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (uint64_t l = 0; l < k; ++l) {
        const double x = ValueOf(a, ta ? l * m + i : i * k + l),
                     y = ValueOf(b, tb ? j * k + l : l * n + j);
        sum = RoundTo(wide, sum + RoundTo(wide, x * y));
      }
      double value = RoundTo(wide, alpha * sum);
      if (c.access != SPF_WRITE)
        value = RoundTo(wide, value + RoundTo(wide, beta * ValueOf(c, i * n + j)));
      Store(c, i * n + j, value);
    }
  }
}

}  // namespace

void RunLaunch(int32_t kernel, const std::vector<SpanData>& spans,
               const std::vector<double>& scalars) {
  switch (kernel) {
    case SPF_K_FILL:
      return RunFill(spans[0], scalars[0]);
    case SPF_K_AXPBY:
      return RunAxpby(spans, scalars[0], scalars[1]);
    case SPF_K_SUM_SQUARES:
      return Accumulate(spans[0], spans[1], [](double x) { return x * x; });
    case SPF_K_COUNT_NONFINITE:
      return Accumulate(spans[0], spans[1], [](double x) { return std::isfinite(x) ? 0.0 : 1.0; });
    case SPF_K_COUNT_ZERO:
      return Accumulate(spans[0], spans[1], [](double x) { return x == 0 ? 1.0 : 0.0; });
    case SPF_K_NORM_SCALE:
      return RunNormScale(spans[0], spans[1], scalars[0], scalars[1], scalars[2]);
    case SPF_K_ADAMW:
      return RunAdamW(spans, scalars);
    case SPF_K_GEMM:
      return RunGemm(spans, scalars);
    default:
      throw std::invalid_argument("kernel " + std::to_string(kernel) +
                                  " is none of the named ones");
  }
}

}  // namespace shardproof
