// failures.h: what does an engine break in a whole run, and which case shows it with least?
//
// One mistake fails many cases. They are told once for each requirement that is the cause in some
// case (folded.h), with the case that has the fewest features.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "conformance/report/folded.h"
#include "conformance/report/report.h"

namespace shardproof {

struct Failure {
  std::string breaks;         // "GE-05", or "" where the suite failed or no finding says why
  std::vector<size_t> cases;  // places in the report, the one that shows it with least first
  const CaseReport* smallest = nullptr;
  ToldFinding told;  // of the smallest; its row is nullptr if `breaks` is empty
  size_t order = 0;  // of that one among those of the smallest: causes come first
};

// Those of most cases first, of as many in the order of causes. They refer to `report`, which
// outlives them. Warnings are none.
std::vector<Failure> FailuresOf(const RunReport& report);

// Whether case `a` is told rather than case `b`: it has fewer features (tokens of the id), or as
// many in a shorter id.
bool IsSmaller(const std::string& a, const std::string& b);

// Of its smallest case: where, operation, what was expected and seen, in one line.
std::string InOneLine(const Failure& failure);

// For the end of a run: the failures, each with its smallest case, a line that says what is wrong
// there, the command that shows it, and the one that makes the case smaller; at most so many. None
// if no case failed.
struct FailureLine {
  enum class Kind { kText, kName, kCommand };
  Kind kind = Kind::kText;
  std::string text;
};
std::vector<FailureLine> FailureLines(const RunReport& report, size_t most);

// A case that did not pass and that none of the first `most` failures is told with.
struct AlikeCase {
  const CaseReport* report = nullptr;
  std::string as;  // the smallest case of its first failure; empty if that is not told either
};
// In the order of the failures. They refer to `report`, which outlives them.
std::vector<AlikeCase> AlikeCases(const RunReport& report, size_t most);

}  // namespace shardproof
