// versions.h: which entry calls left a parameter's value as it was?
//
// An optimizer that leaves out what has no gradient changes no bit: older bytes are as good as
// those of the last step.
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "conformance/checks/base/analysis.h"

namespace shardproof::layer_wise {

class Versions {
 public:
  explicit Versions(const Analysis& a);
  // The call published what the last one before it had published. Where values are not recorded: it
  // may have.
  bool Unchanged(int32_t instance, int32_t key, int32_t call) const;
  // What was current after the call `from` is so after `to`.
  bool Same(int32_t instance, int32_t key, int32_t from, int32_t to) const;
  // No gradient, no change: plain SGD keeps no state, and nothing decays.
  static bool MayLeaveOut(const InstanceSpec& spec) {
    return spec.optimizer == Optimizer::kSgd && spec.weight_decay == 0;
  }

 private:
  void AddInitial(const InstanceFacts& facts, int32_t instance);

  std::map<std::pair<int32_t, int32_t>, std::map<int32_t, bool>>
      changed_;  // (instance, key) -> publishing calls
};

}  // namespace shardproof::layer_wise
