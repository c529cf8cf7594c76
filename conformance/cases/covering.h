// covering.h: how few rows try every combination of t values together?
//
// A covering array of strength t: for each t factors, each combination of their values that the
// relations allow occurs in some row. Which combinations are possible is exact: relations are
// explicit lists of allowed tuples over disjoint sets of factors, and a combination is possible iff
// its part in each relation occurs there.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "conformance/cases/tuple_list.h"

namespace shardproof {

struct Factor {
  std::string name;
  std::vector<std::string> values;
};

// Only these tuples of values are allowed together. tuples[i][j] belongs to factors[j].
struct Relation {
  std::vector<int> factors;
  TupleList tuples;
};

struct CoveringProblem {
  std::vector<Factor> factors;
  std::vector<Relation> relations;  // over disjoint sets of factors
};

// One value index per factor; -1: a value that the factor does not list.
using CoveringRow = std::vector<int>;

struct CoveringOptions {
  int strength = 2;
  uint64_t seed = 1;
  std::vector<int> focus;  // only combinations of these factors are covered; empty: all. Others
                           // take random values
  int candidates = 10;     // rows built for each row kept
  // Not empty: rows differ from this one in at most `most_changes` factors, but for what the
  // relations and the combination that a row is built around ask for; ties go to its values. -1:
  // no value of the factor is preferred.
  CoveringRow base = {};
  int most_changes = std::numeric_limits<int>::max();
  // Rows that there are anyway: what they cover need not be covered again.
  std::vector<CoveringRow> given = {};
};

// Rows, each allowed by all relations, that cover every possible combination; deterministic in
// problem and options. Greedy: each row is built around a combination that is still open, factor by
// factor, taking the value that closes the most open combinations, and is the best of several
// candidates.
std::vector<CoveringRow> CoveringArray(const CoveringProblem& problem,
                                       const CoveringOptions& options);

struct CoverageCount {
  int strength = 2;
  int64_t covered = 0, possible = 0, impossible = 0;
  // Ten of them, "world=3 order=dp-tp"; then, if there are others, "and 12 more".
  std::vector<std::string> missing;
};

CoverageCount CountCoverage(const CoveringProblem& problem, const std::vector<CoveringRow>& rows,
                            int strength);

// One row drawn at random that all relations allow. Of a relation, factor after factor in an order
// that is drawn too, each value that is still allowed is as likely as the next: one that few tuples
// have is not rare.
CoveringRow RandomRow(const CoveringProblem& problem, uint64_t seed);
// Whether all relations allow the row (every value known).
bool Allowed(const CoveringProblem& problem, const CoveringRow& row);

}  // namespace shardproof
