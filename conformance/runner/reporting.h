// reporting.h: how does a list of verdicts become a report?
#pragma once
#include <string>

#include "conformance/cases/case.h"
#include "conformance/report/html/page.h"
#include "conformance/report/report.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/options.h"

namespace shardproof {

// A report without cases.
RunReport ReportFor(const Options& options);

// A verdict as the report shows it.
CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options);

Sentence Sentences();
Lessons LessonsOfRequirements();

// What is judged, and by what: "shardproof 1.3, ABI 1.4: lib:./libddp.so on sim, profile core, seed
// 1". Known before any case is derived.
std::string HeaderLine(const Options& options);

}  // namespace shardproof
