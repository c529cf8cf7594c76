// check: recorded traces are judged, nothing is run.
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/recorded_ends.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/trace/flight/dump.h"
#include "conformance/trace/flight/traces_of_dumps.h"
#include "conformance/trace/reader.h"

namespace shardproof {

namespace {

struct Recorded {
  std::vector<Trace> traces;
  std::vector<std::string> notes;
  std::string folder;
  bool dumps = false;  // of flight recorders
};

Recorded ReadTarget(const std::string& target) {
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  Recorded recorded;
  if (colon != std::string::npos) recorded.folder = target.substr(colon + 1);
  if (kind == "trace") {
    recorded.traces = ReadTraceFolder(recorded.folder);
  } else if (kind == "flight") {
    flight::DumpedRun run = flight::TracesOfDumps(flight::ReadDumps(recorded.folder));
    recorded.traces = std::move(run.traces);
    recorded.notes = std::move(run.notes);
    recorded.dumps = true;
  } else {
    throw std::invalid_argument("\"" + target + "\": check takes trace:DIR or flight:DIR");
  }
  return recorded;
}

// A dump is written while the program runs: how that ends it does not tell.
JudgedTraces Judged(Recorded recorded) {
  if (!recorded.dumps) return JudgeTraces(std::move(recorded.traces), recorded.folder);
  JudgedTraces judged;
  Run run;
  run.traces = std::move(recorded.traces);
  judged.verdict = JudgeForeign(run);
  return judged;
}

}  // namespace

int CheckCommand(const Options& options) {
  Recorded recorded = ReadTarget(options.target);
  RunReport report = ReportFor(options);
  report.impl = options.target;
  report.fabric = "recorded";
  report.profile = "-";
  report.assurance = "reported";
  Options shown = options;
  shown.verbose = true;
  const bool dumps = recorded.dumps;
  const std::vector<std::string> notes_of_dumps = recorded.notes;
  const std::string id = recorded.traces.front().case_id;
  JudgedTraces judged = Judged(std::move(recorded));
  Reporter reporter(shown, std::move(report), 1, std::cout, false);
  for (const std::string& note : notes_of_dumps) reporter.report().facts.push_back(note);
  if (dumps) {
    reporter.report().facts.push_back(
        "dumps of flight recorders do not tell streams, bytes, roots, reductions and the counts of "
        "all-to-alls");
  } else if (!judged.ours) {
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
