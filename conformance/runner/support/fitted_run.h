// fitted_run.h: how is an engine asked what it takes, and nothing that it is known to decline?
//
// For a library, core and full are every pair and every triple of what it takes
// (cases/support/fitted_profile.h), which is found out by asking it, or stands in a file
// (--supports). Random cases (--random) are drawn from what it takes; what fails is shrunk.
//
// What no case has judged in the end, since the engine declined each with it, is asked again in the
// plainest case: a value that is declined there too, though the file names it or the engine has
// taken it before, turns the run red. Combinations that it declines are told.
#pragma once
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/cases/support/random_cases.h"
#include "conformance/cases/support/still_open.h"
#include "conformance/cases/support/supported.h"
#include "conformance/report/report.h"
#include "conformance/runner/options.h"
#include "conformance/runner/support/shrink.h"

namespace shardproof {

// Whether the profile has a list of its own, and covers no pairs: cases that save under one
// configuration and load under another, whose saves are killed, or that have no memory.
bool HasOwnList(const Options& options);

// Whether its cases depend on the engine.
bool IsFitted(const Options& options);

// Whether it is found out by asking the engine, which takes some seconds.
bool WillAsk(const Options& options);
inline constexpr const char* kAsking = "asking the engine which values of which knobs it takes\n";

// RunReport::cut_short of a run that ended before AskOn.
inline constexpr const char* kNotAskedOn =
    "what was still open when the time was over was not asked";

// Whether a run goes on with AskOn. Random cases that failed are shrunk when enough have failed,
// too, but not when the time is over.
bool AsksOn(const Options& options, bool enough, bool out_of_time);

inline constexpr size_t kMostShrunk = 5;

// As judge does of those cases that the fabric can run; the others are declined.
std::vector<CaseReport> JudgeRunnable(const JudgeCases& judge, const std::vector<Case>& cases,
                                      const IsLast& last, const Options& options);

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

  // Of the options' profile, or random ones and some that must be refused.
  std::vector<Case> Cases();
  // The case at this place among them has ended.
  void CaseDone(size_t place, const Case& c, const CaseReport& report);
  // When all have ended. Reports of further cases: what is still open, and of random cases for each
  // cause of a failure, at most kMostShrunk, the smallest case with it.
  std::vector<CaseReport> AskOn(const JudgeCases& judge);
  // At the end: what it takes, coverage of what was judged, and what it declined against the file.
  void Conclude(RunReport* report) const;

 private:
  // The size of worlds that cases have unless a combination asks for another one.
  static int32_t UsualWorld(int ranks);
  // Leaves out what the fabric cannot run.
  void KeepRunnable(std::vector<Case>* cases);
  std::vector<Case> RandomCases();
  std::vector<Case> RefusedCases() const;  // that a random run asks behind them
  std::vector<Case> OwnList() const;
  std::vector<std::string> Coverage() const;
  int strength() const { return options_.profile == "full" ? 3 : 2; }
  bool counts() const { return options_.random == 0 && options_.profile != "smoke"; }
  void Note(const Case& c, const CaseReport& report);
  bool NothingSharedWasJudged() const;  // of a whole profile
  void NoteValues(const Case& c);       // that it is declined with
  void Lose(const OpenValue& one, const std::string& why);
  void AskDeclinedValues(const JudgeCases& judge);
  // Values that no case has judged, and that it is this run's part to ask.
  std::vector<OpenValue> ValuesToAsk() const;
  void LeaveOutUnaskable(std::vector<OpenValue>* values);
  void AskOpenValues(const JudgeCases& judge, std::vector<CaseReport>* reports);
  void AskOpenCombinations(const JudgeCases& judge, std::vector<CaseReport>* reports);
  void ShrinkFailures(const JudgeCases& judge, std::vector<CaseReport>* reports);

  const Options options_;
  Spaces kept_;
  const std::vector<CaseFactors> spaces_;
  Supported supported_;
  std::string how_;             // "told by FILE", "asked in 312 cases"
  std::vector<Case> left_out_;  // of the profile's list: they have what it does not take
  std::string chosen_;          // of the cases, in words
  TakenRows taken_;             // of an engine that was asked
  std::vector<Case> asked_;     // with several legs
  std::vector<Case> judged_;
  std::map<std::string, std::string> declined_;  // cases that fit: id, and why
  std::string declined_first_;
  // In which ranks share a parameter and train: was one judged, and which was declined first?
  bool judged_shared_ = false;
  std::string declined_shared_;
  std::set<std::tuple<std::string, std::string, std::string>>
      declined_values_;            // of profiles with lists of their own: space, factor, value
  std::vector<std::string> lost_;  // values that it took, or that the file names, and declined
  std::vector<std::string> not_askable_;  // values whose plainest case the fabric cannot run
  size_t added_ = 0;                      // cases that were asked at the end, and judged
  std::vector<DrawFrom> from_;            // of random cases
  std::vector<DrawnCase> drawn_;
  struct Failure {
    size_t drawn = 0;
    CaseReport report;
  };
  std::map<std::string, std::vector<Failure>> failures_;  // by cause
  std::vector<std::string> shrunk_;                       // what is said of it
  size_t not_for_fabric_ = 0;  // cases that the fabric cannot run (runner/selection.h)
};

// The cases of all shards. fitted: of this shard, where the cases depend on the engine; else null.
std::vector<Case> CasesOfAllShards(const Options& options, const FittedRun* fitted, int ranks);

}  // namespace shardproof
