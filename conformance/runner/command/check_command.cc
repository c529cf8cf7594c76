// check: recorded traces are judged, nothing is run.
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/common/in_parallel.h"
#include "conformance/runner/command/check_limits.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/recorded_ends.h"
#include "conformance/runner/replay_line.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/support/fitted_run.h"
#include "conformance/trace/flight/dump.h"
#include "conformance/trace/flight/traces_of_dumps.h"
#include "conformance/trace/reader.h"

namespace shardproof {

namespace {

// One run of what was recorded.
struct RecordedRun {
  std::string folder, id;  // id: what the traces say they are of
  JudgedTraces judged;
  std::vector<std::string> facts;  // for the end of the report
};

RecordedRun JudgeRunIn(const std::filesystem::path& folder) {
  RecordedRun run;
  run.folder = folder.string();
  std::vector<Trace> traces = ReadTraceFolder(folder);
  run.id = traces.front().case_id;
  run.judged = JudgeTraces(std::move(traces), run.folder);
  if (!run.judged.ours) {
    run.facts.push_back("\"" + run.id +
                        "\" is no case id of this suite: only what needs no case is asked");
  }
  return run;
}

// A dump is written while the program runs: how that ends it does not tell.
RecordedRun JudgeDumpsIn(const std::string& folder) {
  RecordedRun run;
  run.folder = folder;
  flight::DumpedRun dumped = flight::TracesOfDumps(flight::ReadDumps(folder));
  run.facts = std::move(dumped.notes);
  run.facts.push_back(
      "dumps of flight recorders do not tell streams, bytes, roots, reductions and the counts of "
      "all-to-alls");
  run.id = dumped.traces.front().case_id;
  Run traces;
  traces.traces = std::move(dumped.traces);
  run.judged.verdict = JudgeForeign(std::move(traces));
  return run;
}

// All are read before anything is written: a report of traces that cannot be read says too much.
std::vector<RecordedRun> JudgeTarget(const std::string& target) {
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  const std::string folder = colon == std::string::npos ? "" : target.substr(colon + 1);
  if (kind == "flight") return {JudgeDumpsIn(folder)};
  if (kind != "trace")
    throw std::invalid_argument("\"" + target + "\": check takes trace:DIR or flight:DIR");
  const std::vector<std::filesystem::path> folders = RunsIn(folder);
  std::vector<RecordedRun> runs(folders.size());
  InParallel(folders.size(), [&] { return [&](size_t i) { runs[i] = JudgeRunIn(folders[i]); }; });
  return runs;
}

std::vector<RecordedRun> JudgeWithinLimits(const Options& options) {
  LimitCheck(options.most_mib, options.most_seconds);
  try {
    return JudgeTarget(options.target);
  } catch (const std::bad_alloc&) {
    throw std::invalid_argument("\"" + options.target + "\" needs more memory than " +
                                (options.most_mib > 0 ? "--limit-memory allows" : "there is") +
                                "; nothing is judged");
  }
}

// At this place among the runs.
void Report(RecordedRun run, const std::string& replay, size_t place, const Options& options,
            FittedRun* fitted, Reporter& reporter) {
  for (std::string& fact : run.facts) reporter.report().facts.push_back(std::move(fact));
  CaseReport row = ReportOf(run.judged.c, std::move(run.judged.verdict), options);
  row.id = run.id;
  row.replay = replay;
  row.shrink.clear();
  if (fitted != nullptr && run.judged.ours) fitted->CaseDone(place, run.judged.c, row);
  reporter.CaseDone(place, std::move(row));
}

}  // namespace

int CheckCommand(const Options& options) {
  std::optional<FittedRun> fitted;
  if (!options.supports.empty()) fitted.emplace(options, 0);
  std::vector<RecordedRun> runs = JudgeWithinLimits(options);
  RunReport report = ReportFor(options);
  report.impl = options.target;
  report.fabric = "recorded";
  report.profile = "-";
  report.assurance = "reported";
  Options shown = options;
  shown.verbose = true;
  Reporter reporter(shown, std::move(report), runs.size(), std::cout, false);
  const std::string kind = options.target.substr(0, options.target.find(':'));
  for (size_t place = 0; place < runs.size(); ++place) {
    const std::string replay = options.recorded_by.empty()
                                   ? CheckLine(options, kind, runs[place].folder)
                                   : RecordAgainLine(options, runs[place].id);
    Report(std::move(runs[place]), replay, place, options, fitted ? &*fitted : nullptr, reporter);
  }
  if (fitted) fitted->Conclude(&reporter.report());
  return reporter.Finish();
}

}  // namespace shardproof
