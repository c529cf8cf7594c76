#include "conformance/runner/command/run_mpi.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"
#include "conformance/fabric/process/own_state.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/nccl/run_nccl.h"
#include "conformance/runner/rank_ends.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/scratch_folder.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

namespace {

// On rank 0: what is wrong with the address, or the file of what the engine takes; or "loads"; or
// "breaks", where the probe says how.
std::string Refusal(const Options& options, EngineProbe* probe, std::optional<FittedRun>* fitted) {
  try {
    *probe = ProbeEngine(options);
    if (probe->loads && IsFitted(options)) fitted->emplace(options, options.ranks);
    return probe->loads ? "loads" : "breaks";
  } catch (const std::exception& error) {
    return error.what();
  }
}

// What keeps the report from being opened; empty: nothing.
std::string Open(const Options& options, RunReport report, size_t cases,
                 std::optional<Reporter>* reporter) {
  try {
    reporter->emplace(options, std::move(report), cases, std::cout, isatty(STDOUT_FILENO) != 0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Where cases depend on the engine, all ranks choose those that rank 0 has found out.
std::vector<Case> Select(const Options& options, bool reports, MpiWorld& world,
                         std::optional<FittedRun>* fitted, std::vector<std::string>* facts) {
  if (!IsFitted(options)) return SelectCases(options, reports ? facts : nullptr);
  const std::string told = world.Broadcast(reports ? (*fitted)->Told() : "");
  if (!reports) fitted->emplace(options, options.ranks, told);
  return (*fitted)->Cases();
}

}  // namespace

int RunMpiCommand(const Options& given, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  Options options = given;
  options.ranks = world.size();
  const bool reports = world.rank() == 0;
  RunReport report = ReportFor(options);
  EngineProbe probe;
  std::optional<FittedRun> fitted;
  const std::string refusal = world.Broadcast(reports ? Refusal(options, &probe, &fitted) : "");
  if (refusal != "loads" && refusal != "breaks") throw std::invalid_argument(refusal);
  const std::vector<Case> cases = refusal == "loads"
                                      ? Select(options, reports, world, &fitted, &report.facts)
                                      : std::vector<Case>();
  std::optional<Reporter> reporter;
  std::string problem;
  if (reports) problem = Open(options, std::move(report), cases.size(), &reporter);
  if (problem = world.Broadcast(problem); !problem.empty()) {  // all ranks leave together
    if (reports) std::cerr << "shardproof: " << IndentedText(problem) << "\n";
    return world.Leave(3);
  }
  std::optional<ScratchFolder> scratch;
  if (reports) scratch.emplace();
  const std::string folder = world.Broadcast(reports ? scratch->path() : "");
  if (const auto row = RowOf(probe, options)) reporter->CaseDone(cases.size(), *row);  // on rank 0
  MpiOptions mpi;
  mpi.stall_seconds = options.stall_seconds;
  for (size_t item = 0; item < cases.size(); ++item) {
    const Case& c = cases[item];
    const Models models = MakeModels(c);
    const RankOptions rank =
        SimOptionsFor(options, Id(c), folder + "/" + std::to_string(item)).rank;
    const CaseEnd end = world.RunCase(c.world, mpi, [&](Fabric& fabric) {
      const Plugin plugin(options.impl);
      const OwnState before;
      RankOutput output = RunRank(fabric, c, models, plugin, rank);
      output.changed = before.ChangedNow();
      return Pack(output);
    });
    if (!reports) continue;
    // The others go on meanwhile, up to their next collective.
    CaseReport row = ReportOf(c, JudgeEnd(c, end, options), options);
    if (fitted) fitted->CaseDone(c, row);
    reporter->CaseDone(item, std::move(row));
  }
  if (reports && fitted) fitted->Conclude(&reporter->report());
  const int code = reports ? reporter->Finish() : 0;
  scratch.reset();  // nothing after this may run
  return world.Leave(code);
}

int RunNcclUnderMpi(const Options& options, const NcclKit& kit, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  int code = 2;
  try {
    code = RunNcclCommand(options, kit, MeetOverMpi(world));
  } catch (const std::invalid_argument& error) {  // the same on all ranks, which leave together
    if (world.rank() == 0) std::cerr << "shardproof: " << IndentedText(error.what()) << "\n";
    code = 3;
  } catch (const std::exception& error) {
    if (world.rank() == 0)
      std::cerr << "shardproof: the suite failed: " << IndentedText(error.what()) << "\n";
  }
  return world.Leave(code);
}

}  // namespace shardproof
