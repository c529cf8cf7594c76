#include "conformance/cases/covering.h"

#include <algorithm>
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

// A row under construction: the values fixed so far, and the tuples of each relation that agree
// with them.
class PartialRow {
 public:
  explicit PartialRow(const CoveringProblem& problem)
      : problem_(&problem),
        row_(problem.factors.size(), -1),
        place_(problem.factors.size()),
        agreeing_(problem.relations.size()),
        all_(problem.relations.size(), true) {
    for (size_t r = 0; r < problem.relations.size(); ++r) {
      const std::vector<int>& factors = problem.relations[r].factors;
      for (size_t column = 0; column < factors.size(); ++column) {
        place_[static_cast<size_t>(factors[column])] = {static_cast<int>(r), column};
      }
    }
  }

  const CoveringRow& row() const { return row_; }
  const std::vector<int>& fixed() const { return fixed_; }

  // Values of the factor that some allowed row has together with what is fixed.
  std::vector<int> Feasible(int factor) const {
    const size_t size = problem_->factors[static_cast<size_t>(factor)].values.size();
    const Place& place = place_[static_cast<size_t>(factor)];
    std::vector<bool> seen(size, place.relation < 0);
    if (place.relation >= 0) {
      ForEachAgreeing(place.relation,
                      [&](const std::vector<uint8_t>& tuple) { seen[tuple[place.column]] = true; });
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
    const Place& place = place_[static_cast<size_t>(factor)];
    if (place.relation < 0) return;
    std::vector<const std::vector<uint8_t>*> left;
    ForEachAgreeing(place.relation, [&](const std::vector<uint8_t>& tuple) {
      if (tuple[place.column] == value) left.push_back(&tuple);
    });
    agreeing_[static_cast<size_t>(place.relation)] = std::move(left);
    all_[static_cast<size_t>(place.relation)] = false;
  }

 private:
  struct Place {
    int relation = -1;
    size_t column = 0;
  };

  template <typename Visit>
  void ForEachAgreeing(int relation, Visit visit) const {
    const auto r = static_cast<size_t>(relation);
    if (all_[r]) {
      for (const std::vector<uint8_t>& tuple : problem_->relations[r].tuples) visit(tuple);
    } else {
      for (const std::vector<uint8_t>* tuple : agreeing_[r]) visit(*tuple);
    }
  }

  const CoveringProblem* problem_;
  CoveringRow row_;
  std::vector<int> fixed_;
  std::vector<Place> place_;
  std::vector<std::vector<const std::vector<uint8_t>*>> agreeing_;
  std::vector<bool> all_;  // nothing fixed yet: every tuple agrees
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
  Random random(options.seed);
  std::vector<CoveringRow> rows;
  while (table.open() > 0) {
    CoveringRow best;
    int64_t best_closed = -1;
    for (int candidate = 0; candidate < options.candidates; ++candidate) {
      PartialRow partial(problem);
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
  return count;
}

CoveringRow RandomRow(const CoveringProblem& problem, uint64_t seed) {
  Random random(seed);
  PartialRow partial(problem);
  for (const Relation& relation : problem.relations) {
    const std::vector<uint8_t>& tuple = relation.tuples[Below(random, relation.tuples.size())];
    for (size_t i = 0; i < tuple.size(); ++i) partial.Fix(relation.factors[i], tuple[i]);
  }
  for (size_t factor = 0; factor < problem.factors.size(); ++factor) {
    if (partial.row()[factor] >= 0) continue;
    partial.Fix(static_cast<int>(factor),
                static_cast<int>(Below(random, problem.factors[factor].values.size())));
  }
  return partial.row();
}

bool Allowed(const CoveringProblem& problem, const CoveringRow& row) {
  PartialRow partial(problem);
  for (size_t factor = 0; factor < row.size(); ++factor) {
    const std::vector<int> feasible = partial.Feasible(static_cast<int>(factor));
    if (std::find(feasible.begin(), feasible.end(), row[factor]) == feasible.end()) return false;
    partial.Fix(static_cast<int>(factor), row[factor]);
  }
  return true;
}

}  // namespace shardproof
