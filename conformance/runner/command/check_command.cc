// check, show: recorded traces are judged, nothing is run.
#include <filesystem>
#include <iostream>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/symmetry/world_folder.h"
#include "conformance/common/in_parallel.h"
#include "conformance/runner/command/check_limits.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/many/judge_many.h"
#include "conformance/runner/recorded_ends.h"
#include "conformance/runner/recorded_parts.h"
#include "conformance/runner/replay/view.h"
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
  std::vector<Trace> traces;       // of show alone
  std::vector<std::string> facts;  // for the end of the report
};

// Of many ranks, those that are alike stored once.
RecordedRun JudgeWorldIn(const std::filesystem::path& folder) {
  RecordedRun run;
  run.folder = folder.string();
  symmetry::CompactWorld world = symmetry::ReadWorldFolder(folder);
  run.id = world.shapes.front().trace.case_id;
  run.judged.c = ParseId(run.id);
  run.judged.ours = true;
  std::vector<Trace> traces;
  for (const symmetry::Shape& shape : world.shapes) traces.push_back(shape.trace);
  const std::vector<EngineOutcome> ends = RecordedEnds(traces, &run.judged.c);
  for (size_t i = 0; i < ends.size(); ++i) world.shapes[i].outcome = ends[i];
  run.judged.verdict = JudgeManyRanks(run.judged.c, world, std::nullopt);
  return run;
}

// keep: the traces are shown; they are judged whole then.
RecordedRun JudgeRunIn(const std::filesystem::path& folder, int64_t part_events, bool keep) {
  if (symmetry::IsWorldFolder(folder)) {
    if (keep)
      throw std::invalid_argument(folder.string() +
                                  " holds one trace for all ranks that are alike: check judges it, "
                                  "show takes a trace for each rank");
    return JudgeWorldIn(folder);
  }
  RecordedRun run;
  run.folder = folder.string();
  if (keep) {
    run.traces = ReadTraceFolder(folder);
    run.id = run.traces.front().case_id;
    run.judged = JudgeTraces(run.traces, run.folder);
  } else {
    JudgedFolder judged = JudgeFolder(folder, part_events);
    run.id = std::move(judged.case_id);
    run.judged = std::move(judged.judged);
    if (judged.parts > 1)
      run.facts.push_back("judged in " + std::to_string(judged.parts) + " parts");
    if (!judged.whole.empty()) run.facts.push_back("not judged in parts: " + judged.whole);
  }
  if (!run.judged.ours) {
    run.facts.push_back("\"" + run.id +
                        "\" is no case id of this suite: only what needs no case is asked");
  }
  return run;
}

// A dump is written while the program runs: how that ends it does not tell.
RecordedRun JudgeDumpsIn(const std::string& folder, bool keep) {
  RecordedRun run;
  run.folder = folder;
  flight::DumpedRun dumped = flight::TracesOfDumps(flight::ReadDumps(folder));
  run.facts = std::move(dumped.notes);
  run.facts.push_back(
      "dumps of flight recorders do not tell streams, bytes, roots, reductions and the counts of "
      "all-to-alls");
  run.id = dumped.traces.front().case_id;
  if (keep) run.traces = dumped.traces;
  Run traces;
  traces.traces = std::move(dumped.traces);
  run.judged.verdict = JudgeForeign(std::move(traces));
  return run;
}

// All are read before anything is written: a report of traces that cannot be read says too much.
std::vector<RecordedRun> JudgeTarget(const Options& options, bool keep) {
  const std::string& target = options.target;
  const size_t colon = target.find(':');
  const std::string kind = target.substr(0, colon);
  const std::string folder = colon == std::string::npos ? "" : target.substr(colon + 1);
  if (kind == "flight") return {JudgeDumpsIn(folder, keep)};
  if (kind != "trace")
    throw std::invalid_argument("\"" + target + "\": traces are trace:DIR or flight:DIR");
  const std::vector<std::filesystem::path> folders = RunsIn(folder);
  std::vector<RecordedRun> runs(folders.size());
  InParallel(folders.size(), [&] {
    return [&](size_t i) { runs[i] = JudgeRunIn(folders[i], options.part_events, keep); };
  });
  return runs;
}

std::vector<RecordedRun> JudgeWithinLimits(const Options& options, bool keep) {
  KeepFreedMemory();
  LimitCheck(options.most_mib, options.most_seconds);
  try {
    return JudgeTarget(options, keep);
  } catch (const std::bad_alloc&) {
    throw std::invalid_argument("\"" + options.target + "\" needs more memory than " +
                                (options.most_mib > 0 ? "--limit-memory allows" : "there is") +
                                "; nothing is judged");
  }
}

RunReport ReportOfRecorded(const Options& options) {
  RunReport report = ReportFor(options);
  report.impl = options.target;
  report.fabric = "recorded";
  report.profile = "-";
  report.asked.clear();
  report.options.clear();
  report.assurance = "reported";
  return report;
}

CaseReport RowOfRecorded(RecordedRun* run, const std::string& replay, const Options& options) {
  CaseReport row = ReportOf(run->judged.c, std::move(run->judged.verdict), options);
  row.id = run->id;
  row.replay = replay;
  row.shrink.clear();
  return row;
}

std::string LineOf(const Options& options, const RecordedRun& run) {
  if (!options.recorded_by.empty()) return RecordAgainLine(options, run.id);
  return CheckLine(options, options.target.substr(0, options.target.find(':')), run.folder);
}

void Show(RecordedRun* run, const CaseReport& row, const ReplayView& view) {
  Run shown;
  shown.traces = std::move(run->traces);
  if (run->judged.ours) shown.spec = &run->judged.c;
  CheckView(shown, view);
  ShowRun(shown, row, view, std::cout);
}

// view: what of each run is shown; null: nothing.
int JudgeRecorded(const Options& options, const ReplayView* view) {
  std::optional<FittedRun> fitted;
  if (!options.supports.empty()) fitted.emplace(options, 0);
  std::vector<RecordedRun> runs = JudgeWithinLimits(options, view != nullptr);
  Options shown = options;
  shown.verbose = true;
  Reporter reporter(shown, ReportOfRecorded(options), runs.size(), std::cout, false);
  for (size_t place = 0; place < runs.size(); ++place) {
    RecordedRun& run = runs[place];
    for (std::string& fact : run.facts) reporter.report().facts.push_back(std::move(fact));
    CaseReport row = RowOfRecorded(&run, LineOf(options, run), options);
    if (view != nullptr) Show(&run, row, *view);
    if (fitted && run.judged.ours) fitted->CaseDone(place, run.judged.c, row);
    reporter.CaseDone(place, std::move(row));
  }
  if (fitted) fitted->Conclude(&reporter.report());
  return reporter.Finish();
}

}  // namespace

int CheckCommand(const Options& options) { return JudgeRecorded(options, nullptr); }

int ShowCommand(const Options& options) { return JudgeRecorded(options, &options.view); }

}  // namespace shardproof
