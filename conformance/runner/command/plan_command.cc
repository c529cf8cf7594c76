// plan: what does one rank of an engine say that it will issue in a train step?
#include <iostream>
#include <optional>

#include "conformance/common/safe_text.h"
#include "conformance/report/console.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/isolation/run_apart.h"
#include "conformance/runner/plugin.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"

namespace shardproof {

namespace {

// In the engine's process: what the rank's first engine says is the only note; none: there was no
// engine.
RunData RunForPlan(const Case& c, const Options& options, const Plugin& plugin, SimRunOptions sim) {
  std::optional<std::string> text;
  sim.rank.on_created = [&](int32_t rank, spf_engine* engine) {
    if (rank != options.rank || text) return;
    const char* plan = plugin.plan()(engine, options.step, options.verbose ? 1 : 0);
    text = plan == nullptr ? "" : plan;
  };
  RunData data = RunOnSim(c, MakeModels(c), plugin, sim);
  data.notes.clear();
  if (text) data.notes.push_back(*text);
  return data;
}

}  // namespace

int PlanCommand(const Options& options) {
  const EngineProbe probe = ProbeEngine(options);
  if (const auto row = RowOf(probe, options)) {
    for (const ToldFinding& told : TellFindings(*row, options.all_findings))
      std::cout << FindingText(told, *row, Sentences());
  }
  if (!probe.loads) return 1;
  if (!probe.has_plan) {
    throw std::invalid_argument(options.impl +
                                " says nothing about its plans: spf_plugin.plan is NULL");
  }
  Case c = CaseOfId(options.cases.front());
  const std::string id = Id(c);
  if (options.rank >= c.world) {
    throw std::invalid_argument("--rank " + std::to_string(options.rank) + ": " + Id(c) + " has " +
                                std::to_string(c.world) + " ranks");
  }
  for (InstanceSpec& spec : c.instances) spec.script.clear();  // create and destroy
  const ScratchFolder scratch;
  EngineProcessOptions limits;
  limits.stall_seconds = options.stall_seconds;
  RunData data;
  try {
    data = RunApartWith(options.impl, limits, c, SimOptionsFor(options, id, scratch.path()),
                        [&](const Plugin& plugin, const SimRunOptions& sim) {
                          return RunForPlan(c, options, plugin, sim);
                        });
  } catch (const EngineDied& died) {
    const CaseReport report = ReportOf(c, VerdictOf(died), options);
    for (const ToldFinding& told : TellFindings(report, options.all_findings))
      std::cout << FindingText(told, report, Sentences());
    return 1;
  }
  const EngineOutcome& outcome = data.run.outcomes[static_cast<size_t>(options.rank)];
  if (data.notes.empty()) {
    std::cerr << "shardproof: rank " << options.rank << " has no engine that could be asked: "
              << (outcome.reason.empty() ? "create was not called on it"
                                         : IndentedText(outcome.reason))
              << "\n";
    return 1;
  }
  std::cout << data.notes.front();
  return 0;
}

}  // namespace shardproof
