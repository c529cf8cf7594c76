#include "conformance/model/data.h"

#include <numeric>

namespace shardproof {

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Mix(hash);
}

void FillSample(const DataShape& shape, int64_t step, int64_t sample, int32_t* tokens,
                int32_t* labels) {
  const auto vocab = static_cast<uint64_t>(shape.vocab);
  const uint64_t of_step = Mix(Mix(shape.seed) + static_cast<uint64_t>(step));
  const uint64_t of_sample = Mix(of_step + static_cast<uint64_t>(sample));
  for (int32_t t = 0; t < shape.sequence; ++t) {
    const uint64_t bits = Mix(of_sample + static_cast<uint64_t>(t));
    const uint64_t token = bits % vocab;
    const bool learnable = (bits >> 62) != 0;  // three of four labels follow a rule
    tokens[t] = static_cast<int32_t>(token);
    labels[t] = static_cast<int32_t>(learnable ? (3 * token + 1) % vocab : (bits >> 32) % vocab);
  }
  // The first pair counts through all pairs, in strides that share no factor with their number.
  const uint64_t pairs = vocab * vocab;
  uint64_t stride = pairs / 3 + 1;
  while (std::gcd(stride, pairs) != 1) ++stride;
  const uint64_t pair = (of_step % pairs + static_cast<uint64_t>(sample) % pairs * stride) % pairs;
  tokens[0] = static_cast<int32_t>(pair / vocab);
  labels[0] = static_cast<int32_t>(pair % vocab);
  // The last one: backward of attention carries it to all tokens.
  if (shape.nan_loss && step == 1 && sample == 1) labels[shape.sequence - 1] = -1;
}

}  // namespace shardproof
