#include "conformance/runner/run_mpi.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/runner/run_command.h"
#include "conformance/trace/writer.h"

namespace shardproof {

namespace {

EngineOutcome OutcomeOf(const RankEnd& end) {
  using Kind = EngineOutcome::Kind;
  switch (end.kind) {
    case RankEnd::kReturned: return {};
    case RankEnd::kException:
    case RankEnd::kSignal:
    case RankEnd::kExit: return {Kind::kDied, "the run", end.detail};
    case RankEnd::kHung: return {Kind::kHung, "the run", end.detail};
    case RankEnd::kAborted: return {Kind::kAborted, "the run", end.detail};
  }
  return {};
}

bool RunsForNothing(const RankEnd& end) {
  return end.kind == RankEnd::kHung && end.detail.starts_with("without progress");
}

// Ranks that wait for one that runs for nothing are not the cause.
EngineOutcome OutcomeOf(const RankEnd& end, bool somebody_runs_for_nothing) {
  EngineOutcome outcome = OutcomeOf(end);
  if (outcome.kind != EngineOutcome::Kind::kHung || !somebody_runs_for_nothing) return outcome;
  if (RunsForNothing(end)) {
    outcome.reason = "no progress: " + end.detail;
  } else {
    outcome.kind = EngineOutcome::Kind::kAborted;
  }
  return outcome;
}

// What rank 0 received, as a run.
RunData DataOf(const Case& c, const CaseEnd& end) {
  RunData data;
  data.run.spec = &c;
  data.deadlock = end.hang;
  data.notes = end.mismatches;
  if (end.hang && !end.hang_report.empty()) data.notes.push_back(end.hang_report);
  const bool loop = std::any_of(end.ranks.begin(), end.ranks.end(), RunsForNothing);
  for (int32_t rank = 0; rank < c.world; ++rank) {
    const RankEnd& ended = end.ranks[static_cast<size_t>(rank)];
    RankOutput output;
    output.trace.rank = rank;
    output.trace.world = c.world;
    if (ended.returned) output = Unpack(ended.blob);
    if (ended.kind != RankEnd::kReturned) output.outcome = OutcomeOf(ended, loop);
    data.run.traces.push_back(std::move(output.trace));
    data.run.outcomes.push_back(std::move(output.outcome));
  }
  return data;
}

// Only rank 0 judges; the others go on to the next case meanwhile, up to its first collective.
Verdict JudgeEnd(const Case& c, const CaseEnd& end, const Options& options) {
  try {
    if (options.level == "off") return NothingRecorded();
    RunData data = DataOf(c, end);
    if (!options.trace.empty()) WriteTraceFolder(data.run.traces, options.trace + "/" + Id(c));
    Verdict verdict = JudgeRun(c, data.run);
    verdict.result.notes.insert(verdict.result.notes.end(), data.notes.begin(), data.notes.end());
    return verdict;
  } catch (const std::exception& error) {
    Verdict verdict;
    verdict.reason = error.what();
    return verdict;
  }
}

}  // namespace

int RunMpiCommand(const Options& options, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  const bool reports = world.rank() == 0;
  RunReport report{options.impl, options.fabric, options.profile, options.seed, "observed", {}, {}, {}};
  const std::vector<Case> cases = SelectCases(options, reports ? &report.facts : nullptr);
  const Plugin plugin(options.impl);
  std::optional<ScratchFolder> scratch;
  if (reports) scratch.emplace();
  const std::string folder = world.Broadcast(reports ? scratch->path() : "");
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  Console console(std::cout, terminal, options.verbose, cases.size(), Sentences());
  MpiOptions mpi;
  mpi.stall_seconds = options.stall_seconds;
  for (size_t item = 0; item < cases.size(); ++item) {
    const Case& c = cases[item];
    Verdict verdict;
    if (c.world > world.size()) {
      verdict.outcome = Outcome::kNotCheckable;
      verdict.reason = "it needs " + std::to_string(c.world) + " ranks, mpirun started " + std::to_string(world.size());
    } else {
      const Models models = MakeModels(c);
      const RankOptions rank = SimOptionsFor(options, Id(c), folder + "/" + std::to_string(item)).rank;
      const CaseEnd end = world.RunCase(c.world, mpi, [&](Fabric& fabric) {
        return Pack(RunRank(fabric, c, models, plugin, rank));
      });
      if (reports) verdict = JudgeEnd(c, end, options);
    }
    if (!reports) continue;
    report.cases.push_back(ReportOf(c, std::move(verdict), options));
    console.CaseDone(report.cases.back());
  }
  int code = 0;
  if (reports) {
    try {
      code = FinishReport(report, options, console);
    } catch (const std::exception& error) {  // the others wait for the code
      std::cerr << "shardproof: the suite failed: " << error.what() << "\n";
      code = 2;
    }
  }
  scratch.reset();  // nothing after this may run
  return world.Leave(code);
}

}  // namespace shardproof
