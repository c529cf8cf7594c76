#include "conformance/model/interim/data.h"

#include "conformance/model/interim/kernels.h"
#include "conformance/trace/digest.h"

namespace shardproof {

namespace {
uint64_t HashName(const std::string& name) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const char c : name) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return h;
}
}  // namespace

float InitialElement(uint64_t seed, const ParamDef& param, int64_t index) {
  const uint64_t h = Mix(HashName(param.name) ^ Mix(seed) ^ Mix(static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u + 1));
  const auto uniform = static_cast<int64_t>(h >> 40) % 1024;  // 0..1023
  if (param.kind == ParamDef::Kind::kNorm) {
    // about 1: 64 +- 8 quanta of 2^-6
    return static_cast<float>(64 + uniform % 17 - 8) * PowerOfTwo(kNormWeight.exponent);
  }
  // uniform in +-reach quanta of the weight grid, about +-sqrt(3 / fan_in)
  int64_t reach = 12;
  if (param.kind == ParamDef::Kind::kMatrix) {
    reach = 127;
    while (reach * reach * param.shape[1] > 3 * 128 * 128) --reach;
    if (param.name.starts_with("embedding")) reach = 96;
  }
  return static_cast<float>(uniform % (2 * reach + 1) - reach) * PowerOfTwo(kWeight.exponent);
}

void FillSample(uint64_t seed, int64_t step, int64_t sample, const Dims& dims, int32_t* tokens, int32_t* labels) {
  const uint64_t base = Mix(seed * 0x9E3779B97F4A7C15u + Mix(static_cast<uint64_t>(step) * 1000003u + 17) +
                            Mix(static_cast<uint64_t>(sample) * 7919u + 5));
  for (int64_t i = 0; i < dims.sequence; ++i) {
    const uint64_t h = Mix(base + static_cast<uint64_t>(i) * 0xD1B54A32D192ED03u);
    tokens[i] = static_cast<int32_t>((h >> 8) % static_cast<uint64_t>(dims.vocab));
    labels[i] = static_cast<int32_t>((h >> 36) % static_cast<uint64_t>(dims.vocab));
  }
}

}  // namespace shardproof
