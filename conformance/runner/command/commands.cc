// list, replay, explain.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>

#include "conformance/cases/knob_text.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/console.h"
#include "conformance/requirements/registry.h"
#include "conformance/runner/command/event_text.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

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
  for (const Case& c : SelectCases(options, &facts)) {
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

}  // namespace

int ReplayCommand(const Options& options) {
  if (options.cases.empty()) throw std::invalid_argument("replay needs --case ID");
  std::optional<Plugin> here;
  auto* const over = new bool(!options.in_process);  // lives as long as the process
  LeavingIsAFailure(over);
  if (options.in_process) here.emplace(options.impl);
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  const RunCase run = here ? RunHere(*here) : RunApart(options.impl, limits);
  if (!here) ProbeEngine(options);  // says what is wrong with the address
  int code = 0;
  for (const std::string& id : options.cases) {
    const Case c = ParseId(id);
    const ScratchFolder scratch;
    RunData data;
    try {
      data = run(c, SimOptionsFor(options, Id(c), scratch.path()));
    } catch (const EngineDied& died) {
      const CaseReport report = ReportOf(c, VerdictOf(died), options);
      for (const ReportedFinding& row : report.findings)
        std::cout << FindingText(row.finding, report, Sentences());
      std::cout << StatusName(report.status) << "  " << report.id << " " << report.reason << "\n";
      code = 1;
      continue;
    }
    for (const Trace& trace : data.run.traces) {
      for (size_t i = 0; i < trace.events.size(); ++i) {
        std::cout << "rank " << trace.rank << " #" << i << "  "
                  << VisibleLine(EventText(trace, trace.events[i])) << "\n";
      }
      if (trace.end != TraceEnd::kComplete) {
        std::cout << "rank " << trace.rank << " ended early: " << VisibleLine(trace.end_reason)
                  << "\n";
      }
    }
    CaseReport report = ReportOf(c, JudgeRun(c, data.run), options);
    for (const ReportedFinding& row : report.findings)
      std::cout << FindingText(row.finding, report, Sentences());
    for (const std::string& note : report.notes) std::cout << "note: " << VisibleLine(note) << "\n";
    std::cout << StatusName(report.status) << "  " << report.id << "\n";
    if (report.status == Status::kFail) code = 1;
  }
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
