#include "conformance/checks/layer_wise/versions.h"

#include <algorithm>

#include "conformance/checks/base/published.h"

namespace shardproof::layer_wise {

namespace {

bool Equal(const Assembled& x, const Assembled& y) {
  const auto same = [](double a, double b) { return SameValue(a, b); };
  return x.Complete() && y.Complete() && x.conflict.element < 0 && y.conflict.element < 0 &&
         std::equal(x.values.begin(), x.values.end(), y.values.begin(), y.values.end(), same);
}

}  // namespace

Versions::Versions(const Analysis& a) {
  for (size_t i = 0; i < a.n_instances(); ++i) {
    const InstanceSpec& spec = a.Facts(i).spec();
    if (spec.strategy != ShardingStrategy::kLayerWise) continue;
    const Published published(a, static_cast<int>(i), SPF_RESULT_PARAM);
    std::map<int32_t, const Assembled*> last;  // by key
    for (const auto& [call, tensors] : published.calls()) {
      for (const auto& [key, tensor] : tensors) {
        const Assembled*& before = last[key];
        const bool same = published.has_values() ? before != nullptr && Equal(*before, tensor)
                                                 : MayLeaveOut(spec);
        changed_[{static_cast<int32_t>(i), key}][call] = !same;
        before = &tensor;
      }
    }
    if (InitsLater(spec)) AddInitial(a.Facts(i), static_cast<int32_t>(i));
  }
}

// create publishes no values, and yet a new engine has others than the one before it.
void Versions::AddInitial(const InstanceFacts& facts, int32_t instance) {
  for (size_t call = 0; call < facts.calls().size(); ++call) {
    if (facts.calls()[call].letter != 'c') continue;
    for (int32_t key = 0; key < facts.n_keys(); ++key)
      changed_[{instance, key}][static_cast<int32_t>(call)] = true;
  }
}

bool Versions::Unchanged(int32_t instance, int32_t key, int32_t call) const {
  const auto of = changed_.find({instance, key});
  if (of == changed_.end()) return false;
  const auto at = of->second.find(call);
  return at != of->second.end() && !at->second;
}

bool Versions::Same(int32_t instance, int32_t key, int32_t from, int32_t to) const {
  if (from == to) return true;
  const auto of = changed_.find({instance, key});
  if (from > to || of == changed_.end() || !of->second.contains(from)) return false;
  return std::none_of(of->second.upper_bound(from), of->second.upper_bound(to),
                      [](const auto& call) { return call.second; });
}

}  // namespace shardproof::layer_wise
