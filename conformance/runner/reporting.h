// reporting.h: how does a list of verdicts become a report?
#pragma once
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/report/console.h"
#include "conformance/report/report.h"
#include "conformance/report/waivers.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/options.h"

namespace shardproof {

// A report without cases.
RunReport ReportFor(const Options& options);

// A verdict as the report shows it.
CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options);

Sentence Sentences();

// Of the file that the options name. Throws std::invalid_argument that says what is wrong with it.
std::vector<Waiver> WaiversOf(const Options& options);

// Applies waivers, writes the report folder, prints the end; answers the exit code.
int FinishReport(RunReport& report, const Options& options, Console& console);
// The same where other ranks wait for the code: what goes wrong is printed, and answers 2.
int FinishReportForAll(RunReport& report, const Options& options, Console& console);

}  // namespace shardproof
