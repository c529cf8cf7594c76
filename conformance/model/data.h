// data.h: what are the tokens of a microbatch?
#pragma once
#include <cstdint>
#include <string_view>

namespace shardproof {

// Well mixed 64 bits; a pure function.
uint64_t Mix(uint64_t x);
uint64_t HashText(std::string_view text);

struct DataShape {
  int32_t vocab = 0, sequence = 0;
  uint64_t seed = 0;
  bool nan_loss = false;  // of ModelConfig
};

// A pure function of (seed, step, sample). The pair (tokens[0], labels[0]) differs between any two
// of vocab^2 consecutive samples of a step, even when a sample is one token long.
void FillSample(const DataShape& shape, int64_t step, int64_t sample, int32_t* tokens,
                int32_t* labels);

}  // namespace shardproof
