#include "reference/groups/hybrid.h"

namespace reference {

HybridSplit SplitHybrid(const RankLists& lists, int32_t n, const std::string& what) {
  HybridSplit split;
  for (const RankList& list : lists) {
    if (n < 1 || list.size() % static_cast<size_t>(n) != 0) {
      throw GridError("num_optimizer_instances = " + std::to_string(n) + " does not divide the " +
                      std::to_string(list.size()) + " ranks of " + what);
    }
    const size_t inner_size = list.size() / static_cast<size_t>(n);
    for (size_t begin = 0; begin < list.size(); begin += inner_size) {
      split.inner.emplace_back(list.begin() + static_cast<std::ptrdiff_t>(begin),
                               list.begin() + static_cast<std::ptrdiff_t>(begin + inner_size));
    }
    for (size_t position = 0; position < inner_size; ++position) {
      RankList& outer = split.outer.emplace_back();
      for (size_t at = position; at < list.size(); at += inner_size) outer.push_back(list[at]);
    }
  }
  return split;
}

RankLists SplitForBackward(const RankLists& lists, int32_t n, const std::string& what) {
  RankLists parts;
  for (const RankList& list : lists) {
    const auto size = static_cast<int32_t>(list.size());
    if (n >= size || size % n != 0) {
      throw GridError("reshard_after_forward = " + std::to_string(n) + " must divide the " +
                      std::to_string(size) + " ranks of " + what + ", and be less");
    }
    RankLists runs = SplitHybrid({list}, size / n, what).inner;
    parts.insert(parts.end(), runs.begin(), runs.end());
  }
  return parts;
}

}  // namespace reference
