// combinations.h: which combinations of t values are there, which are possible, and which are still
// open?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/cases/covering.h"

namespace shardproof {

// A combination: factors in ascending order, and one value for each.
struct Combination {
  std::vector<int> factors;
  std::vector<int> values;
};

// A dense table over all combinations of a strength. Each is impossible, open or covered.
class CombinationTable {
 public:
  // Only combinations of the focus factors; empty: of all.
  CombinationTable(const CoveringProblem& problem, int strength, std::vector<int> focus);

  int64_t possible() const { return possible_; }
  int64_t impossible() const { return static_cast<int64_t>(state_.size()) - possible_; }
  int64_t open() const { return open_; }

  // Marks what the row covers; answers how many were open. Factors with value -1 cover nothing, nor
  // do combinations that the relations exclude.
  int64_t Cover(const CoveringRow& row);
  // How many open combinations the row would close.
  int64_t Closes(const CoveringRow& row) const;
  // How many open combinations would be closed by giving `factor` this value, given the factors
  // that are fixed.
  int64_t Gain(const CoveringRow& row, const std::vector<int>& fixed, int factor, int value) const;

  // The first open combination at or after a position, wrapping around. REQUIRES: open() > 0.
  Combination OpenFrom(uint64_t position) const;
  std::vector<Combination> OpenOnes(size_t limit) const;

 private:
  enum State : uint8_t { kImpossible, kOpen, kCovered };

  bool Known(size_t set, const CoveringRow& row) const;
  size_t SetOf(int a, int b, int c) const;  // index of a set of factors; c = -1 for pairs
  size_t Index(int a, int b, int c, const CoveringRow& row) const;
  void AddSets(const std::vector<int>& focus);
  void MarkPossible(const CoveringProblem& problem);
  Combination At(size_t index) const;

  struct FactorSet {
    int a = 0, b = 0, c = -1;
    size_t base = 0;
  };

  int strength_;
  std::vector<size_t> sizes_;    // values by factor
  std::vector<FactorSet> sets_;  // ascending base
  std::vector<int32_t> set_of_;  // by (a * n + b) * (n + 1) + c + 1; -1: not in focus
  std::vector<uint8_t> state_;
  int64_t possible_ = 0, open_ = 0;
};

}  // namespace shardproof
