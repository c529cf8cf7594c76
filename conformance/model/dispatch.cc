#include "conformance/model/dispatch.h"

#include <algorithm>

#include "conformance/model/attention.h"
#include "conformance/model/data.h"
#include "conformance/model/embedding.h"
#include "conformance/model/grids.h"
#include "conformance/model/linear.h"
#include "conformance/model/loss.h"
#include "conformance/model/node_grids.h"
#include "conformance/model/norm.h"
#include "conformance/model/swiglu.h"

namespace shardproof {

Dispatch::Dispatch(const ModelConfig& config, const Network& network, const NodeArgs& args)
    : config_(config),
      network_(network),
      args_(args),
      spec_(network.spec(args.node)),
      d_(network.dims()) {
  n_.quantised = config.quantised;
  n_.narrow = config.narrow;
  n_.d_odd = config.d_odd;
  n_.scale_e = ExponentOfScale(args.scale);
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

std::vector<float> Dispatch::OutGrad() const {
  const int64_t width = Width(spec_.out[0]);
  const float* dy = Grad(spec_.grad_out());
  if (spec_.grad_from >= 0) dy += network_.FirstTokenOf(spec_) * width;
  std::vector<float> grad(dy, dy + Tokens() * width);
  if (FromStream(spec_) || spec_.many_readers)
    n_.RoundGrad(OutGradGrid(), grad.data(), static_cast<int64_t>(grad.size()));
  return grad;
}

AttentionShape Dispatch::Heads() const {
  const bool apart = spec_.op == Op::kAttention && spec_.in[1] >= 0;
  return {d_.sequence,
          spec_.split ? d_.local_heads() : d_.heads,
          d_.head_dim,
          spec_.split,
          apart ? d_.whole_sequence() : 0,
          apart ? network_.first_position() : 0};
}

EmbeddingShape Dispatch::Embedding(int64_t tokens, int64_t first) const {
  return {tokens,
          d_.vocab,
          d_.width,
          d_.whole_sequence(),
          network_.first_position() + first,
          d_.local_vocab,
          network_.first_word()};
}

SwigluShape Dispatch::Gates() const {
  return {Tokens(), spec_.split ? d_.local_ffn() : d_.ffn, spec_.split};
}

void Dispatch::Run() {
  if (args_.phase == SPF_FWD)
    return OfSplitVocabulary(spec_) ? ForwardSplitVocabulary() : Forward();
  if (args_.phase == SPF_BWD || args_.phase == SPF_DGRAD) Dgrad();
  if (args_.phase == SPF_BWD || args_.phase == SPF_WGRAD) Wgrad();
}

void Dispatch::ForwardLinear() {
  const bool concat = spec_.op == Op::kConcatLinear;
  const LinearShape shape{Tokens(), concat ? 2 * d_.width : Width(spec_.in[0]),
                          Width(spec_.out[0])};
  const std::vector<float> weight = Param(spec_.weight()), bias = Param(spec_.bias());
  const std::vector<float> both = concat ? Concatenated() : std::vector<float>();
  float* y = Out(spec_.out[0]);
  LinearForward(n_, shape, concat ? both.data() : In(spec_.in[0]) + Begin(), weight.data(),
                bias.empty() ? nullptr : bias.data(), y);
  const int64_t count = shape.tokens * shape.out;
  if (spec_.op == Op::kLinearResidual) {
    const float* h = In(spec_.in[1]);
    for (int64_t i = 0; i < count; ++i) y[i] = h[i] + y[i];
    n_.Round(grids::kResidual, y, count);
  } else if (!spec_.head && spec_.op != Op::kRowLinear) {
    // Logits are exact sums that nothing multiplies; of others the grid follows the sum over tp.
    n_.Round(concat ? grids::kResidual : grids::kActivation, y, count);
  }
}

void Dispatch::ForwardResidualAdd() {
  const std::vector<float> bias = Param(spec_.bias());
  const float *sum = In(spec_.in[0]), *h = In(spec_.in[1]);
  float* y = Out(spec_.out[0]);
  const int64_t count = Tokens() * d_.width;
  for (int64_t i = 0; i < count; ++i) {
    const float x = bias.empty() ? sum[i] : sum[i] + bias[static_cast<size_t>(i % d_.width)];
    y[i] = h[i] + x;
  }
  n_.Round(grids::kResidual, y, count);
}

std::vector<int32_t> Dispatch::Labels() const {
  const int32_t* labels = Integers(spec_.in[1]);
  std::vector<int32_t> own(labels, labels + d_.sequence);
  if (spec_.op == Op::kNextLoss) std::rotate(own.begin(), own.begin() + 1, own.end());
  own.erase(own.begin(), own.begin() + network_.FirstRowOf(spec_));
  return own;
}

void Dispatch::ForwardLoss() {
  float* loss = Out(spec_.out[0]);
  const float own = LossForward(n_, Tokens(), d_.vocab, In(spec_.in[0]), Labels().data());
  *loss = spec_.AddsToLoss() ? *loss + own : own;
}

void Dispatch::Input() {
  std::vector<int32_t> unused(static_cast<size_t>(d_.sequence));
  auto out = [&](int32_t value) {
    return value < 0 ? unused.data() : static_cast<int32_t*>(args_.act[value]);
  };
  FillSample({static_cast<int32_t>(d_.vocab), static_cast<int32_t>(d_.sequence), config_.seed,
              config_.nan_loss},
             args_.step, args_.sample, out(spec_.out[0]), out(spec_.out[1]));
}

void Dispatch::Forward() {
  const bool row_wise = spec_.op == Op::kEmbed || spec_.op == Op::kNorm || spec_.op == Op::kGain;
  const std::vector<float> weight = row_wise ? Param(spec_.weight()) : std::vector<float>();
  const RowShape rows{Tokens(), d_.width};
  switch (spec_.op) {
    case Op::kInput:
      return Input();
    case Op::kEmbed: {
      const std::vector<float> position = Param(spec_.bias());
      const int64_t first = network_.FirstTokenOf(spec_);
      EmbeddingForward(n_, Embedding(Tokens(), first), Integers(spec_.in[0]) + first, weight.data(),
                       position.empty() ? nullptr : position.data(), Out(spec_.out[0]));
      return;
    }
    case Op::kNorm:
      return NormForward(n_, rows, In(spec_.in[0]), weight.data(), Out(spec_.out[0]));
    case Op::kGain:
      return GainForward(n_, rows, In(spec_.in[0]), weight.data(), Out(spec_.out[0]));
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kConcatLinear:
    case Op::kColumnLinear:
    case Op::kRowLinear:
      return ForwardLinear();
    case Op::kResidualAdd:
      return ForwardResidualAdd();
    case Op::kAttention:
      return AttentionForward(n_, Heads(), In(spec_.in[0]), InOrNull(spec_.in[1]),
                              Out(spec_.out[0]));
    case Op::kKeysValues:
      return TakeKeysValues(Heads(), In(spec_.in[0]), Out(spec_.out[0]));
    case Op::kSwiglu:
      return SwigluForward(n_, Gates(), In(spec_.in[0]), Out(spec_.out[0]));
    case Op::kLoss:
    case Op::kNextLoss:
      return ForwardLoss();
    default:
      return MoeForward();
  }
}

void Dispatch::DgradLinear() {
  if (spec_.grad_in[0]) {
    const LinearShape shape{Tokens(), Width(spec_.in[0]), Width(spec_.out[0])};
    std::vector<float> own(spec_.add_in[0] ? static_cast<size_t>(shape.tokens * shape.in) : 0);
    float* dx = Grad(spec_.in[0]) + Begin();
    float* sum = spec_.add_in[0] ? own.data() : dx;
    LinearDgradSum(n_, shape, OutGrad().data(), OutGradGrid(), Param(spec_.weight()).data(), sum);
    if (spec_.op != Op::kColumnLinear) n_.RoundGrad(InGradGrid(), sum, shape.tokens * shape.in);
    for (size_t i = 0; i < own.size(); ++i) dx[i] = dx[i] + own[i];
  }
  if (spec_.grad_in[1]) DgradStream();
}

void Dispatch::DgradResidualAdd() {
  if (spec_.grad_in[0]) {
    const std::vector<float> dy = OutGrad();
    std::copy(dy.begin(), dy.end(), Grad(spec_.in[0]));
  }
  if (spec_.grad_in[1]) DgradStream();
}

void Dispatch::DgradStream() {
  const int64_t count = Tokens() * d_.width;
  const float* dy = Grad(spec_.out[0]);
  std::vector<float> rounded(dy, dy + count);
  n_.RoundGrad(grids::kDResidual, rounded.data(), count);
  float* dh = Grad(spec_.in[1]);
  for (int64_t i = 0; i < count; ++i)
    dh[i] =
        spec_.add_in[1] ? dh[i] + rounded[static_cast<size_t>(i)] : rounded[static_cast<size_t>(i)];
}

void Dispatch::Dgrad() {
  if (!spec_.any_grad_in()) return;
  const RowShape rows{Tokens(), d_.width};
  switch (spec_.op) {
    case Op::kNorm:
      return NormDgrad(n_, rows, In(spec_.in[0]), Param(spec_.weight()).data(), OutGrad().data(),
                       spec_.add_in[0], Grad(spec_.in[0]));
    case Op::kGain:
      return GainDgrad(n_, rows, Param(spec_.weight()).data(), OutGrad().data(), Grad(spec_.in[0]));
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kColumnLinear:
    case Op::kRowLinear:
      return DgradLinear();
    case Op::kResidualAdd:
      return DgradResidualAdd();
    case Op::kConcatLinear:
      return ConcatDgrad();
    case Op::kAttention:
      return AttentionDgrad(n_, Heads(), In(spec_.in[0]), InOrNull(spec_.in[1]), Grad(spec_.out[0]),
                            Grad(spec_.in[0]), spec_.in[1] < 0 ? nullptr : Grad(spec_.in[1]));
    case Op::kKeysValues:
      return AddKeysValuesGrad(n_, Heads(), Grad(spec_.out[0]), Grad(spec_.in[0]));
    case Op::kSwiglu:
      return SwigluDgrad(n_, Gates(), In(spec_.in[0]), Grad(spec_.out[0]), Grad(spec_.in[0]));
    case Op::kLoss:
    case Op::kNextLoss:
      return LossDgrad(n_, Tokens(), d_.vocab, In(spec_.in[0]), Labels().data(), Grad(spec_.in[0]));
    case Op::kSplitLoss:
      return DgradSplitLoss();
    case Op::kInput:
    case Op::kEmbed:
      return;
    default:
      return MoeDgrad();
  }
}

void Dispatch::WgradLinear() {
  const bool concat = spec_.op == Op::kConcatLinear;
  const LinearShape shape{Tokens(), concat ? 2 * d_.width : Width(spec_.in[0]),
                          Width(spec_.out[0])};
  const std::vector<float> dy = OutGrad();
  const std::vector<float> both = concat ? Concatenated() : std::vector<float>();
  if (spec_.grad_weight) {
    LinearWgrad(n_, shape, concat ? both.data() : In(spec_.in[0]) + Begin(), dy.data(),
                OutGradGrid(), Target(spec_.weight()));
  }
  if (spec_.grad_bias) LinearBiasGrad(n_, shape, dy.data(), OutGradGrid(), Target(spec_.bias()));
}

void Dispatch::Wgrad() {
  if (!spec_.grad_weight && !spec_.grad_bias) return;
  const RowShape rows{Tokens(), d_.width};
  switch (spec_.op) {
    case Op::kEmbed: {
      const EmbeddingShape shape = Embedding(d_.sequence, 0);
      if (spec_.grad_weight) {
        EmbeddingWgrad(n_, shape, Integers(spec_.in[0]), Grad(spec_.grad_out()),
                       Target(spec_.weight()));
      }
      if (spec_.grad_bias) PositionWgrad(n_, shape, Grad(spec_.grad_out()), Target(spec_.bias()));
      return;
    }
    case Op::kEmbedStream:
      return PositionWgrad(n_, Embedding(Tokens(), network_.FirstTokenOf(spec_)),
                           Grad(spec_.out[0]), Target(spec_.bias()));
    case Op::kNorm:
      return NormWgrad(n_, rows, In(spec_.in[0]), OutGrad().data(), OutGradGrid(),
                       Target(spec_.weight()));
    case Op::kGain:
      return GainWgrad(n_, rows, In(spec_.in[0]), OutGrad().data(), Target(spec_.weight()));
    case Op::kLinear:
    case Op::kLinearResidual:
    case Op::kConcatLinear:
    case Op::kColumnLinear:
    case Op::kRowLinear:
    case Op::kResidualAdd:  // a bias
      return WgradLinear();
    default:
      return MoeWgrad();
  }
}

}  // namespace shardproof
