// report_folder.h: what lies in a report folder while a run goes on, and what when it was killed?
//
// report.jsonl has its header from the start and a line for each case as it ends; the footer comes
// last, so a reader that finds none knows that the run did not end. junit.xml and summary.md are
// whole files at any time: written aside and renamed, at the start, after every kCasesPerWrite
// cases and, when the footer is written, at the end. Until then they say that the run has not
// ended, as an error: whenever it is killed, they claim no more than report.jsonl.
#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/report/report.h"

namespace shardproof {

inline constexpr size_t kCasesPerWrite = 50;

// Whole files besides junit.xml and summary.md: names and texts.
using MoreFiles = std::function<std::vector<std::pair<std::string, std::string>>(const RunReport&,
                                                                                 const Sentence&)>;

// A report of an older run says nothing more: its report.jsonl is empty and the other files are
// gone. What cannot be written stays as it is, as does a folder whose report.jsonl is none.
void VoidReport(const std::filesystem::path& folder);

class ReportFolder {
 public:
  // Makes the folder if need be, and replaces what is left of an older run. Throws
  // std::invalid_argument that names what cannot be written.
  ReportFolder(const std::string& folder, const RunReport& header, Sentence sentence,
               MoreFiles more = {});

  // Both throw std::runtime_error that names the file that could not be written. so_far: a report
  // of all cases that have ended, this one too; asked for after every kCasesPerWrite cases only.
  void CaseDone(const CaseReport& report, const std::function<RunReport()>& so_far);
  // Cases stand in report.jsonl as they ended; now they are in the report's order.
  void Finish(const RunReport& report);

 private:
  void WriteWhole(const std::string& name, const std::string& text) const;
  void WriteForReaders(const RunReport& report) const;
  std::filesystem::path folder_;
  Sentence sentence_;
  MoreFiles more_;
  std::ofstream lines_;  // report.jsonl
  size_t done_ = 0;
};

}  // namespace shardproof
