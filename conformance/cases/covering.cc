#include "conformance/cases/covering.h"

#include <algorithm>
#include <bitset>
#include <numeric>
#include <random>
#include <stdexcept>

#include "conformance/cases/combinations.h"

namespace shardproof {
namespace {

using Random =
    std::mt19937_64;  // its sequence is the same everywhere; the distributions of <random> are not

size_t Below(Random& random, size_t n) { return static_cast<size_t>(random() % n); }

void Shuffle(Random& random, std::vector<int>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(random, i)]);
}

// Tuples of a relation, in their order: where the values of each begin.
using Tuples = std::vector<const uint8_t*>;

// For each factor and value the tuples of the factor's relation that have it; none without one.
class TupleIndex {
 public:
  // The problem outlives it.
  explicit TupleIndex(const CoveringProblem& problem) : places_(problem.factors.size()) {
    for (size_t r = 0; r < problem.relations.size(); ++r) {
      const Relation& relation = problem.relations[r];
      for (size_t column = 0; column < relation.factors.size(); ++column) {
        const auto factor = static_cast<size_t>(relation.factors[column]);
        Place& place = places_[factor];
        place.relation = static_cast<int>(r);
        place.column = column;
        place.with.resize(problem.factors[factor].values.size());
        for (const Tuple tuple : relation.tuples) place.with[tuple[column]].push_back(tuple.data());
      }
    }
  }

  struct Place {
    int relation = -1;
    size_t column = 0;
    std::vector<Tuples> with;  // by value
  };
  const Place& Of(int factor) const { return places_[static_cast<size_t>(factor)]; }

 private:
  std::vector<Place> places_;
};

// A row under construction: the values fixed so far, and the tuples of each relation that agree
// with them.
class PartialRow {
 public:
  // Both outlive it.
  PartialRow(const CoveringProblem& problem, const TupleIndex& index)
      : problem_(&problem),
        index_(&index),
        row_(problem.factors.size(), -1),
        agreeing_(problem.relations.size()),
        all_(problem.relations.size(), true) {}

  const CoveringRow& row() const { return row_; }
  const std::vector<int>& fixed() const { return fixed_; }

  // Values of the factor that some allowed row has together with what is fixed.
  std::vector<int> Feasible(int factor) const {
    const size_t size = problem_->factors[static_cast<size_t>(factor)].values.size();
    const TupleIndex::Place& place = index_->Of(factor);
    std::vector<bool> seen(size, place.relation < 0);
    const auto relation = static_cast<size_t>(place.relation);
    if (place.relation >= 0 && all_[relation]) {
      for (size_t value = 0; value < size; ++value) seen[value] = !place.with[value].empty();
    } else if (place.relation >= 0) {
      for (const uint8_t* tuple : agreeing_[relation]) seen[tuple[place.column]] = true;
    }
    std::vector<int> values;
    for (size_t value = 0; value < size; ++value) {
      if (seen[value]) values.push_back(static_cast<int>(value));
    }
    return values;
  }

  void Fix(int factor, int value) {
    row_[static_cast<size_t>(factor)] = value;
    fixed_.push_back(factor);
    const TupleIndex::Place& place = index_->Of(factor);
    if (place.relation < 0) return;
    const auto relation = static_cast<size_t>(place.relation);
    Tuples& left = agreeing_[relation];
    if (all_[relation]) {
      left = place.with[static_cast<size_t>(value)];
      all_[relation] = false;
    } else {
      std::erase_if(left, [&](const uint8_t* tuple) { return tuple[place.column] != value; });
    }
  }

 private:
  const CoveringProblem* problem_;
  const TupleIndex* index_;
  CoveringRow row_;
  std::vector<int> fixed_;
  std::vector<Tuples> agreeing_;  // by relation, where something of it is fixed
  std::vector<bool> all_;         // nothing fixed yet: every tuple agrees
};

// How many of the fixed factors have another value than the base.
int Changes(const PartialRow& partial, const CoveringRow& base) {
  int changes = 0;
  for (const int factor : partial.fixed())
    changes += partial.row()[static_cast<size_t>(factor)] != base[static_cast<size_t>(factor)];
  return changes;
}

// The values among which a factor's is drawn: those that close the most, or the base's alone.
std::vector<int> Best(const CombinationTable& table, const CoveringOptions& options,
                      const PartialRow& partial, int factor) {
  const std::vector<int> feasible = partial.Feasible(factor);
  const int usual = options.base.empty() ? -1 : options.base[static_cast<size_t>(factor)];
  const bool may_be_usual = std::find(feasible.begin(), feasible.end(), usual) != feasible.end();
  if (may_be_usual && Changes(partial, options.base) >= options.most_changes) return {usual};
  int64_t best = -1;
  std::vector<int> ties;
  for (const int value : feasible) {
    const int64_t gain = table.Gain(partial.row(), partial.fixed(), factor, value);
    if (gain > best) ties.clear();
    best = std::max(best, gain);
    if (gain == best) ties.push_back(value);
  }
  if (std::find(ties.begin(), ties.end(), usual) != ties.end()) return {usual};
  return ties;
}

// Fixes the remaining factors in random order, each to the value that closes the most; ties fall at
// random.
void Complete(const CombinationTable& table, const CoveringOptions& options, Random& random,
              PartialRow& partial) {
  std::vector<int> rest;
  for (size_t factor = 0; factor < partial.row().size(); ++factor) {
    if (partial.row()[factor] < 0) rest.push_back(static_cast<int>(factor));
  }
  Shuffle(random, rest);
  for (int factor : rest) {
    const std::vector<int> values = Best(table, options, partial, factor);
    partial.Fix(factor, values[Below(random, values.size())]);
  }
}

}  // namespace

std::vector<CoveringRow> CoveringArray(const CoveringProblem& problem,
                                       const CoveringOptions& options) {
  CombinationTable table(problem, options.strength, options.focus);
  for (const CoveringRow& row : options.given) table.Cover(row);
  const TupleIndex index(problem);
  Random random(options.seed);
  std::vector<CoveringRow> rows;
  while (table.open() > 0) {
    CoveringRow best;
    int64_t best_closed = -1;
    for (int candidate = 0; candidate < options.candidates; ++candidate) {
      PartialRow partial(problem, index);
      const Combination start = table.OpenFrom(random());
      for (size_t i = 0; i < start.factors.size(); ++i)
        partial.Fix(start.factors[i], start.values[i]);
      Complete(table, options, random, partial);
      const int64_t closed = table.Closes(partial.row());
      if (closed <= best_closed) continue;
      best_closed = closed;
      best = partial.row();
    }
    table.Cover(best);
    rows.push_back(std::move(best));
  }
  return rows;
}

CoverageCount CountCoverage(const CoveringProblem& problem, const std::vector<CoveringRow>& rows,
                            int strength) {
  CombinationTable table(problem, strength, {});
  for (const CoveringRow& row : rows) table.Cover(row);
  CoverageCount count;
  count.strength = strength;
  count.possible = table.possible();
  count.impossible = table.impossible();
  count.covered = table.possible() - table.open();
  for (const Combination& combination : table.OpenOnes(10)) {
    std::string text;
    for (size_t i = 0; i < combination.factors.size(); ++i) {
      const Factor& factor = problem.factors[static_cast<size_t>(combination.factors[i])];
      text += (i == 0 ? "" : " ") + factor.name + "=" +
              factor.values[static_cast<size_t>(combination.values[i])];
    }
    count.missing.push_back(std::move(text));
  }
  if (const int64_t named = std::ssize(count.missing); table.open() > named)
    count.missing.push_back("and " + std::to_string(table.open() - named) + " more");
  return count;
}

namespace {

void DrawTuple(const Relation& relation, Random& random, CoveringRow* row) {
  Tuples left;
  left.reserve(relation.tuples.size());
  for (const Tuple tuple : relation.tuples) left.push_back(tuple.data());
  std::vector<int> places(relation.factors.size());
  std::iota(places.begin(), places.end(), 0);
  Shuffle(random, places);
  for (const int place : places) {
    std::bitset<256> seen;
    std::vector<uint8_t> values;
    for (const uint8_t* tuple : left) {
      if (!seen[tuple[place]]) values.push_back(tuple[place]);
      seen.set(tuple[place]);
    }
    const uint8_t value = values[Below(random, values.size())];
    std::erase_if(left, [&](const uint8_t* tuple) { return tuple[place] != value; });
    (*row)[static_cast<size_t>(relation.factors[static_cast<size_t>(place)])] = value;
  }
}

}  // namespace

CoveringRow RandomRow(const CoveringProblem& problem, uint64_t seed) {
  Random random(seed);
  CoveringRow row(problem.factors.size(), -1);
  for (const Relation& relation : problem.relations) DrawTuple(relation, random, &row);
  for (size_t factor = 0; factor < row.size(); ++factor) {
    if (row[factor] < 0)
      row[factor] = static_cast<int>(Below(random, problem.factors[factor].values.size()));
  }
  return row;
}

bool Allowed(const CoveringProblem& problem, const CoveringRow& row) {
  if (row.size() != problem.factors.size()) return false;
  for (size_t factor = 0; factor < row.size(); ++factor) {
    const size_t values = problem.factors[factor].values.size();
    if (row[factor] < 0 || static_cast<size_t>(row[factor]) >= values) return false;
  }
  return std::all_of(
      problem.relations.begin(), problem.relations.end(), [&](const Relation& relation) {
        return std::any_of(relation.tuples.begin(), relation.tuples.end(), [&](Tuple tuple) {
          for (size_t i = 0; i < tuple.size(); ++i)
            if (row[static_cast<size_t>(relation.factors[i])] != tuple[i]) return false;
          return true;
        });
      });
}

}  // namespace shardproof
