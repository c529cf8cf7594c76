// reporter.h: how does a run's report grow, and who gets to see it?
#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/report/console.h"
#include "conformance/report/report_folder.h"
#include "conformance/report/waivers.h"
#include "conformance/runner/options.h"

namespace shardproof {

// On the rank that reports.
class Reporter {
 public:
  // Reads the waivers and opens the report folder, before anything runs. report: without cases, of
  // which total will come. Throws std::invalid_argument that names what is wrong with either.
  Reporter(const Options& options, RunReport report, size_t total, std::ostream& out,
           bool terminal);

  // A case has ended: its findings are waived, and it is counted and written. place: among the
  // cases of the whole report. Cases of the first `total` places are told in this order, whichever
  // ends first, so that two runs tell the same. Never throws; what could not be written, Finish
  // says.
  void CaseDone(size_t place, CaseReport report);

  // So many cases have failed that no further one is to be run (--max-fail), or the time is over
  // (--time-budget). Of cases that are not run then, Finish tells.
  bool Enough();
  bool OutOfTime() const { return out_of_time_; }  // as Enough() last found it
  // Called again and again while cases run.
  void Tick() { console_.Tick(); }
  // Whether all that the engine has done so far is to decline, or to refuse what is illegal.
  bool NothingTaken() const;

  // Facts are added as they become known. Its cases are those of Finish.
  RunReport& report() { return report_; }

  // Problems of waivers, the end of all files, the verdict on the console. Answers the exit code: 2
  // where something could not be written, which is then said on stderr.
  int Finish();

 private:
  void TellInOrder(size_t place);
  double Elapsed() const;
  void TellWhatWasLeftOut();
  WaiverFile waivers_;
  RunReport report_;
  const size_t total_;
  size_t told_ = 0;                     // places below it were told
  std::map<size_t, CaseReport> cases_;  // by place, those that have ended
  std::optional<ReportFolder> folder_;
  std::string broken_;  // what could not be written
  const std::chrono::steady_clock::time_point began_;
  Console console_;
  const int max_fail_;
  const double time_budget_;
  bool out_of_time_ = false;
  size_t failed_ = 0;  // cases
};

// The file that the options name. Throws std::invalid_argument that says what is wrong with it.
WaiverFile WaiversOf(const Options& options);

}  // namespace shardproof
