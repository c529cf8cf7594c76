#include "conformance/model/interim/node_math.h"

#include <cstring>

#include "conformance/model/interim/data.h"

namespace shardproof {

NodeMath::Floats NodeMath::Param(int32_t id, const Grid& grid) const {
  const auto n = static_cast<size_t>(tables_.model().params[id].numel);
  Floats out(n);
  if (config_.bf16_params) {
    const auto* from = static_cast<const uint16_t*>(args_->param[id]);
    for (size_t i = 0; i < n; ++i) out[i] = q_(FromBf16(from[i]), grid);
  } else {
    const auto* from = static_cast<const float*>(args_->param[id]);
    for (size_t i = 0; i < n; ++i) out[i] = q_(from[i], grid);
  }
  return out;
}

NodeMath::Floats NodeMath::Upstream(const Grid& grid, int64_t n) const {
  Floats out(static_cast<size_t>(n));
  const float* from = Dact(def_.out);
  for (size_t i = 0; i < out.size(); ++i) out[i] = q_(from[i], grid);
  return out;
}

void NodeMath::Emit(int32_t value, const float* x, int64_t n) const {
  const spf_uses& uses = tables_.node(args_->node).uses[SPF_DGRAD];
  float* to = static_cast<float*>(args_->dact[value]);
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != SPF_IN_DACT || uses.use[i].id != value || uses.use[i].access == SPF_READ) continue;
    if (uses.use[i].access == SPF_WRITE) {
      std::memcpy(to, x, static_cast<size_t>(n) * sizeof(float));
    } else {
      for (int64_t j = 0; j < n; ++j) to[j] = to[j] + x[j];
    }
    return;
  }
}

void NodeMath::AddGrad(int32_t param, const float* x, int64_t n) const {
  if (param < 0 || tables_.params()[static_cast<size_t>(param)].frozen) return;
  const auto odd = static_cast<float>(config_.d_odd);
  if (args_->grad_dtype == SPF_BF16) {
    auto* to = static_cast<uint16_t*>(args_->grad[param]);
    for (int64_t i = 0; i < n; ++i) to[i] = ToBf16(FromBf16(to[i]) + x[i] * odd);
  } else {
    auto* to = static_cast<float*>(args_->grad[param]);
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] + x[i] * odd;
  }
}

Grid NodeMath::Operand(const Grid& grid) const {
  return config_.narrow ? Grid{grid.exponent + 6, 1} : grid;
}

void NodeMath::Run(const NodeArgs& args) {
  args_ = &args;
  if (args.phase == SPF_FWD) Forward();
  if (args.phase == SPF_BWD || args.phase == SPF_DGRAD) Dgrad();
  if (args.phase == SPF_BWD || args.phase == SPF_WGRAD) Wgrad();
}

void NodeMath::Forward() {
  const int64_t t = dims_.sequence, n = def_.n;
  switch (def_.op) {
    case Op::kInput:
      FillSample(config_.seed, args_->step, args_->sample, dims_, static_cast<int32_t*>(args_->act[def_.out]),
                 static_cast<int32_t*>(args_->act[def_.in]));
      return;
    case Op::kEmbed: {
      const Floats w = Param(def_.weight, kWeight);
      const Floats p = def_.position < 0 ? Floats() : Param(def_.position, kWeight);
      const float shift = def_.shift < 0 ? 0.0f : Param(def_.shift, kWeight)[0];
      for (int64_t i = 0; i < t; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          float h = w[static_cast<size_t>(Ints(def_.in)[i] * n + j)];
          if (!p.empty()) h = h + p[static_cast<size_t>(i * n + j)];
          if (def_.shift >= 0 && j == 0) h = h + shift;
          ActOut()[i * n + j] = q_(h, kResidual);
        }
      }
      return;
    }
    case Op::kNorm:
      rmsnorm_forward(ActOut(), nullptr, Act(def_.in), Param(def_.weight, kNormWeight).data(), t, n, q_);
      return;
    case Op::kLinear:
    case Op::kResidualLinear:
    case Op::kHead: {
      const Floats w = Param(def_.weight, kWeight);
      const Floats b = def_.bias < 0 ? Floats() : Param(def_.bias, kWeight);
      float* y = ActOut();
      linear_forward(y, Act(def_.in), w.data(), b.empty() ? nullptr : b.data(), t, def_.k, n);
      if (def_.op == Op::kHead) return;
      for (int64_t i = 0; i < t * n; ++i) {
        y[i] = def_.op == Op::kLinear ? q_(y[i], kActivation) : q_(Act(def_.residual)[i] + y[i], kResidual);
      }
      return;
    }
    case Op::kAttention:
      attention_forward(ActOut(), Act(def_.in), t, n, dims_.heads, q_);
      return;
    case Op::kSilu:
      silu_forward(ActOut(), Act(def_.in), t * n);
      for (int64_t i = 0; i < t * n; ++i) ActOut()[i] = q_(ActOut()[i], kActivation);
      return;
    case Op::kLoss:
      *ActOut() = cross_entropy_forward(Act(def_.in), Ints(def_.residual), t, n, q_);
      return;
  }
}

void NodeMath::Dgrad() {
  const int64_t t = dims_.sequence, n = def_.n;
  switch (def_.op) {
    case Op::kInput:
    case Op::kEmbed: return;
    case Op::kNorm: {
      const Floats dy = Upstream(site_.upstream, t * n);
      Floats dx(dy.size());
      rmsnorm_dgrad(dx.data(), dy.data(), Act(def_.in), Param(def_.weight, kNormWeight).data(), t, n, site_.dot, q_);
      for (float& x : dx) x = q_(x, site_.passed);
      Emit(def_.in, dx.data(), t * n);
      return;
    }
    case Op::kLinear:
    case Op::kResidualLinear:
    case Op::kHead: {
      const Floats dy = Upstream(site_.upstream, t * n);
      Floats dx(static_cast<size_t>(t * def_.k));
      linear_dgrad(dx.data(), dy.data(), Param(def_.weight, kWeight).data(), t, def_.k, n);
      Emit(def_.in, dx.data(), t * def_.k);
      if (def_.op != Op::kResidualLinear) return;
      const Floats passed = Upstream(site_.passed, t * n);
      Emit(def_.residual, passed.data(), t * n);
      return;
    }
    case Op::kAttention: {
      const Floats dy = Upstream(site_.upstream, t * n);
      Floats dx(static_cast<size_t>(t * 3 * n));
      attention_dgrad(dx.data(), dy.data(), Act(def_.in), t, n, dims_.heads, {site_.dprob, site_.dscore}, q_);
      Emit(def_.in, dx.data(), t * 3 * n);
      return;
    }
    case Op::kSilu: {
      Floats dx(static_cast<size_t>(t * n));
      silu_dgrad(dx.data(), Dact(def_.out), Act(def_.in), t * n);
      Emit(def_.in, dx.data(), t * n);
      return;
    }
    case Op::kLoss: {
      Floats dx(static_cast<size_t>(t * n));
      cross_entropy_dgrad(dx.data(), Act(def_.in), Ints(def_.residual), t, n, static_cast<float>(args_->scale), q_);
      Emit(def_.in, dx.data(), t * n);
      return;
    }
  }
}

void NodeMath::WgradEmbed() {
  const int64_t t = dims_.sequence, n = def_.n;
  const Floats dy = Upstream(Operand(site_.upstream), t * n);
  Floats dw(static_cast<size_t>(dims_.vocab * n)), dp(static_cast<size_t>(t * n));
  float shift = 0;
  for (int64_t i = 0; i < t; ++i) {
    shift = shift + dy[static_cast<size_t>(i * n)];
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(Ints(def_.in)[i] * n + j), from = static_cast<size_t>(i * n + j);
      dw[at] = dw[at] + dy[from];
      dp[from] = dy[from];
    }
  }
  AddGrad(def_.weight, dw.data(), dims_.vocab * n);
  AddGrad(def_.position, dp.data(), t * n);
  AddGrad(def_.shift, &shift, 1);
}

void NodeMath::Wgrad() {
  const int64_t t = dims_.sequence, n = def_.n;
  if (def_.op == Op::kEmbed) return WgradEmbed();
  if (def_.weight < 0) return;
  const bool any = tables_.node(args_->node).uses[SPF_WGRAD].n > 0;
  if (!any) return;
  const Floats dy = Upstream(Operand(site_.upstream), t * n);
  if (def_.op == Op::kNorm) {
    Floats normed(dy.size()), dw(static_cast<size_t>(n));
    rmsnorm_forward(nullptr, normed.data(), Act(def_.in), nullptr, t, n, q_);
    for (int64_t i = 0; i < t; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<size_t>(i * n + j);
        dw[static_cast<size_t>(j)] += dy[at] * q_(normed[at], Operand(kActivation));
      }
    }
    AddGrad(def_.weight, dw.data(), n);
    return;
  }
  Floats x(static_cast<size_t>(t * def_.k));
  for (size_t i = 0; i < x.size(); ++i) x[i] = q_(Act(def_.in)[i], Operand(kActivation));
  Floats dw(static_cast<size_t>(n * def_.k)), db(static_cast<size_t>(n));
  linear_wgrad(dw.data(), def_.bias < 0 ? nullptr : db.data(), dy.data(), x.data(), t, def_.k, n);
  AddGrad(def_.weight, dw.data(), n * def_.k);
  AddGrad(def_.bias, db.data(), n);
}

}  // namespace shardproof
