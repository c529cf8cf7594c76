// files.h: which files does a report folder hold?
#pragma once
#include <string>

#include "conformance/report/report.h"

namespace shardproof {

// One JSON object a line: a header, a line per case, a footer with the number of cases and the
// verdict. A reader that finds no footer knows that the run did not end.
std::string JsonLines(const RunReport& report);
// A test case per case, in a suite named after implementation and fabric.
std::string Junit(const RunReport& report, const Sentence& sentence);
// For people: counts, failures, what was not checkable.
std::string SummaryMarkdown(const RunReport& report, const Sentence& sentence);

// Writes report.jsonl, junit.xml and summary.md into the folder, which is made if need be. Throws
// std::runtime_error naming the file that could not be written.
void WriteReportFolder(const std::string& folder, const RunReport& report,
                       const Sentence& sentence);

}  // namespace shardproof
