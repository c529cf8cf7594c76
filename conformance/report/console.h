// console.h: what does a person see while cases are judged, and at the end?
#pragma once
#include <cstddef>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "conformance/common/safe_stream.h"
#include "conformance/report/folded.h"
#include "conformance/report/report.h"

namespace shardproof {

// What it prints is safe (common/safe_text.h), and a text of others never begins a line.
//
// A run of an engine that breaks everything fits on a few screens: the first cases that break
// something new are told as they end, kToldInFull of them in full; the end has all that is broken,
// each once with its smallest case (failures.h). Nothing is lost: verbose, all and the files of
// --report have every case.
inline constexpr size_t kToldInFull = 3, kToldInALine = 10;
inline constexpr size_t kFailuresAtEnd = 12, kReasonsAtEnd = 5;

class Console {
 public:
  // terminal: a progress bar that rewrites its line; otherwise plain lines. verbose: every case,
  // what failed in full. all: every case that failed, with findings that follow from others. quiet:
  // nothing before the end, and there what failed, problems and the verdict.
  Console(std::ostream& out, bool terminal, bool verbose, size_t total, Sentence sentence,
          bool all = false, bool quiet = false);

  void CaseDone(const CaseReport& report);
  // The two halves of it: a run whose cases end in any order counts them as they end, and tells of
  // them in an order of its own.
  void Tell(const CaseReport& report);
  void Counted(const CaseReport& report);
  // Facts, problems, and the last line with the verdict.
  void Finish(const RunReport& report);

 private:
  void Bar();
  void ShowStatus(const CaseReport& report);
  void ShowFindings(const CaseReport& report);
  void ShowIfNew(const CaseReport& report);
  void ShowUnsupported(const RunReport& report);
  void ShowWhatWasAsked(const RunReport& report);
  // Those that make the run red, or that explain it: at most so many.
  void ShowLines(const std::vector<std::string>& lines, size_t most, const char* what);
  SafeBuffer safe_;
  std::ostream out_{&safe_};
  bool terminal_, verbose_, all_, quiet_;
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
// Of one case: "FS-15, FS-16: why; GE-05: why"; empty if nothing is missing.
std::string OpenText(const CaseReport& report);

}  // namespace shardproof
