// reporting.h: how does a list of verdicts become a report?
#pragma once
#include <string>

#include "conformance/cases/case.h"
#include "conformance/report/report.h"
#include "conformance/runner/judge.h"
#include "conformance/runner/options.h"

namespace shardproof {

// A report without cases.
RunReport ReportFor(const Options& options);

// A verdict as the report shows it.
CaseReport ReportOf(const Case& c, Verdict verdict, const Options& options);

Sentence Sentences();

}  // namespace shardproof
