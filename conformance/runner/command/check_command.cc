// check: recorded traces are judged, nothing is run.
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/recorded_ends.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/trace/reader.h"

namespace shardproof {

int CheckCommand(const Options& options) {
  if (!options.target.starts_with("trace:")) {
    throw std::invalid_argument("\"" + options.target + "\": check takes trace:DIR");
  }
  const std::string folder = options.target.substr(6);
  RunReport report = ReportFor(options);
  report.impl = options.target;
  report.fabric = "recorded";
  report.profile = "-";
  report.assurance = "reported";
  Options shown = options;
  shown.verbose = true;
  std::vector<Trace> traces = ReadTraceFolder(folder);
  const std::string id = traces.front().case_id;
  JudgedTraces judged = JudgeTraces(std::move(traces), folder);
  Reporter reporter(shown, std::move(report), 1, std::cout, false);
  if (!judged.ours) {
    reporter.report().facts.push_back(
        "\"" + id + "\" is no case id of this suite: only what needs no case is asked");
  }
  CaseReport row = ReportOf(judged.c, std::move(judged.verdict), options);
  row.id = id;
  row.replay = "shardproof check " + options.target;
  const std::vector<std::string> notes = row.notes;
  reporter.CaseDone(0, std::move(row));
  for (const std::string& note : notes) std::cout << "note: " << VisibleLine(note) << "\n";
  return reporter.Finish();
}

}  // namespace shardproof
