#include "conformance/model/interim/kernels.h"

#include <Eigen/Core>
#include <cmath>
#include <vector>

namespace shardproof {

namespace {
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<Matrix>;
using ConstView = Eigen::Map<const Matrix>;
constexpr float kEps = 0.0009765625f;   // 2^-10
constexpr float kScoreScale = 0.25f;    // a power of two
}  // namespace

void linear_forward(float* y, const float* x, const float* w, const float* bias, int64_t t, int64_t k, int64_t n) {
  View out(y, t, n);
  out.noalias() = ConstView(x, t, k) * ConstView(w, n, k).transpose();
  if (bias == nullptr) return;
  for (int64_t i = 0; i < t; ++i) {
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = y[i * n + j] + bias[j];
  }
}

void linear_dgrad(float* dx, const float* dy, const float* w, int64_t t, int64_t k, int64_t n) {
  View(dx, t, k).noalias() = ConstView(dy, t, n) * ConstView(w, n, k);
}

void linear_wgrad(float* dw, float* dbias, const float* dy, const float* x, int64_t t, int64_t k, int64_t n) {
  View(dw, n, k).noalias() = ConstView(dy, t, n).transpose() * ConstView(x, t, k);
  if (dbias == nullptr) return;
  for (int64_t j = 0; j < n; ++j) {
    float sum = 0;
    for (int64_t i = 0; i < t; ++i) sum = sum + dy[i * n + j];
    dbias[j] = sum;
  }
}

namespace {
float RootMeanSquare(const float* x, int64_t c) {
  float sum = 0;
  for (int64_t j = 0; j < c; ++j) sum = sum + x[j] * x[j];
  return std::sqrt(sum / static_cast<float>(c) + kEps);
}
}  // namespace

void rmsnorm_forward(float* y, float* normed, const float* x, const float* w, int64_t t, int64_t c, Quantiser q) {
  for (int64_t i = 0; i < t; ++i) {
    const float r = RootMeanSquare(x + i * c, c);
    for (int64_t j = 0; j < c; ++j) {
      const float n = x[i * c + j] / r;
      if (normed != nullptr) normed[i * c + j] = q(n, kActivation);
      if (y != nullptr) y[i * c + j] = q(n * w[j], kActivation);
    }
  }
}

void rmsnorm_dgrad(float* dx, const float* dy, const float* x, const float* w, int64_t t, int64_t c, Grid dot_grid,
                   Quantiser q) {
  std::vector<float> n(static_cast<size_t>(c)), g(static_cast<size_t>(c));
  for (int64_t i = 0; i < t; ++i) {
    const float r = RootMeanSquare(x + i * c, c);
    float dot = 0;
    for (int64_t j = 0; j < c; ++j) {
      const auto at = static_cast<size_t>(j);
      n[at] = q(x[i * c + j] / r, kActivation);
      g[at] = q(dy[i * c + j] * w[j], dot_grid);
      dot = dot + n[at] * g[at];
    }
    const float mean = dot / static_cast<float>(c);
    for (int64_t j = 0; j < c; ++j) {
      const auto at = static_cast<size_t>(j);
      dx[i * c + j] = (g[at] - n[at] * mean) / r;
    }
  }
}

namespace {

// Probabilities of one head, (T, T), on their grid; zero above the diagonal.
void Probabilities(Matrix& p, const float* qkv, int64_t t, int64_t c, int64_t hd, int64_t head, Quantiser q) {
  p.setZero(t, t);
  std::vector<float> row(static_cast<size_t>(t));
  for (int64_t i = 0; i < t; ++i) {
    const float* query = qkv + i * 3 * c + head * hd;
    float top = 0;
    for (int64_t j = 0; j <= i; ++j) {
      const float* key = qkv + j * 3 * c + c + head * hd;
      float s = 0;
      for (int64_t d = 0; d < hd; ++d) s = s + query[d] * key[d];
      s = s * kScoreScale;
      row[static_cast<size_t>(j)] = s;
      top = j == 0 || s > top ? s : top;
    }
    float z = 0;
    for (int64_t j = 0; j <= i; ++j) {
      float& e = row[static_cast<size_t>(j)];
      e = q(Exp(e - top), kNumerator);
      z = z + e;
    }
    for (int64_t j = 0; j <= i; ++j) p(i, j) = q(row[static_cast<size_t>(j)] / z, kProbability);
  }
}

}  // namespace

void attention_forward(float* out, const float* qkv, int64_t t, int64_t c, int64_t heads, Quantiser q) {
  const int64_t hd = c / heads;
  Matrix p;
  for (int64_t head = 0; head < heads; ++head) {
    Probabilities(p, qkv, t, c, hd, head, q);
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t d = 0; d < hd; ++d) {
        float sum = 0;
        for (int64_t j = 0; j <= i; ++j) sum = sum + p(i, j) * qkv[j * 3 * c + 2 * c + head * hd + d];
        out[i * c + head * hd + d] = q(sum, kActivation);
      }
    }
  }
}

void attention_dgrad(float* dqkv, const float* dout, const float* qkv, int64_t t, int64_t c, int64_t heads,
                     AttentionGrids grids, Quantiser q, SquareSum* dprob_seen, SquareSum* dscore_seen) {
  const int64_t hd = c / heads, row = 3 * c;
  for (int64_t i = 0; i < t * row; ++i) dqkv[i] = 0;
  Matrix p, ds(t, t);
  const auto see = [](SquareSum* seen, float x) {
    if (seen == nullptr) return;
    seen->sum += static_cast<double>(x) * static_cast<double>(x);
    ++seen->n;
  };
  for (int64_t head = 0; head < heads; ++head) {
    Probabilities(p, qkv, t, c, hd, head, q);
    const int64_t at = head * hd;
    for (int64_t i = 0; i < t; ++i) {
      const float* grad = dout + i * c + at;
      float dot = 0;
      for (int64_t j = 0; j <= i; ++j) {
        const float* value = qkv + j * row + 2 * c + at;
        float dp = 0;
        for (int64_t d = 0; d < hd; ++d) {
          dp = dp + grad[d] * value[d];
          dqkv[j * row + 2 * c + at + d] += p(i, j) * grad[d];
        }
        see(dprob_seen, dp);
        ds(i, j) = q(dp, grids.dprob);
        dot = dot + p(i, j) * ds(i, j);
      }
      for (int64_t j = 0; j <= i; ++j) {
        const float raw = p(i, j) * (ds(i, j) - dot);
        see(dscore_seen, raw);
        const float s = q(raw, grids.dscore) * kScoreScale;
        for (int64_t d = 0; d < hd; ++d) {
          dqkv[i * row + at + d] += s * qkv[j * row + c + at + d];
          dqkv[j * row + c + at + d] += s * qkv[i * row + at + d];
        }
      }
    }
  }
}

void silu_forward(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + Exp(-x[i]));
}

void silu_dgrad(float* dx, const float* dy, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float s = 1.0f / (1.0f + Exp(-x[i]));
    dx[i] = dy[i] * (s * (1.0f + x[i] * (1.0f - s)));
  }
}

namespace {
struct Softmax {
  float top = 0, z = 0;
};
Softmax SoftmaxOf(float* numerators, const float* logits, int64_t v, Quantiser q) {
  Softmax s;
  s.top = logits[0];
  for (int64_t j = 1; j < v; ++j) s.top = logits[j] > s.top ? logits[j] : s.top;
  for (int64_t j = 0; j < v; ++j) {
    numerators[j] = q(Exp(logits[j] - s.top), kNumerator);
    s.z = s.z + numerators[j];
  }
  return s;
}
}  // namespace

float cross_entropy_forward(const float* logits, const int32_t* labels, int64_t t, int64_t v, Quantiser q) {
  std::vector<float> e(static_cast<size_t>(v));
  float sum = 0;
  for (int64_t i = 0; i < t; ++i) {
    const Softmax s = SoftmaxOf(e.data(), logits + i * v, v, q);
    sum = sum + q(Log(s.z) - (logits[i * v + labels[i]] - s.top), kTokenLoss);
  }
  return sum;
}

void cross_entropy_dgrad(float* dlogits, const float* logits, const int32_t* labels, int64_t t, int64_t v, float scale,
                         Quantiser q) {
  std::vector<float> e(static_cast<size_t>(v));
  for (int64_t i = 0; i < t; ++i) {
    const Softmax s = SoftmaxOf(e.data(), logits + i * v, v, q);
    for (int64_t j = 0; j < v; ++j) {
      const float p = e[static_cast<size_t>(j)] / s.z - (labels[i] == j ? 1.0f : 0.0f);
      dlogits[i * v + j] = q(p, kLogitGrad) * scale;
    }
  }
}

}  // namespace shardproof
