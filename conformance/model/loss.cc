#include "conformance/model/loss.h"

#include <cmath>
#include <limits>

#include "conformance/model/grids.h"

namespace shardproof {
namespace {

struct Row {
  float top = 0, sum = 0;
};

// numerators = exp(logits - max) on a grid, and their sum.
Row Numerators(const Numerics& n, int64_t vocab, const float* logits, float* numerators) {
  Row row;
  row.top = logits[0];
  for (int64_t v = 1; v < vocab; ++v) row.top = logits[v] > row.top ? logits[v] : row.top;
  for (int64_t v = 0; v < vocab; ++v) numerators[v] = Exp(logits[v] - row.top);
  n.Round(grids::kNumerator, numerators, vocab);
  for (int64_t v = 0; v < vocab; ++v) row.sum = row.sum + numerators[v];
  if (n.checks()) n.probe->CheckTotal("loss softmax", std::ldexp(row.sum, -grids::kNumerator.e));
  return row;
}

}  // namespace

float LossForward(const Numerics& n, int64_t tokens, int64_t vocab, const float* logits,
                  const int32_t* labels) {
  std::vector<float> numerators(static_cast<size_t>(vocab)), losses(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const float* row = logits + t * vocab;
    const Row r = Numerators(n, vocab, row, numerators.data());
    const bool known = labels[t] >= 0 && labels[t] < vocab;
    losses[static_cast<size_t>(t)] =
        known ? (Log(r.sum) + r.top) - row[labels[t]] : std::numeric_limits<float>::quiet_NaN();
  }
  n.Round(grids::kTokenLoss, losses.data(), tokens);
  float sum = 0;
  for (float loss : losses) sum = sum + loss;
  if (n.checks()) n.probe->CheckTotal("loss", std::ldexp(std::fabs(sum), -grids::kTokenLoss.e));
  return sum;
}

void LossDgrad(const Numerics& n, int64_t tokens, int64_t vocab, const float* logits,
               const int32_t* labels, float* dlogits) {
  const float scale = PowerOfTwo(n.scale_e);
  for (int64_t t = 0; t < tokens; ++t) {
    float* out = dlogits + t * vocab;
    const Row r = Numerators(n, vocab, logits + t * vocab, out);
    for (int64_t v = 0; v < vocab; ++v) out[v] = out[v] / r.sum;
    n.Round(grids::kProbability, out, vocab);
    const bool known = labels[t] >= 0 && labels[t] < vocab;
    out[known ? labels[t] : 0] -= known ? 1.0f : std::numeric_limits<float>::quiet_NaN();
    for (int64_t v = 0; v < vocab; ++v) out[v] = out[v] * scale;
  }
  n.RoundGrad(grids::kDLogits, dlogits, tokens * vocab);
}

}  // namespace shardproof
