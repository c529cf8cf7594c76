// replay: what happens where a case fails?
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/isolation/cut_saves.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/isolation/starved_runs.h"
#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/replay/view.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {

namespace {

constexpr size_t kNotesShown = 10;

// An engine that runs in this process may leave: that is no good end. *over is set by who comes to
// its own end.
void LeavingIsAFailure(bool* over) {
  on_exit(
      [](int, void* done) {
        if (!*static_cast<bool*>(done)) _exit(1);
      },
      over);
}

// Runs the case, shows where it fails, reports.
void ReplayCase(size_t place, const Case& c, const RunCase& run, const Options& options,
                Reporter& reporter) {
  const ScratchFolder scratch;
  Verdict verdict;
  Case leg = c;
  Run shown;  // those of partners are not
  try {
    const SimRunOptions sim = SimOptionsFor(options, Id(c), scratch.path());
    verdict = JudgeOnSim(c, run, sim, [&](const Case& of, const Run& seen) {
      leg = of;
      shown.traces = seen.traces;
      shown.outcomes = seen.outcomes;
    });
    verdict = JudgeCutSaves(std::move(verdict), c, run, sim);
    verdict = JudgeStarvedRuns(std::move(verdict), c, run, sim);
  } catch (const EngineDied& died) {
    verdict = VerdictOf(died);
  }
  shown.spec = &leg;
  const std::vector<std::string> notes = verdict.result.notes;
  CaseReport report = ReportOf(c, std::move(verdict), options);
  if (!shown.traces.empty()) {
    CheckView(shown, options.view);
    ShowRun(shown, report, options.view, std::cout);
  }
  reporter.CaseDone(place, std::move(report));
  const size_t shown_notes = options.all_findings ? notes.size() : kNotesShown;
  for (size_t i = 0; i < notes.size() && i < shown_notes; ++i)
    std::cout << "note: " << VisibleLine(notes[i]) << "\n";
  if (notes.size() > shown_notes)
    std::cout << "and " << notes.size() - shown_notes << " more notes (--all)\n";
}

}  // namespace

int ReplayCommand(const Options& options) {
  if (options.cases.empty()) throw std::invalid_argument("replay needs --case ID");
  std::vector<Case> cases;
  for (const std::string& id : options.cases) cases.push_back(CaseOfId(id));
  std::optional<Plugin> here;
  auto* const over = new bool(!options.in_process);  // lives as long as the process
  LeavingIsAFailure(over);
  if (options.in_process) here.emplace(options.impl);
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  const RunCase run = here ? RunHere(*here) : RunApart(options.impl, limits);
  Options shown = options;
  shown.verbose = true;
  Reporter reporter(shown, ReportFor(options), cases.size(), std::cout, false);
  if (!here) {  // says what is wrong with the address
    const EngineProbe probe = ProbeEngine(options);
    if (const auto row = RowOf(probe, options)) reporter.CaseDone(cases.size(), *row);
    if (!probe.loads) return reporter.Finish();
  }
  for (size_t i = 0; i < cases.size(); ++i) ReplayCase(i, cases[i], run, options, reporter);
  const int code = reporter.Finish();
  *over = true;
  return code;
}

}  // namespace shardproof
