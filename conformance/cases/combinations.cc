#include "conformance/cases/combinations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

namespace shardproof {
namespace {

// Which value tuples of a few factors occur in their relations: one bit vector per subset of one
// relation, memorised.
class Projections {
 public:
  explicit Projections(const CoveringProblem& problem)
      : problem_(problem), relation_(problem.factors.size(), -1) {
    for (size_t r = 0; r < problem.relations.size(); ++r) {
      for (int factor : problem.relations[r].factors)
        relation_[static_cast<size_t>(factor)] = static_cast<int>(r);
    }
  }

  bool Possible(const Combination& combination) {
    std::map<int, Combination> parts;
    for (size_t i = 0; i < combination.factors.size(); ++i) {
      const int relation = relation_[static_cast<size_t>(combination.factors[i])];
      if (relation < 0) continue;
      parts[relation].factors.push_back(combination.factors[i]);
      parts[relation].values.push_back(combination.values[i]);
    }
    for (const auto& [relation, part] : parts) {
      if (!Of(relation, part.factors)[Mixed(part.factors, part.values)]) return false;
    }
    return true;
  }

 private:
  size_t Mixed(const std::vector<int>& factors, const std::vector<int>& values) const {
    size_t index = 0;
    for (size_t i = 0; i < factors.size(); ++i) {
      index = index * problem_.factors[static_cast<size_t>(factors[i])].values.size() +
              static_cast<size_t>(values[i]);
    }
    return index;
  }

  const std::vector<bool>& Of(int relation_index, const std::vector<int>& factors) {
    std::vector<bool>& bits = known_[factors];
    if (!bits.empty()) return bits;
    size_t size = 1;
    for (int factor : factors) size *= problem_.factors[static_cast<size_t>(factor)].values.size();
    bits.assign(size, false);
    const Relation& relation = problem_.relations[static_cast<size_t>(relation_index)];
    std::vector<size_t> columns;
    for (int factor : factors) {
      columns.push_back(
          static_cast<size_t>(std::find(relation.factors.begin(), relation.factors.end(), factor) -
                              relation.factors.begin()));
    }
    std::vector<int> values(factors.size());
    for (const std::vector<uint8_t>& tuple : relation.tuples) {
      for (size_t i = 0; i < columns.size(); ++i) values[i] = tuple[columns[i]];
      bits[Mixed(factors, values)] = true;
    }
    return bits;
  }

  const CoveringProblem& problem_;
  std::vector<int> relation_;  // by factor, -1: none
  std::map<std::vector<int>, std::vector<bool>> known_;
};

}  // namespace

CombinationTable::CombinationTable(const CoveringProblem& problem, int strength,
                                   std::vector<int> focus)
    : strength_(strength) {
  if (strength != 2 && strength != 3) throw std::invalid_argument("covering strength is 2 or 3");
  for (const Factor& factor : problem.factors) sizes_.push_back(factor.values.size());
  if (focus.empty()) {
    focus.resize(sizes_.size());
    std::iota(focus.begin(), focus.end(), 0);
  }
  std::sort(focus.begin(), focus.end());
  AddSets(focus);
  MarkPossible(problem);
}

void CombinationTable::AddSets(const std::vector<int>& focus) {
  const size_t n = sizes_.size();
  set_of_.assign(n * n * (n + 1), -1);
  size_t base = 0;
  const auto add = [&](int a, int b, int c) {
    set_of_[SetOf(a, b, c)] = static_cast<int32_t>(sets_.size());
    sets_.push_back({a, b, c, base});
    base += sizes_[static_cast<size_t>(a)] * sizes_[static_cast<size_t>(b)] *
            (c < 0 ? 1 : sizes_[static_cast<size_t>(c)]);
  };
  for (size_t i = 0; i < focus.size(); ++i) {
    for (size_t j = i + 1; j < focus.size(); ++j) {
      if (strength_ == 2) add(focus[i], focus[j], -1);
      for (size_t k = j + 1; strength_ == 3 && k < focus.size(); ++k)
        add(focus[i], focus[j], focus[k]);
    }
  }
  state_.assign(base, kImpossible);
}

void CombinationTable::MarkPossible(const CoveringProblem& problem) {
  Projections projections(problem);
  for (size_t index = 0; index < state_.size(); ++index) {
    if (!projections.Possible(At(index))) continue;
    state_[index] = kOpen;
    ++possible_;
  }
  open_ = possible_;
}

size_t CombinationTable::SetOf(int a, int b, int c) const {
  const size_t n = sizes_.size();
  return (static_cast<size_t>(a) * n + static_cast<size_t>(b)) * (n + 1) +
         static_cast<size_t>(c + 1);
}

size_t CombinationTable::Index(int a, int b, int c, const CoveringRow& row) const {
  const int32_t set = set_of_[SetOf(a, b, c)];
  if (set < 0) return state_.size();
  const auto value = [&row](int factor) {
    return static_cast<size_t>(row[static_cast<size_t>(factor)]);
  };
  size_t index = value(a) * sizes_[static_cast<size_t>(b)] + value(b);
  if (c >= 0) index = index * sizes_[static_cast<size_t>(c)] + value(c);
  return sets_[static_cast<size_t>(set)].base + index;
}

bool CombinationTable::Known(size_t set, const CoveringRow& row) const {
  const FactorSet& factors = sets_[set];
  return row[static_cast<size_t>(factors.a)] >= 0 && row[static_cast<size_t>(factors.b)] >= 0 &&
         (factors.c < 0 || row[static_cast<size_t>(factors.c)] >= 0);
}

int64_t CombinationTable::Closes(const CoveringRow& row) const {
  int64_t closes = 0;
  for (size_t set = 0; set < sets_.size(); ++set) {
    if (Known(set, row) && state_[Index(sets_[set].a, sets_[set].b, sets_[set].c, row)] == kOpen)
      ++closes;
  }
  return closes;
}

int64_t CombinationTable::Cover(const CoveringRow& row) {
  const int64_t closed = Closes(row);
  for (size_t set = 0; set < sets_.size(); ++set) {
    if (!Known(set, row)) continue;
    uint8_t& state = state_[Index(sets_[set].a, sets_[set].b, sets_[set].c, row)];
    if (state == kOpen) state = kCovered;
  }
  open_ -= closed;
  return closed;
}

int64_t CombinationTable::Gain(const CoveringRow& row, const std::vector<int>& fixed, int factor,
                               int value) const {
  CoveringRow with = row;
  with[static_cast<size_t>(factor)] = value;
  int64_t gain = 0;
  const auto count = [&](int a, int b, int c) {
    const size_t index = Index(a, b, c, with);
    if (index < state_.size() && state_[index] == kOpen) ++gain;
  };
  for (size_t i = 0; i < fixed.size(); ++i) {
    const int a = std::min(fixed[i], factor), b = std::max(fixed[i], factor);
    if (strength_ == 2) {
      count(a, b, -1);
      continue;
    }
    for (size_t j = i + 1; j < fixed.size(); ++j) {
      const int c = fixed[j];
      count(std::min(a, c), c < a ? a : std::min(b, c), std::max(b, c));
    }
  }
  return gain;
}

Combination CombinationTable::At(size_t index) const {
  const auto after =
      std::upper_bound(sets_.begin(), sets_.end(), index,
                       [](size_t at, const FactorSet& set) { return at < set.base; });
  const FactorSet& set = *(after - 1);
  size_t rest = index - set.base;
  Combination combination{{set.a, set.b}, {0, 0}};
  if (set.c >= 0) {
    combination.factors.push_back(set.c);
    combination.values.push_back(0);
  }
  for (size_t i = combination.factors.size(); i-- > 0;) {
    const size_t size = sizes_[static_cast<size_t>(combination.factors[i])];
    combination.values[i] = static_cast<int>(rest % size);
    rest /= size;
  }
  return combination;
}

Combination CombinationTable::OpenFrom(uint64_t position) const {
  const auto start = state_.begin() + static_cast<std::ptrdiff_t>(position % state_.size());
  auto at = std::find(start, state_.end(), kOpen);
  if (at == state_.end()) at = std::find(state_.begin(), start, kOpen);
  return At(static_cast<size_t>(at - state_.begin()));
}

std::vector<Combination> CombinationTable::OpenOnes(size_t limit) const {
  std::vector<Combination> open;
  for (size_t index = 0; index < state_.size() && open.size() < limit; ++index) {
    if (state_[index] == kOpen) open.push_back(At(index));
  }
  return open;
}

}  // namespace shardproof
