// replay: what happens where a case fails?
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
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
#include "conformance/runner/planted.h"
#include "conformance/runner/replay/view.h"
#include "conformance/runner/replay_line.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {

namespace {

// An engine that runs in this process may leave: that is no good end. *over is set by who comes to
// its own end.
void LeavingIsAFailure(bool* over) {
  on_exit(
      [](int, void* done) {
        if (!*static_cast<bool*>(done)) _exit(1);
      },
      over);
}

// What a run of a case gave.
struct Replayed {
  Case leg;  // whose run is shown
  Run run;   // those of partners are not
  CaseReport report;
};

// stop: of a debugger.
std::unique_ptr<Replayed> Replay(const Case& c, const RunCase& run, const Options& options,
                                 const std::function<void()>& stop) {
  const ScratchFolder scratch;
  auto replayed = std::make_unique<Replayed>();
  replayed->leg = c;
  Verdict verdict;
  try {
    SimRunOptions sim = SimOptionsFor(options, Id(c), scratch.path());
    sim.rank.stop_rank = std::max(options.view.rank, 0);
    sim.rank.stop_event = options.view.around;
    sim.rank.stop = stop;
    verdict = JudgeOnSim(c, run, sim, [&](const Case& of, const Run& seen) {
      replayed->leg = of;
      replayed->run.traces = seen.traces;
      replayed->run.outcomes = seen.outcomes;
    });
    verdict = JudgeCutSaves(std::move(verdict), c, run, sim);
    verdict = JudgeStarvedRuns(std::move(verdict), c, run, sim);
  } catch (const EngineDied& died) {
    verdict = VerdictOf(died);
  }
  replayed->run.spec = &replayed->leg;
  replayed->report = ReportOf(c, std::move(verdict), options);
  return replayed;
}

// Shows where it fails, reports.
void ReplayCase(size_t place, const Case& c, const RunCase& run, const Options& options,
                Reporter& reporter) {
  const std::unique_ptr<Replayed> replayed = Replay(c, run, options, nullptr);
  if (!replayed->run.traces.empty()) {
    CheckView(replayed->run, options.view);
    ShowRun(replayed->run, replayed->report, options.view, std::cout);
  }
  reporter.CaseDone(place, std::move(replayed->report));
}

// "TracerPid:\t17"
bool HasDebugger() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return line.find_first_of("123456789") != std::string::npos;
  }
  return false;
}

// With --around, of the first finding if it has none.
Options WithEvent(const Options& options, const Case& c) {
  Options found = options;
  if (options.view.around >= 0) return found;
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  const auto replayed = Replay(c, RunApart(options.impl, limits), options, nullptr);
  const auto [rank, event] = FirstPlace(replayed->run, replayed->report);
  if (event < 0)
    throw std::invalid_argument("--step: no finding of case " + Id(c) +
                                " names an event: say --around EVENT --rank RANK");
  found.view.around = event;
  found.view.rank = rank;
  return found;
}

// Stops in a debugger at the event, or says how to start one.
int Step(const Options& options) {
  if (options.cases.size() != 1) throw std::invalid_argument("--step is of one case");
  const Case c = CaseOfId(options.cases.front());
  const Options at = WithEvent(options, c);
  if (!HasDebugger()) {
    std::cout << VisibleLine(Id(c)) << ": rank " << std::max(at.view.rank, 0) << ", event "
              << at.view.around << ". No debugger watches this process; this one stops there:\n"
              << VisibleLine("gdb -q -ex run -ex backtrace --args " + StepLine(at, Id(c))) << "\n";
    return 0;
  }
  std::cout << "stops at rank " << std::max(at.view.rank, 0) << ", event " << at.view.around
            << ": the frames above shardproof's are the engine's" << std::endl;
  bool stopped = false;
  const Plugin here(options.impl);
  Replay(c, RunHere(here), at, [&stopped] {
    if (!std::exchange(stopped, true)) raise(SIGTRAP);
  });
  if (!stopped) throw std::invalid_argument("--step: the run has no such event");
  return 0;
}

}  // namespace

int ReplayCommand(const Options& options) {
  if (options.cases.empty()) throw std::invalid_argument("replay needs --case ID");
  std::vector<Case> cases;
  for (const std::string& id : options.cases) cases.push_back(CaseOfId(id));
  RequireRankOfFault(options, cases);
  if (options.view.step) return Step(options);
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
  TellFault(options, FaultStruck(options), &reporter.report());
  const int code = reporter.Finish();
  *over = true;
  return code;
}

}  // namespace shardproof
