// console.h: what does a person see while cases are judged, and at the end?
#pragma once
#include <cstddef>
#include <ostream>

#include "conformance/report/report.h"

namespace shardproof {

class Console {
 public:
  // terminal: a progress bar that rewrites its line; otherwise plain lines. verbose: a line for
  // every case.
  Console(std::ostream& out, bool terminal, bool verbose, size_t total, Sentence sentence);

  void CaseDone(const CaseReport& report);
  // Facts, problems, and the last line with the verdict.
  void Finish(const RunReport& report);

 private:
  void Bar();
  void ShowFindings(const CaseReport& report);
  std::ostream& out_;
  bool terminal_, verbose_;
  size_t total_, done_ = 0, failed_ = 0;
  Sentence sentence_;
};

// One finding as a block of lines, for the console and for summary.md.
std::string FindingText(const Finding& finding, const CaseReport& report, const Sentence& sentence);

}  // namespace shardproof
