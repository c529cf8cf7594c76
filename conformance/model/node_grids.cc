#include "conformance/model/node_grids.h"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "conformance/model/grids.h"

namespace shardproof {

int32_t ExponentOfScale(double scale) {
  int exponent = 0;
  const double mantissa = std::frexp(scale, &exponent);
  if (mantissa != 0.5 || exponent < -39 || exponent > 41) {
    throw std::invalid_argument("scale " + std::to_string(scale) +
                                " is no power of two in 2^-40..2^40: divide after the sum instead");
  }
  return exponent - 1;
}

bool FromStream(const NodeSpec& spec) {
  return spec.op == Op::kLinearResidual || spec.op == Op::kConcatLinear ||
         spec.op == Op::kResidualAdd;
}

bool OfSplitVocabulary(const NodeSpec& spec) {
  return (spec.op == Op::kEmbed && spec.split) || spec.op == Op::kEmbedStream ||
         spec.op == Op::kLossMax || spec.op == Op::kLossSums || spec.op == Op::kSplitLoss;
}

Grid OutGradGridOf(const Network& network, const NodeSpec& spec) {
  if (FromStream(spec) || spec.op == Op::kRowLinear) return grids::kDBranch;
  if (spec.op == Op::kGain) return grids::kDHeadIn;
  if (spec.head) return spec.op == Op::kNorm ? grids::kDHeadIn : grids::kDLogits;
  if (spec.op == Op::kNorm) return spec.many_readers ? grids::kDMoeNormOut : grids::kDNormOut;
  const std::string_view module = network.tables().modules[spec.module].name;
  if (module.ends_with(".fc2")) return grids::kDBranch;  // of a shared expert
  return module.ends_with(".qkv") ? grids::kDQkv : grids::kDFc1;
}

Grid InGradGridOf(const Network& network, const NodeSpec& spec) {
  if (spec.head) return grids::kDHeadIn;
  const std::string_view module = network.tables().modules[spec.module].name;
  if (module.ends_with(".fc2")) return grids::kDMlp;
  const bool proj = spec.op == Op::kLinearResidual || spec.op == Op::kRowLinear;
  return proj ? grids::kDAttention : grids::kDNormOut;
}

}  // namespace shardproof
