// check: recorded traces are judged, nothing is run.
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/runner/command/run_command.h"
#include "conformance/runner/recorded_ends.h"
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
  std::vector<Trace> traces = ReadTraceFolder(folder);
  const std::string id = traces.front().case_id;
  JudgedTraces judged = JudgeTraces(std::move(traces), folder);
  if (!judged.ours) {
    report.facts.push_back("\"" + id +
                           "\" is no case id of this suite: only what needs no case is asked");
  }
  CaseReport row = ReportOf(judged.c, std::move(judged.verdict), options);
  row.id = id;
  row.replay = "shardproof check " + options.target;
  report.cases.push_back(std::move(row));
  Console console(std::cout, false, true, 1, Sentences());
  console.CaseDone(report.cases.front());
  for (const std::string& note : report.cases.front().notes) std::cout << "note: " << note << "\n";
  return FinishReport(report, options, console);
}

}  // namespace shardproof
