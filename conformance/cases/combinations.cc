#include "conformance/cases/combinations.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

namespace shardproof {
namespace {

// Which values of a few factors occur together in the relations: one table for each subset of a
// relation's factors that somebody wants, all filled in one pass over its tuples.
class Projections {
 public:
  // Factors of one relation; occurs: by the values of all of them, the last the fastest.
  struct Table {
    std::vector<int> factors;
    std::vector<uint8_t> occurs;
  };
  // One that restricts a combination, and where the combination has its factors.
  struct Part {
    const Table* table = nullptr;
    std::vector<size_t> places;
  };

  explicit Projections(const CoveringProblem& problem)
      : problem_(problem),
        relation_(problem.factors.size(), -1),
        tables_(problem.relations.size()) {
    for (size_t r = 0; r < problem.relations.size(); ++r) {
      for (int factor : problem.relations[r].factors)
        relation_[static_cast<size_t>(factor)] = static_cast<int>(r);
    }
  }

  void Want(const std::vector<int>& factors) {
    for (const auto& [relation, places] : PlacesIn(factors)) {
      Table table;
      for (const size_t place : places) table.factors.push_back(factors[place]);
      tables_[relation].emplace(table.factors, table);
    }
  }

  void Fill() {
    for (size_t r = 0; r < tables_.size(); ++r) {
      std::vector<Filler> fillers;
      for (auto& [factors, table] : tables_[r]) fillers.push_back(FillerOf(r, &table));
      for (const Tuple tuple : problem_.relations[r].tuples) {
        for (const Filler& f : fillers) {
          size_t index = 0;
          for (size_t i = 0; i < 3; ++i) index += f.stride[i] * tuple[f.column[i]];
          f.occurs[index] = 1;
        }
      }
    }
  }

  std::vector<Part> Of(const std::vector<int>& factors) const {
    std::vector<Part> parts;
    for (const auto& [relation, places] : PlacesIn(factors)) {
      std::vector<int> key;
      for (const size_t place : places) key.push_back(factors[place]);
      parts.push_back({&tables_[relation].at(key), places});
    }
    return parts;
  }

  bool Possible(const std::vector<Part>& parts, const std::vector<int>& values) const {
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      size_t index = 0;
      for (size_t i = 0; i < part.places.size(); ++i)
        index =
            index * SizeOf(part.table->factors[i]) + static_cast<size_t>(values[part.places[i]]);
      return part.table->occurs[index] != 0;
    });
  }

 private:
  // Of at most three factors. A relation has many tuples: nothing is looked up for each.
  struct Filler {
    size_t column[3] = {}, stride[3] = {};
    uint8_t* occurs = nullptr;
  };

  Filler FillerOf(size_t relation, Table* table) const {
    const std::vector<int>& columns = problem_.relations[relation].factors;
    Filler filler;
    size_t stride = 1;
    for (size_t i = table->factors.size(); i-- > 0; stride *= SizeOf(table->factors[i])) {
      const auto column = std::find(columns.begin(), columns.end(), table->factors[i]);
      filler.column[i] = static_cast<size_t>(column - columns.begin());
      filler.stride[i] = stride;
    }
    table->occurs.assign(stride, 0);
    filler.occurs = table->occurs.data();
    return filler;
  }
  size_t SizeOf(int factor) const {
    return problem_.factors[static_cast<size_t>(factor)].values.size();
  }
  std::map<size_t, std::vector<size_t>> PlacesIn(const std::vector<int>& factors) const {
    std::map<size_t, std::vector<size_t>> places;
    for (size_t i = 0; i < factors.size(); ++i) {
      const int relation = relation_[static_cast<size_t>(factors[i])];
      if (relation >= 0) places[static_cast<size_t>(relation)].push_back(i);
    }
    return places;
  }

  const CoveringProblem& problem_;
  std::vector<int> relation_;                              // by factor, -1: none
  std::vector<std::map<std::vector<int>, Table>> tables_;  // by relation
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
  for (const FactorSet& set : sets_) projections.Want(At(set.base).factors);
  projections.Fill();
  for (size_t set = 0; set < sets_.size(); ++set) {
    const std::vector<Projections::Part> parts = projections.Of(At(sets_[set].base).factors);
    const size_t end = set + 1 < sets_.size() ? sets_[set + 1].base : state_.size();
    for (size_t index = sets_[set].base; index < end; ++index) {
      if (!projections.Possible(parts, At(index).values)) continue;
      state_[index] = kOpen;
      ++possible_;
    }
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
