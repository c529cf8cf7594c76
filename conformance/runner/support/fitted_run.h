// fitted_run.h: how is an engine asked what it takes, and nothing that it is known to decline?
//
// For a library, core and full are every pair and every triple of what it takes
// (cases/support/fitted_profile.h), which is found out by asking it, or stands in a file
// (--supports). A value that stands in the file and is declined turns the run red. Random cases
// (--random) are drawn from what it takes; what fails is shrunk.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/support/random_cases.h"
#include "conformance/cases/support/supported.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"
#include "conformance/runner/support/shrink.h"

namespace shardproof {

// Whether its cases depend on the engine.
bool IsFitted(const Options& options);

inline constexpr size_t kMostShrunk = 5;

class FittedRun {
 public:
  // Asks the engine, or reads the file. ranks: of the largest world, 0: any. Throws
  // std::invalid_argument that says what is wrong with the file.
  FittedRun(const Options& options, int ranks);
  // What it takes is known, as Told() says it.
  FittedRun(const Options& options, int ranks, const std::string& told);
  FittedRun(const FittedRun&) = delete;  // spaces are referred to
  FittedRun& operator=(const FittedRun&) = delete;

  // All that another process needs to choose the same cases.
  std::string Told() const;
  // Before the run: which seeds are drawn; empty: none are.
  std::string Seeds() const;
  const Supported& supported() const { return supported_; }

  // Of the options' profile, or random ones.
  std::vector<Case> Cases();
  // The case at this place among them has ended.
  void CaseDone(size_t place, const Case& c, const CaseReport& report);
  // Of random cases: for each cause of a failure, at most kMostShrunk, the smallest case with it.
  // batch: how many cases are judged at once.
  std::vector<CaseReport> ShrinkFailures(const JudgeCases& judge, size_t batch);
  // At the end: what it takes, coverage of what was judged, and what it declined against the file.
  void Conclude(RunReport* report) const;

 private:
  std::vector<Case> RandomCases();

  const Options options_;
  Spaces kept_;
  const std::vector<CaseFactors> spaces_;
  Supported supported_;
  std::string how_;  // "told by FILE", "asked in 312 cases"
  size_t not_asked_ = 0;
  std::string chosen_;  // of the cases, in words
  std::vector<Case> judged_;
  int declined_ = 0;  // cases that fit
  std::string declined_first_;
  std::vector<DrawFrom> from_;  // of random cases
  std::vector<DrawnCase> drawn_;
  struct Failure {
    size_t drawn = 0;
    size_t length = 0;  // of its id
    CaseReport report;
  };
  std::map<std::string, std::vector<Failure>> failures_;  // by cause
  std::vector<std::string> shrunk_;                       // what is said of it
};

}  // namespace shardproof
