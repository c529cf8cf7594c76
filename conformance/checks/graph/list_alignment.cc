#include "conformance/checks/graph/list_alignment.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardproof::graph {

namespace {

// By the suffixes from (i, j) on: the fewest that are left out, and in how many ways.
class Suffixes {
 public:
  Suffixes(const List& a, const List& b)
      : a_(a), b_(b), n_(a.operations.size()), m_(b.operations.size()) {
    cost_.resize((n_ + 1) * (m_ + 1));
    ways_.resize(cost_.size());
    for (size_t i = n_ + 1; i-- > 0;) {
      for (size_t j = m_ + 1; j-- > 0;) Fill(i, j);
    }
  }

  Alignment Best() const {
    Alignment best;
    best.unique = ways_[0] == 1;
    size_t i = 0, j = 0;
    while (!AtEnd(i, j)) {
      if (Match(i, j)) {
        ++i, ++j;
      } else if (i < n_ && (j == m_ || Cost(i + 1, j) <= Cost(i, j + 1))) {
        best.only_a.push_back(i++);
      } else {
        best.only_b.push_back(j++);
      }
    }
    best.end_a = i;
    best.end_b = j;
    return best;
  }

 private:
  bool AtEnd(size_t i, size_t j) const {
    return (i == n_ && (j == m_ || a_.open)) || (j == m_ && b_.open);
  }
  bool Match(size_t i, size_t j) const {
    return i < n_ && j < m_ && a_.operations[i] == b_.operations[j];
  }
  size_t At(size_t i, size_t j) const { return i * (m_ + 1) + j; }
  uint32_t Cost(size_t i, size_t j) const { return cost_[At(i, j)]; }

  // A way is a set of operations that are left out: what leaves out both a[i] and b[j] is counted
  // once. Modulo 2^64.
  void Fill(size_t i, size_t j) {
    uint32_t& cost = cost_[At(i, j)];
    uint64_t& ways = ways_[At(i, j)];
    if (AtEnd(i, j)) {
      ways = 1;
      return;
    }
    cost = UINT32_MAX;
    if (Match(i, j)) cost = Cost(i + 1, j + 1);
    if (i < n_) cost = std::min(cost, Cost(i + 1, j) + 1);
    if (j < m_) cost = std::min(cost, Cost(i, j + 1) + 1);
    if (Match(i, j) && cost == Cost(i + 1, j + 1)) ways += ways_[At(i + 1, j + 1)];
    if (i < n_ && cost == Cost(i + 1, j) + 1) ways += ways_[At(i + 1, j)];
    if (j < m_ && cost == Cost(i, j + 1) + 1) ways += ways_[At(i, j + 1)];
    if (i < n_ && j < m_ && cost == Cost(i + 1, j + 1) + 2) ways -= ways_[At(i + 1, j + 1)];
  }

  const List &a_, &b_;
  const size_t n_, m_;
  std::vector<uint32_t> cost_;
  std::vector<uint64_t> ways_;
};

}  // namespace

Alignment Align(const List& a, const List& b) { return Suffixes(a, b).Best(); }

size_t Reordered(const List& a, const List& b, size_t first, bool all) {
  std::map<std::pair<uint64_t, uint64_t>, int64_t> surplus;  // of a, where it is not 0
  const auto add = [&](const Signature& operation, int64_t n) {
    const auto at = surplus.try_emplace({operation.shape, operation.counts}, 0).first;
    at->second += n;
    if (at->second == 0) surplus.erase(at);
  };
  const size_t end = std::min(a.operations.size(), b.operations.size());
  for (size_t i = first; i < end; ++i) {
    add(a.operations[i], 1);
    add(b.operations[i], -1);
    if (surplus.empty() && (!all || i + 1 == end)) return i + 1 - first;
  }
  return 0;
}

}  // namespace shardproof::graph
