#include "conformance/runner/command/run_mpi.h"

#include <unistd.h>

#include <functional>
#include <iostream>
#include <optional>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/command/mpi_judge.h"
#include "conformance/runner/host_facts.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/nccl/run_nccl.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

namespace {

// On rank 0: what is wrong with the address, or the file of what the engine takes; or "loads"; or
// "breaks", where the probe says how.
std::string Refusal(const Options& options, EngineProbe* probe, std::optional<FittedRun>* fitted) {
  try {
    *probe = ProbeEngine(options);
    if (probe->loads && IsFitted(options)) {
      if (WillAsk(options) && !options.quiet) std::cout << kAsking << std::flush;
      fitted->emplace(options, options.ranks);
    }
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

struct CasesOrProblem {
  std::vector<Case> cases;
  std::string problem;  // with what the command line asks for; the same on all ranks
};

// Rank 0 chooses, which takes a second of its processor; the others are told.
CasesOrProblem Select(const Options& options, bool reports, MpiWorld& world, FittedRun* fitted,
                      std::vector<std::string>* facts) {
  CasesOrProblem chosen;
  try {
    if (reports) chosen.cases = fitted != nullptr ? fitted->Cases() : SelectCases(options, facts);
  } catch (const std::invalid_argument& error) {
    chosen.problem = error.what();
  }
  chosen.problem = world.Broadcast(chosen.problem);
  if (!chosen.problem.empty()) return chosen;
  const std::string ids = world.Broadcast(IdsOf(chosen.cases));
  if (!reports) chosen.cases = CasesOf(ids);
  return chosen;
}

// Of a shard in which the engine takes no legal case: whether it takes one of another shard.
void LookElsewhere(const Options& options, const FittedRun* fitted, MpiJudge& judge,
                   Reporter& reporter) {
  for (const Case& c : CasesOfAllShards(options, fitted, options.ranks)) {
    if (reporter.Enough()) return;
    const CaseReport report = judge.Lead({c}).front();
    if (!IsTaken(report)) continue;
    reporter.report().taken_elsewhere = report.id;
    return;
  }
}

// At the end of a run whose further cases depend on the engine, on all ranks. reporter: null but on
// rank 0.
void Conclude(const Options& options, size_t cases, FittedRun* fitted, MpiJudge& judge,
              Reporter* reporter) {
  if (reporter == nullptr) return judge.Follow();
  const auto again = [&](const std::vector<Case>& some) { return judge.Lead(some); };
  size_t place = cases;
  std::vector<CaseReport> more;
  if (fitted != nullptr) {
    if (AsksOn(options, reporter->Enough(), reporter->OutOfTime())) {
      more = fitted->AskOn(again, 4);
    } else {
      reporter->report().cut_short = kNotAskedOn;
    }
  }
  for (CaseReport& further : more) reporter->CaseDone(++place, std::move(further));
  if (!options.shard.empty() && reporter->NothingTaken())
    LookElsewhere(options, fitted, judge, *reporter);
  judge.EndLead();
  if (fitted != nullptr) fitted->Conclude(&reporter->report());
}

// From the cases to the report's last line; rank 0's exit code. fitted: null but on rank 0 of a run
// whose cases depend on the engine.
int RunInWorld(const Options& options, MpiWorld& world, const std::vector<Case>& cases,
               RunReport report, const EngineProbe& probe, FittedRun* fitted) {
  const bool reports = world.rank() == 0;
  if (fitted && !fitted->Seeds().empty()) std::cout << fitted->Seeds() << std::endl;
  std::optional<Reporter> reporter;
  std::string problem;
  if (reports) problem = Open(options, std::move(report), cases.size(), &reporter);
  if (problem = world.Broadcast(problem); !problem.empty()) {  // all ranks leave together
    if (reports) std::cerr << "shardproof: " << IndentedText(problem) << "\n";
    return 3;
  }
  MpiJudge judge(options, world);
  if (const auto row = RowOf(probe, options)) reporter->CaseDone(cases.size(), *row);  // on rank 0
  const auto done = [&](size_t place, CaseReport row) {
    if (fitted) fitted->CaseDone(place, cases[place], row);
    reporter->CaseDone(place, std::move(row));
  };
  judge.Judge(cases, done, [&] { return reporter->Enough(); });
  if (IsFitted(options) || !options.shard.empty())
    Conclude(options, cases.size(), fitted, judge, reports ? &*reporter : nullptr);
  if (reports && judge.LeftSavesOut()) reporter->report().facts.push_back(judge.WhyNoSaves());
  return reports ? reporter->Finish() : 0;
}

// On all ranks: HostsLine. Throws std::invalid_argument, on all, where hosts disagree.
std::string CompareHosts(const Options& options, MpiWorld& world) {
  const std::vector<std::string> by_rank = world.Gather(PackFacts(FactsHere(options.impl)));
  std::string problem, line;
  if (world.rank() == 0) {
    try {
      problem = HostsDisagree(by_rank, options.impl);
      line = HostsLine(by_rank);
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
  }
  if (problem = world.Broadcast(problem); !problem.empty()) throw std::invalid_argument(problem);
  return world.Broadcast(line);
}

}  // namespace

int RunMpiCommand(const Options& given, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  Options options = given;
  options.ranks = world.size();
  const std::string hosts = CompareHosts(options, world);
  EngineProbe probe;
  std::optional<FittedRun> fitted;
  const bool asks = world.rank() == 0;
  const std::string refusal = world.Broadcast(asks ? Refusal(options, &probe, &fitted) : "");
  if (refusal != "loads" && refusal != "breaks") throw std::invalid_argument(refusal);
  if (asks && !options.quiet) std::cout << VisibleLine(HeaderLine(options)) << std::endl;
  RunReport report = ReportFor(options);
  if (!hosts.empty()) report.facts.push_back(hosts);
  report.engine = probe.name;
  if (asks && !options.quiet && !probe.name.empty())
    std::cout << "engine: " << VisibleLine(probe.name) << std::endl;
  FittedRun* const fits = fitted ? &*fitted : nullptr;
  int code = 2;
  try {
    const CasesOrProblem chosen =
        refusal == "loads" ? Select(options, asks, world, fits, &report.facts) : CasesOrProblem{};
    if (chosen.problem.empty()) {
      code = RunInWorld(options, world, chosen.cases, std::move(report), probe, fits);
    } else {
      if (asks) std::cerr << "shardproof: " << IndentedText(chosen.problem) << "\n";
      code = 3;
    }
  } catch (const std::exception& error) {  // the other ranks wait for this one
    std::cerr << "shardproof: rank " << world.rank()
              << ": the suite failed: " << IndentedText(error.what()) << std::endl;
    world.Abort(2);
  }
  return world.Leave(code);
}

int RunNcclUnderMpi(const Options& options, const NcclKit& kit, int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  int code = 2;
  try {
    CompareHosts(options, world);
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
