#include "conformance/cases/bounds.h"

namespace shardproof {
namespace {

// A parameter that is used twice sums twice as many products: the one that head and embedding
// share, a layer that runs twice, and head and embedding once more when there is a prediction of
// the token after the next one. An expert meets a token at most once, whatever the number of
// choices.
int64_t Uses(const ModelConfig& model) {
  return (model.tied || model.reused ? 2 : 1) * (model.mtp ? 2 : 1);
}

}  // namespace

bool HasNumbers(const InstanceSpec& spec) { return spec.span <= kMostRanksWithNumbers; }

int64_t TokensToSum(const InstanceSpec& spec) { return HasNumbers(spec) ? TokensPerStep(spec) : 1; }

int32_t OddDivisor(const InstanceSpec& spec) {
  int64_t divisor = GradDivisor(spec);
  while (divisor % 2 == 0) divisor /= 2;
  return static_cast<int32_t>(divisor);
}

bool NeedsNarrow(const InstanceSpec& spec) {
  return spec.grad_comm_dtype == KnobDtype::kBf16 || spec.main_grads_dtype == KnobDtype::kBf16;
}

std::string BoundProblem(const InstanceSpec& spec) {
  if (!HasNumbers(spec)) return "";
  const int64_t odd = OddDivisor(spec);
  // k * R * fl(1/R) == k for every exact k only for some odd R: 7, 13 and 15 fail, and larger ones
  // are not needed.
  if (odd != 1 && odd != 3 && odd != 5 && odd != 9 && odd != 11) {
    return "the gradient divisor " + std::to_string(GradDivisor(spec)) + " has the odd part " +
           std::to_string(odd) + "; exact results need 1, 3, 5, 9 or 11";
  }
  const int64_t sum = TokensPerStep(spec) * Uses(spec.model) * odd;
  const int64_t limit = NeedsNarrow(spec) ? 256 : ((int64_t{1} << 24) - 1) / (127 * 127);
  if (sum <= limit) return "";
  return std::to_string(TokensPerStep(spec)) +
         " tokens in a step, times uses and odd divisor: " + std::to_string(sum) + " exceeds " +
         std::to_string(limit) + (NeedsNarrow(spec) ? " (bf16 gradients)" : "") +
         "; use fewer ranks, microbatches or a shorter sequence";
}

int32_t LongestSequence(InstanceSpec spec) {
  for (int32_t tokens : {8, 4, 2, 1}) {
    spec.model.sequence = tokens;
    if (spec.sequence_parallel && tokens % spec.tp != 0) continue;
    if (spec.loss_chunks > 1 && tokens % spec.loss_chunks != 0) continue;
    if (BoundProblem(spec).empty()) return tokens;
  }
  return 0;
}

}  // namespace shardproof
