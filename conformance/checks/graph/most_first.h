// most_first.h: which of them is the odd one?
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace shardproof::graph {

template <typename Thing>
using ByValue = std::vector<std::pair<int64_t, std::vector<const Thing*>>>;

// Things by a value of theirs: the value that most have stands first, then by first appearance.
template <typename Thing, typename ValueOf>
ByValue<Thing> MostFirst(const std::vector<const Thing*>& things, const ValueOf& value_of) {
  ByValue<Thing> by_value;
  for (const Thing* thing : things) {
    const int64_t value = value_of(*thing);
    auto at = std::find_if(by_value.begin(), by_value.end(),
                           [&](const auto& one) { return one.first == value; });
    if (at == by_value.end()) at = by_value.insert(at, {value, {}});
    at->second.push_back(thing);
  }
  std::stable_sort(by_value.begin(), by_value.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  return by_value;
}

}  // namespace shardproof::graph
