#include "conformance/model/dispatch.h"

#include <cmath>
#include <stdexcept>
#include <string_view>

#include "conformance/model/attention.h"
#include "conformance/model/data.h"
#include "conformance/model/embedding.h"
#include "conformance/model/grids.h"
#include "conformance/model/linear.h"
#include "conformance/model/loss.h"
#include "conformance/model/norm.h"
#include "conformance/model/swiglu.h"

namespace shardproof {

namespace {

int32_t ExponentOf(double scale) {
  int exponent = 0;
  const double mantissa = std::frexp(scale, &exponent);
  if (mantissa != 0.5 || exponent < -40 || exponent > 41) {
    throw std::invalid_argument("scale " + std::to_string(scale) +
                                " is no power of two in 2^-40..2^40: divide after the sum instead");
  }
  return exponent - 1;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

Dispatch::Dispatch(const ModelConfig& config, const Network& network, const NodeArgs& args)
    : config_(config),
      network_(network),
      args_(args),
      spec_(network.spec(args.node)),
      d_(network.dims()) {
  n_.quantised = config.quantised;
  n_.narrow = config.narrow;
  n_.d_odd = config.d_odd;
  n_.scale_e = ExponentOf(args.scale);
  n_.probe = args.probe;
}

std::vector<float> Dispatch::Param(int32_t id) const {
  std::vector<float> values;
  if (id < 0) return values;
  const spf_param& param = network_.tables().params[id];
  values.resize(static_cast<size_t>(param.numel));
  if (config_.bf16_params) {
    const auto* bits = static_cast<const uint16_t*>(args_.param[id]);
    for (size_t i = 0; i < values.size(); ++i) values[i] = FromBf16(bits[i]);
  } else {
    const auto* source = static_cast<const float*>(args_.param[id]);
    values.assign(source, source + param.numel);
  }
  n_.Round(network_.info(id).norm ? grids::kNormWeight : grids::kWeight, values.data(),
           param.numel);
  return values;
}

GradTarget Dispatch::Target(int32_t param) const {
  return {network_.tables().params[param].name, args_.grad[param], args_.grad_dtype};
}

Grid Dispatch::OutGradGrid() const {
  if (spec_.op == Op::kLinearResidual) return grids::kDBranch;
  if (spec_.head) return spec_.op == Op::kNorm ? grids::kDHeadIn : grids::kDLogits;
  if (spec_.op == Op::kNorm) return grids::kDNormOut;
  return EndsWith(network_.tables().modules[spec_.module].name, ".qkv") ? grids::kDQkv
                                                                        : grids::kDFc1;
}

Grid Dispatch::InGradGrid() const {
  if (spec_.head) return grids::kDHeadIn;
  if (spec_.op != Op::kLinearResidual) return grids::kDNormOut;
  return EndsWith(network_.tables().modules[spec_.module].name, ".proj") ? grids::kDAttention
                                                                         : grids::kDMlp;
}

std::vector<float> Dispatch::OutGrad() const {
  const float* dy = Grad(spec_.out);
  std::vector<float> grad(dy, dy + d_.sequence * Width(spec_.out));
  if (spec_.op == Op::kLinearResidual)
    n_.RoundGrad(grids::kDBranch, grad.data(), static_cast<int64_t>(grad.size()));
  return grad;
}

void Dispatch::Run() {
  if (args_.phase == SPF_FWD) return Forward();
  if (args_.phase == SPF_BWD || args_.phase == SPF_DGRAD) Dgrad();
  if (args_.phase == SPF_BWD || args_.phase == SPF_WGRAD) Wgrad();
}

void Dispatch::ForwardLinear() {
  const LinearShape shape{d_.sequence, Width(spec_.in), Width(spec_.out)};
  const std::vector<float> weight = Param(spec_.weight), bias = Param(spec_.bias);
  float* y = Out(spec_.out);
  LinearForward(n_, shape, In(spec_.in), weight.data(), bias.empty() ? nullptr : bias.data(), y);
  const int64_t count = shape.tokens * shape.out;
  if (spec_.op == Op::kLinearResidual) {
    const float* h = In(spec_.in2);
    for (int64_t i = 0; i < count; ++i) y[i] = h[i] + y[i];
    n_.Round(grids::kResidual, y, count);
  } else if (!spec_.head) {  // logits are exact sums; nothing multiplies them
    n_.Round(grids::kActivation, y, count);
  }
}

void Dispatch::Forward() {
  const std::vector<float> weight = spec_.op == Op::kLinear || spec_.op == Op::kLinearResidual
                                        ? std::vector<float>()
                                        : Param(spec_.weight);
  const RowShape rows{d_.sequence, d_.width};
  switch (spec_.op) {
    case Op::kInput:
      FillSample({static_cast<int32_t>(d_.vocab), static_cast<int32_t>(d_.sequence), config_.seed},
                 args_.step, args_.sample, static_cast<int32_t*>(args_.act[spec_.out]),
                 static_cast<int32_t*>(args_.act[spec_.out2]));
      return;
    case Op::kEmbed: {
      const std::vector<float> position = Param(spec_.bias);
      EmbeddingForward(n_, {d_.sequence, d_.vocab, d_.width}, Integers(spec_.in), weight.data(),
                       position.empty() ? nullptr : position.data(), Out(spec_.out));
      return;
    }
    case Op::kNorm:
      return NormForward(n_, rows, In(spec_.in), weight.data(), Out(spec_.out));
    case Op::kGain:
      return GainForward(n_, rows, In(spec_.in), weight.data(), Out(spec_.out));
    case Op::kLinear:
    case Op::kLinearResidual:
      return ForwardLinear();
    case Op::kAttention:
      return AttentionForward(n_, {d_.sequence, d_.heads, d_.head_dim}, In(spec_.in),
                              Out(spec_.out));
    case Op::kSwiglu:
      return SwigluForward(n_, d_.sequence, d_.ffn, In(spec_.in), Out(spec_.out));
    case Op::kLoss:
      *Out(spec_.out) = LossForward(n_, d_.sequence, d_.vocab, In(spec_.in), Integers(spec_.in2));
  }
}

void Dispatch::DgradLinear() {
  if (spec_.grad_in) {
    const LinearShape shape{d_.sequence, Width(spec_.in), Width(spec_.out)};
    LinearDgrad(n_, shape, OutGrad().data(), OutGradGrid(), Param(spec_.weight).data(),
                InGradGrid(), Grad(spec_.in));
  }
  if (!spec_.grad_in2) return;
  const int64_t count = d_.sequence * d_.width;
  const float* dy = Grad(spec_.out);
  std::vector<float> rounded(dy, dy + count);
  n_.RoundGrad(grids::kDResidual, rounded.data(), count);
  float* dh = Grad(spec_.in2);
  for (int64_t i = 0; i < count; ++i)
    dh[i] =
        spec_.add_in2 ? dh[i] + rounded[static_cast<size_t>(i)] : rounded[static_cast<size_t>(i)];
}

void Dispatch::Dgrad() {
  if (!spec_.grad_in && !spec_.grad_in2) return;
  const RowShape rows{d_.sequence, d_.width};
  switch (spec_.op) {
    case Op::kNorm:
      return NormDgrad(n_, rows, In(spec_.in), Param(spec_.weight).data(), Grad(spec_.out),
                       spec_.add_in, Grad(spec_.in));
    case Op::kGain:
      return GainDgrad(n_, rows, Param(spec_.weight).data(), Grad(spec_.out), Grad(spec_.in));
    case Op::kLinear:
    case Op::kLinearResidual:
      return DgradLinear();
    case Op::kAttention:
      return AttentionDgrad(n_, {d_.sequence, d_.heads, d_.head_dim}, In(spec_.in), Grad(spec_.out),
                            Grad(spec_.in));
    case Op::kSwiglu:
      return SwigluDgrad(n_, d_.sequence, d_.ffn, In(spec_.in), Grad(spec_.out), Grad(spec_.in));
    case Op::kLoss:
      return LossDgrad(n_, d_.sequence, d_.vocab, In(spec_.in), Integers(spec_.in2),
                       Grad(spec_.in));
    case Op::kInput:
    case Op::kEmbed:
      return;
  }
}

void Dispatch::WgradLinear() {
  const LinearShape shape{d_.sequence, Width(spec_.in), Width(spec_.out)};
  const std::vector<float> dy = OutGrad();
  if (spec_.grad_weight)
    LinearWgrad(n_, shape, In(spec_.in), dy.data(), OutGradGrid(), Target(spec_.weight));
  if (spec_.grad_bias) LinearBiasGrad(n_, shape, dy.data(), OutGradGrid(), Target(spec_.bias));
}

void Dispatch::Wgrad() {
  if (!spec_.grad_weight && !spec_.grad_bias) return;
  const RowShape rows{d_.sequence, d_.width};
  switch (spec_.op) {
    case Op::kEmbed: {
      const EmbeddingShape shape{d_.sequence, d_.vocab, d_.width};
      if (spec_.grad_weight) {
        EmbeddingWgrad(n_, shape, Integers(spec_.in), Grad(spec_.out), Target(spec_.weight));
      }
      if (spec_.grad_bias) PositionWgrad(n_, shape, Grad(spec_.out), Target(spec_.bias));
      return;
    }
    case Op::kNorm:
      return NormWgrad(n_, rows, In(spec_.in), Grad(spec_.out), OutGradGrid(),
                       Target(spec_.weight));
    case Op::kGain:
      return GainWgrad(n_, rows, In(spec_.in), Grad(spec_.out), Target(spec_.weight));
    case Op::kLinear:
    case Op::kLinearResidual:
      return WgradLinear();
    default:
      return;
  }
}

}  // namespace shardproof
