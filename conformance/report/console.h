// console.h: what does a person see while cases are judged, and at the end?
#pragma once
#include <cstddef>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/common/safe_stream.h"
#include "conformance/report/folded.h"
#include "conformance/report/pace.h"
#include "conformance/report/report.h"
#include "conformance/report/screen.h"

namespace shardproof {

// What it prints is safe (common/safe_text.h), and a text of others never begins a line.
//
// A run of an engine that breaks everything fits on a few screens: the first cases that break
// something new are told as they end, kToldInFull of them in full; the end has all that is broken,
// each once with its smallest case (failures.h), and names the others that failed, kAlikeAtEnd at
// most. Nothing is lost: verbose, all and the files of --report have every case.
inline constexpr size_t kToldInFull = 2, kToldInALine = 6;
inline constexpr size_t kFailuresAtEnd = 8, kReasonsAtEnd = 5, kAlikeAtEnd = 20;
inline constexpr size_t kNotesOfACase = 10, kPrintedLines = 8;
// Without a line for so long, one says that the run goes on.
inline constexpr double kSilentSeconds = 60;

// Seconds since the run began.
using RunClock = std::function<double()>;

class Console {
 public:
  // On a terminal: a progress bar that rewrites its line; otherwise plain lines. verbose: every
  // case, what failed in full, and notes. all: every case that failed, with findings that follow
  // from others. quiet: nothing before the end, and there what failed, problems and the verdict.
  // clock: null, if times are not told.
  Console(std::ostream& out, const Display& display, bool verbose, size_t total, Sentence sentence,
          bool all = false, bool quiet = false, RunClock clock = nullptr);

  void CaseDone(const CaseReport& report);
  // The two halves of it: a run whose cases end in any order counts them as they end, and tells of
  // them in an order of its own.
  void Tell(const CaseReport& report);
  void Counted(const CaseReport& report);
  // Called again and again while cases run: the bar's times move.
  void Tick();
  // Facts, problems, and the last line with the verdict.
  void Finish(const RunReport& report);

 private:
  void Bar();
  void CountLine();
  double Now() const { return clock_ ? clock_() : 0; }
  std::string Times() const;  // ", 0:12, about 1:40 left"
  void ShowNotes(const CaseReport& report);
  void ShowStatus(const CaseReport& report);
  void ShowFindings(const CaseReport& report);
  void ShowInFull(const CaseReport& report);
  void ShowFailures(const RunReport& report);
  void ShowIfNew(const CaseReport& report);
  void ShowUnsupported(const RunReport& report);
  void ShowWhatWasAsked(const RunReport& report);
  // Those that make the run red, or that explain it: at most so many.
  void ShowLines(const std::vector<std::string>& lines, size_t most, const char* what);
  SafeBuffer safe_;
  std::ostream out_{&safe_};
  Screen screen_;
  const RunClock clock_;
  Pace pace_;
  double shown_ = 0;  // when the last line or bar was
  bool verbose_, all_, quiet_;
  size_t total_, done_ = 0, failed_ = 0, partial_ = 0;
  size_t in_full_ = 0, in_a_line_ = 0;
  std::set<std::string> broken_;  // requirements that were told
  Sentence sentence_;
};

// One finding as a block of lines, for the console and for the files, with what is folded into it.
// Lines of a text of several are indented.
std::string FindingText(const ToldFinding& told, const CaseReport& report,
                        const Sentence& sentence);
// A line for each requirement that warns, with its sentence and the number of cases, and one that
// says what warnings are; none without warnings.
std::vector<std::string> WarningLines(const RunReport& report, const Sentence& sentence);

// For the end of a run: how many requirements were judged, then a line for each reason why some
// were not; at most so many missing, and as many not asked.
std::vector<std::string> RequirementLines(const RunReport& report, size_t most);
// What a case's engine printed, by rank: the last lines of each, at most so many; none if nothing.
std::vector<std::string> PrintedLines(const CaseReport& report, size_t last);
// Of one case: "FS-15, FS-16: why; GE-05: why"; empty if nothing is missing.
std::string OpenText(const CaseReport& report);

}  // namespace shardproof
