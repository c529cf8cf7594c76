#include "reference/optim/optimizer.h"

#include <algorithm>

#include "reference/optim/muon_step.h"

namespace reference {

double ClipScale(const Config& config, double norm) {
  return config.clip_grad > 0 ? std::min(1.0, config.clip_grad / (norm + 1e-6)) : 1.0;
}

// A norm that is no number is above every threshold.
bool SkipsStep(const Config& config, double norm) {
  return config.skip_norm > 0 && !(norm <= config.skip_norm);
}

void Optimizer::Step(double clip_scale) {
  ++updates_;
  for (const Bucket& b : c_.buckets) {
    if (!b.plan.trainable || b.shard_size() == 0) continue;
    spf_addr x = c_.host.Alloc(c_.streams.compute, b.Bytes(b.shard_size(), SPF_F32),
                               spf::For(SPF_FOR_SCRATCH, b.module));
    c_.host.Axpby(c_.streams.compute, clip_scale, b.ShardOfGrad(), b.grad_dtype, 0, x, SPF_F32,
                  Count(b.shard_size()));
    if (c_.config.optimizer == OptimizerKind::kSgd) {
      Sgd(b, x);
    } else if (b.plan.muon) {
      StepMuon(c_, b, x);
    } else {
      AdamW(b, x);
    }
    c_.host.Free(c_.streams.compute, x);
  }
}

void Optimizer::Sgd(const Bucket& b, spf_addr x) {
  const auto n = Count(b.shard_size());
  if (c_.config.weight_decay != 0) {
    c_.host.Axpby(c_.streams.compute, c_.config.weight_decay, b.main, SPF_F32, 1, x, SPF_F32, n);
  }
  c_.host.Axpby(c_.streams.compute, -c_.config.lr, x, SPF_F32, 1, b.main, SPF_F32, n);
}

void Optimizer::AdamW(const Bucket& b, spf_addr x) {
  const auto n = Count(b.shard_size());
  const Config& config = c_.config;
  c_.host.Launch(c_.streams.compute, SPF_K_ADAMW,
                 {{b.main, n, SPF_F32, SPF_ADD},
                  {b.exp_avg, n, SPF_F32, SPF_ADD},
                  {b.exp_avg_sq, n, SPF_F32, SPF_ADD},
                  {x, n, SPF_F32, SPF_READ}},
                 {config.lr, config.adam_beta1, config.adam_beta2, config.adam_eps,
                  config.weight_decay, static_cast<double>(updates_)});
}

}  // namespace reference
