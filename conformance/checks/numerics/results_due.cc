#include "conformance/checks/numerics/results_due.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "conformance/cases/case.h"

namespace shardproof {

namespace {

using Tensors = std::map<std::string, std::vector<float>>;

OracleCall CallOf(const ScriptCall& call, const Tensors& params, const Tensors& trainable) {
  OracleCall due;
  due.letter = call.letter;
  due.step = call.step;
  due.updated = call.letter == 't';
  if (call.letter == 'c' || call.letter == 't' || call.letter == 'l') due.weights = params;
  if (call.letter == 't') due.grads = trainable;
  return due;
}

}  // namespace

std::vector<OracleRun> ResultsDue(const Analysis& a) {
  std::vector<OracleRun> due;
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceFacts& facts = a.Facts(i);
    Tensors params, trainable;
    for (int32_t key = 0; key < facts.n_keys(); ++key) {
      const ParamFacts& param = facts.ByKey(key);
      const std::vector<float> zeros(static_cast<size_t>(param.numel));
      params.emplace(param.name, zeros);
      if (!param.frozen) trainable.emplace(param.name, zeros);
    }
    OracleRun& run = due.emplace_back();
    run.names_only = true;
    for (const ScriptCall& call : ExpandScript(facts.spec()))
      run.calls.push_back(CallOf(call, params, trainable));
  }
  return due;
}

}  // namespace shardproof
