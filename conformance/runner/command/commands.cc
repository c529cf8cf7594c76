// list, replay, explain.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "conformance/cases/knob_text.h"
#include "conformance/common/safe_text.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/command/event_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/judge_on_sim.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

int ListCommand(const Options& options) {
  if (options.target == "requirements") {
    const Registry registry = Registry::Builtin();
    for (const Requirement& row : registry.all()) {
      std::cout << row.id << "  " << (row.level == RequirementLevel::kMust ? "MUST  " : "SHOULD")
                << "  " << row.text << "\n";
    }
    return 0;
  }
  if (options.target == "knobs" || options.target == "tokens") {
    std::cout << (options.target == "knobs" ? KnobLines() : TokenLines());
    return 0;
  }
  std::vector<std::string> facts;
  const bool fitted = IsFitted(options);
  for (const Case& c :
       fitted ? FittedRun(options, options.ranks).Cases() : SelectCases(options, &facts)) {
    std::cout << Id(c);
    if (!c.illegal.empty()) std::cout << "  (illegal: " << c.illegal << ")";
    std::cout << "\n";
  }
  for (const std::string& fact : facts) std::cerr << fact << "\n";
  return 0;
}

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

void ShowTraces(const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    for (size_t i = 0; i < trace.events.size(); ++i) {
      std::cout << "rank " << trace.rank << " #" << i << "  "
                << VisibleLine(EventText(trace, trace.events[i])) << "\n";
    }
    if (trace.end != TraceEnd::kComplete) {
      std::cout << "rank " << trace.rank << " ended early: " << VisibleLine(trace.end_reason)
                << "\n";
    }
  }
}

// The trace of the first of the case's runs is shown; those of its partners are not.
RunCase ShowingTheFirst(const RunCase& run) {
  return [run, first = true](const Case& c, const SimRunOptions& options) mutable {
    RunData data = run(c, options);
    if (first) ShowTraces(data.run.traces);
    first = false;
    return data;
  };
}

}  // namespace

int ReplayCommand(const Options& options) {
  if (options.cases.empty()) throw std::invalid_argument("replay needs --case ID");
  std::vector<Case> cases;
  for (const std::string& id : options.cases) cases.push_back(ParseId(id));
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
  for (size_t i = 0; i < cases.size(); ++i) {
    const ScratchFolder scratch;
    Verdict verdict;
    try {
      verdict = JudgeOnSim(cases[i], ShowingTheFirst(run),
                           SimOptionsFor(options, Id(cases[i]), scratch.path()));
    } catch (const EngineDied& died) {
      verdict = VerdictOf(died);
    }
    const std::vector<std::string> notes = verdict.result.notes;
    reporter.CaseDone(i, ReportOf(cases[i], std::move(verdict), options));
    for (const std::string& note : notes) std::cout << "note: " << VisibleLine(note) << "\n";
  }
  const int code = reporter.Finish();
  *over = true;
  return code;
}

int ExplainCommand(const Options& options) {
  const Registry registry = Registry::Builtin();
  const Requirement* row = registry.Find(options.target);
  if (row == nullptr) {
    std::cerr << "shardproof: no requirement " << IndentedText(options.target)
              << "; `shardproof list requirements` lists them\n";
    return 3;
  }
  std::cout << row->id << " (" << (row->level == RequirementLevel::kMust ? "MUST" : "SHOULD")
            << ", since " << row->since << ")\n  " << row->text << "\n  source: " << row->source
            << "\n  judged by:";
  for (const std::string& check : row->checks) std::cout << " " << check;
  std::cout << "\n";
  return 0;
}

}  // namespace shardproof
