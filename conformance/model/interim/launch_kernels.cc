#include "conformance/model/interim/launch_kernels.h"

#include <cmath>
#include <cstring>

#include "conformance/abi/shardproof.h"
#include "conformance/model/model.h"

namespace shardproof {

namespace {

double Get(const SpanData& s, uint64_t i) {
  switch (s.dtype) {
    case SPF_F32: return reinterpret_cast<const float*>(s.data)[i];
    case SPF_F64: return reinterpret_cast<const double*>(s.data)[i];
    default: return FromBf16(reinterpret_cast<const uint16_t*>(s.data)[i]);
  }
}
void Set(const SpanData& s, uint64_t i, double x) {
  switch (s.dtype) {
    case SPF_F32: reinterpret_cast<float*>(s.data)[i] = static_cast<float>(x); return;
    case SPF_F64: reinterpret_cast<double*>(s.data)[i] = x; return;
    default: reinterpret_cast<uint16_t*>(s.data)[i] = ToBf16(static_cast<float>(x));
  }
}
bool Floating(int32_t dtype) { return dtype == SPF_F32 || dtype == SPF_F64 || dtype == SPF_BF16; }

// y = (a*s)*x + b*y in T, one rounding per operation; then once to y's dtype.
template <class T>
void Axpby(const SpanData& x, const SpanData& y, T a, T b) {
  for (uint64_t i = 0; i < x.count; ++i) {
    T value = a * static_cast<T>(Get(x, i));
    if (b != T{0}) {
      const T old = b * static_cast<T>(Get(y, i));
      value = value + old;
    }
    Set(y, i, static_cast<double>(value));
  }
}

struct Shape {
  size_t least_spans, most_spans, scalars;
};
bool ShapeOf(int32_t kernel, Shape* shape) {
  switch (kernel) {
    case SPF_K_FILL: *shape = {1, 1, 1}; return true;
    case SPF_K_AXPBY: *shape = {2, 3, 2}; return true;
    case SPF_K_SUM_SQUARES:
    case SPF_K_COUNT_NONFINITE:
    case SPF_K_COUNT_ZERO: *shape = {2, 2, 0}; return true;
    case SPF_K_NORM_SCALE: *shape = {2, 2, 3}; return true;
    case SPF_K_ADAMW: *shape = {4, 4, 6}; return true;
    case SPF_K_GEMM: *shape = {3, 3, 7}; return true;
    default: return false;
  }
}

void Adamw(const std::vector<SpanData>& s, const std::vector<double>& k) {
  auto* p = reinterpret_cast<float*>(s[0].data);
  auto* m = reinterpret_cast<float*>(s[1].data);
  auto* v = reinterpret_cast<float*>(s[2].data);
  const auto* g = reinterpret_cast<const float*>(s[3].data);
  const auto lr = static_cast<float>(k[0]), b1 = static_cast<float>(k[1]), b2 = static_cast<float>(k[2]);
  const auto eps = static_cast<float>(k[3]), wd = static_cast<float>(k[4]);
  float p1 = 1, p2 = 1;
  for (int64_t t = 0; t < static_cast<int64_t>(k[5]); ++t) {
    p1 = p1 * b1;
    p2 = p2 * b2;
  }
  const float c1 = 1 - p1, c2 = 1 - p2;
  for (uint64_t i = 0; i < s[0].count; ++i) {
    m[i] = (b1 * m[i]) + (1 - b1) * g[i];
    v[i] = (b2 * v[i]) + (1 - b2) * (g[i] * g[i]);
    const float u = (m[i] / c1) / (std::sqrt(v[i] / c2) + eps);
    p[i] = p[i] - (lr * wd) * p[i];
    p[i] = p[i] - lr * u;
  }
}

void Gemm(const std::vector<SpanData>& s, const std::vector<double>& k) {
  const auto m = static_cast<uint64_t>(k[0]), n = static_cast<uint64_t>(k[1]), inner = static_cast<uint64_t>(k[2]);
  const bool ta = k[3] != 0, tb = k[4] != 0;
  const auto alpha = static_cast<float>(k[5]), beta = static_cast<float>(k[6]);
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (uint64_t l = 0; l < inner; ++l) {
        sum += static_cast<float>(Get(s[0], ta ? l * m + i : i * inner + l)) *
               static_cast<float>(Get(s[1], tb ? j * inner + l : l * n + j));
      }
      float value = alpha * sum;
      if (beta != 0.0f) value = value + beta * static_cast<float>(Get(s[2], i * n + j));
      Set(s[2], i * n + j, value);
    }
  }
}

}  // namespace

std::string ValidateLaunch(int32_t kernel, const std::vector<SpanData>& spans, const std::vector<double>& scalars) {
  Shape shape{};
  if (!ShapeOf(kernel, &shape)) return "not a named kernel";
  if (spans.size() < shape.least_spans || spans.size() > shape.most_spans) {
    return std::to_string(spans.size()) + " spans, it takes " + std::to_string(shape.least_spans);
  }
  if (scalars.size() != shape.scalars) {
    return std::to_string(scalars.size()) + " scalars, it takes " + std::to_string(shape.scalars);
  }
  for (const SpanData& s : spans) {
    if (kernel != SPF_K_FILL && !Floating(s.dtype)) return "spans must be f32, f64 or bf16";
  }
  const auto scalar_out = [&](size_t at) { return spans[at].dtype == SPF_F64 && spans[at].count == 1; };
  switch (kernel) {
    case SPF_K_AXPBY:
      if (spans[0].count != spans[1].count) return "x and y have different counts";
      if (spans.size() == 3 && !scalar_out(2)) return "s is one f64";
      if (scalars[1] != 0 && spans[1].access != SPF_ADD) return "y is read when b is not 0: access SPF_ADD";
      break;
    case SPF_K_SUM_SQUARES:
    case SPF_K_COUNT_NONFINITE:
    case SPF_K_COUNT_ZERO:
      if (!scalar_out(1) || spans[1].access != SPF_ADD) return "out is one f64 with access SPF_ADD";
      break;
    case SPF_K_NORM_SCALE:
      if (!scalar_out(0) || !scalar_out(1)) return "ss and out are one f64 each";
      break;
    case SPF_K_ADAMW:
      for (const SpanData& s : spans) {
        if (s.dtype != SPF_F32 || s.count != spans[0].count) return "p, m, v, g are f32 of equal count";
      }
      if (scalars[5] < 1) return "t is 1 in the first step";
      break;
    default: break;
  }
  return "";
}

void RunLaunch(int32_t kernel, const std::vector<SpanData>& s, const std::vector<double>& k) {
  const auto each = [&](auto&& add) {
    double sum = Get(s[1], 0);
    for (uint64_t i = 0; i < s[0].count; ++i) sum += add(Get(s[0], i));
    Set(s[1], 0, sum);
  };
  switch (kernel) {
    case SPF_K_FILL:
      if (Floating(s[0].dtype)) {
        for (uint64_t i = 0; i < s[0].count; ++i) Set(s[0], i, k[0]);
      } else {
        for (uint64_t i = 0; i < s[0].count; ++i) {
          if (s[0].dtype == SPF_I32) reinterpret_cast<int32_t*>(s[0].data)[i] = static_cast<int32_t>(k[0]);
          if (s[0].dtype == SPF_I64) reinterpret_cast<int64_t*>(s[0].data)[i] = static_cast<int64_t>(k[0]);
          if (s[0].dtype == SPF_U8) s[0].data[i] = static_cast<std::byte>(k[0]);
        }
      }
      return;
    case SPF_K_AXPBY:
      if (s[0].dtype == SPF_F64 || s[1].dtype == SPF_F64) {
        const double a = s.size() == 3 ? k[0] * Get(s[2], 0) : k[0];
        Axpby<double>(s[0], s[1], a, k[1]);
      } else {
        auto a = static_cast<float>(k[0]);
        if (s.size() == 3) a = a * static_cast<float>(Get(s[2], 0));
        Axpby<float>(s[0], s[1], a, static_cast<float>(k[1]));
      }
      return;
    case SPF_K_SUM_SQUARES: each([](double x) { return x * x; }); return;
    case SPF_K_COUNT_NONFINITE: each([](double x) { return std::isfinite(x) ? 0.0 : 1.0; }); return;
    case SPF_K_COUNT_ZERO: each([](double x) { return x == 0 ? 1.0 : 0.0; }); return;
    case SPF_K_NORM_SCALE: {
      const double scale = k[0] / (std::sqrt(Get(s[0], 0)) + k[1]);
      Set(s[1], 0, scale < k[2] ? scale : k[2]);
      return;
    }
    case SPF_K_ADAMW: Adamw(s, k); return;
    case SPF_K_GEMM: Gemm(s, k); return;
    default: return;
  }
}

}  // namespace shardproof
