// files.h: what stands in the files of a report folder?
#pragma once
#include <cstddef>
#include <string>

#include "conformance/report/report.h"

namespace shardproof {

// report.jsonl: one JSON object a line, in ASCII, as report.schema.json says. A header, a line per
// case, a footer with the number of cases and the verdict. A reader that finds no footer knows that
// the run did not end.
std::string HeaderLine(const RunReport& report);
std::string CaseLine(const CaseReport& report);
std::string FooterLine(const RunReport& report);
std::string JsonLines(const RunReport& report);  // all of it
// junit.xml: a suite for each group of cases (case_group.h), with what was asked as properties; a
// test case per case, with its time, and warnings, notes and what the engine printed as system-out.
std::string Junit(const RunReport& report, const Sentence& sentence);
// summary.md, for people, in a pull request: counts, what was not checkable, and a section for each
// requirement that is broken, with its smallest case in full. Longer texts and further cases are in
// report.jsonl.
inline constexpr size_t kLargestSummary = 200 * 1000 - 500;  // bytes, whatever the report holds
std::string SummaryMarkdown(const RunReport& report, const Sentence& sentence);

}  // namespace shardproof
