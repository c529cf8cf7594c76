#include "conformance/model/split_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

float TopOf(const SplitLossShape& s, const float* maxima, int64_t t) {
  float top = maxima[t];
  for (int64_t rank = 1; rank < s.ranks; ++rank)
    top = maxima[rank * s.tokens + t] > top ? maxima[rank * s.tokens + t] : top;
  return top;
}

void Numerators(const Numerics& n, const SplitLossShape& s, const float* logits, float top,
                float* numerators) {
  for (int64_t v = 0; v < s.columns; ++v) numerators[v] = Exp(logits[v] - top);
  n.Round(grids::kNumerator, numerators, s.columns);
}

bool Known(const SplitLossShape& s, int32_t label) { return label >= 0 && label < s.vocab; }
bool Own(const SplitLossShape& s, int32_t label) {
  return label >= s.first && label < s.first + s.columns;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

void SplitLossMax(const SplitLossShape& s, const float* logits, float* top) {
  for (int64_t t = 0; t < s.tokens; ++t) {
    const float* row = logits + t * s.columns;
    top[t] = row[0];
    for (int64_t v = 1; v < s.columns; ++v) top[t] = row[v] > top[t] ? row[v] : top[t];
  }
}

void SplitLossSums(const Numerics& n, const SplitLossShape& s, const float* logits,
                   const int32_t* labels, const float* maxima, float* sums) {
  std::vector<float> numerators(static_cast<size_t>(s.columns));
  for (int64_t t = 0; t < s.tokens; ++t) {
    const float* row = logits + t * s.columns;
    Numerators(n, s, row, TopOf(s, maxima, t), numerators.data());
    float sum = 0;
    for (const float one : numerators) sum = sum + one;
    sums[2 * t] = sum;
    sums[2 * t + 1] = !Known(s, labels[t]) ? kNan
                      : Own(s, labels[t])  ? row[labels[t] - s.first]
                                           : 0.0f;
  }
}

float SplitLossForward(const Numerics& n, const SplitLossShape& s, const float* maxima,
                       const float* sums) {
  std::vector<float> losses(static_cast<size_t>(s.tokens));
  for (int64_t t = 0; t < s.tokens; ++t)
    losses[static_cast<size_t>(t)] = (Log(sums[2 * t]) + TopOf(s, maxima, t)) - sums[2 * t + 1];
  n.Round(grids::kTokenLoss, losses.data(), s.tokens);
  float sum = 0;
  for (const float loss : losses) sum = sum + loss;
  return sum;
}

void SplitLossDgrad(const Numerics& n, const SplitLossShape& s, const float* logits,
                    const int32_t* labels, const float* maxima, const float* sums, float* dlogits) {
  const float scale = PowerOfTwo(n.scale_e);
  for (int64_t t = 0; t < s.tokens; ++t) {
    float* out = dlogits + t * s.columns;
    Numerators(n, s, logits + t * s.columns, TopOf(s, maxima, t), out);
    for (int64_t v = 0; v < s.columns; ++v) out[v] = out[v] / sums[2 * t];
    n.Round(grids::kProbability, out, s.columns);
    if (Own(s, labels[t])) out[labels[t] - s.first] -= 1.0f;
    if (!Known(s, labels[t]) && s.first == 0) out[0] = kNan;
    for (int64_t v = 0; v < s.columns; ++v) out[v] = out[v] * scale;
  }
  n.RoundGrad(grids::kDLogits, dlogits, s.tokens * s.columns);
}

}  // namespace shardproof
