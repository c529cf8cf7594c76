#include "conformance/checks/testing/mini_engine.h"

#include <set>

#include "conformance/checks/testing/mini_trace.h"

namespace shardproof {

float MiniValue(int32_t call, int32_t key, int64_t element) {
  return static_cast<float>(call * 64 + key) + static_cast<float>(element % 61) / 64;
}
float MiniGrad(int32_t call, int32_t key, int64_t element) {
  return -MiniValue(call, key, element);
}

Case MiniCase(int32_t world, const std::function<void(InstanceSpec&)>& edit) {
  Case c;
  c.world = world;
  InstanceSpec& spec = c.instances[0];
  spec.strategy = ShardingStrategy::kOptimGradsParams;
  spec.script = "tt";
  spec.prefetch_limit_bytes = 0;
  spec.model.layers = 3;
  if (edit) edit(spec);
  Derive(c);
  return c;
}

namespace {

std::unique_ptr<OracleRun> MiniOracle(const InstanceFacts& facts) {
  auto oracle = std::make_unique<OracleRun>();
  const InstanceSpec& spec = facts.spec();
  for (size_t i = 0; i < facts.calls().size(); ++i) {
    const auto call = static_cast<int32_t>(i);
    OracleCall& out = oracle->calls.emplace_back();
    out.letter = facts.calls()[i].letter;
    out.step = facts.calls()[i].step;
    out.updated = out.letter == 't';
    out.grad_norm = 2;
    out.zero_count = 3;
    for (int64_t s = 0; s < int64_t{DpCpSize(spec)} * spec.microbatches && out.step >= 0; ++s) {
      out.losses[s] = static_cast<float>(s) + 0.5f;
    }
    for (int32_t key = 0; key < facts.n_keys(); ++key) {
      const ParamFacts& param = facts.ByKey(key);
      if (param.key != key || out.letter == 'e') continue;
      for (int64_t e = 0; e < param.numel; ++e) {
        out.weights[param.name].push_back(MiniValue(param.frozen ? 0 : call, key, e));
        if (!param.frozen && out.letter == 't')
          out.grads[param.name].push_back(MiniGrad(call, key, e));
      }
    }
  }
  return oracle;
}

}  // namespace

MiniRun RunMini(Case c, const MiniFaults& faults) {
  MiniRun mini{
      WriteRun(std::move(c), [&](const Case& of, const InstanceFacts& facts,
                                 int32_t rank) { return WriteMiniTrace(of, facts, rank, faults); }),
      {}};
  mini.oracles.push_back(MiniOracle(InstanceFacts(mini.spec->instances[0], mini.spec->world)));
  mini.run.oracles = {mini.oracles[0].get()};
  return mini;
}

}  // namespace shardproof
