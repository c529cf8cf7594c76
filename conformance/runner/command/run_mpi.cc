#include "conformance/runner/command/run_mpi.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/fabric/mpi/mpi_world.h"
#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"
#include "conformance/fabric/process/own_state.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/host_facts.h"
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

std::string IdsOf(const std::vector<Case>& cases) {
  std::string ids;
  for (const Case& c : cases) ids += Id(c) + "\n";
  return ids;
}

std::vector<Case> CasesOf(const std::string& ids) {
  std::vector<Case> cases;
  std::istringstream lines(ids);
  for (std::string id; std::getline(lines, id);) cases.push_back(ParseId(id));
  return cases;
}

// Rank 0 chooses, which takes a second of its processor; the others are told. What is wrong with
// the cases is thrown on all.
std::vector<Case> Select(const Options& options, bool reports, MpiWorld& world, FittedRun* fitted,
                         std::vector<std::string>* facts) {
  std::vector<Case> cases;
  std::string problem;
  try {
    if (reports) cases = fitted != nullptr ? fitted->Cases() : SelectCases(options, facts);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  if (problem = world.Broadcast(problem); !problem.empty()) throw std::invalid_argument(problem);
  const std::string ids = world.Broadcast(IdsOf(cases));
  return reports ? cases : CasesOf(ids);
}

// Runs cases on all ranks, one after the other; rank 0 judges them.
class MpiJudge {
 public:
  MpiJudge(const Options& options, MpiWorld& world) : options_(options), world_(world) {
    if (reports()) scratch_.emplace();
    folder_ = world_.Broadcast(reports() ? scratch_->path() : "");
    const bool here = std::filesystem::is_directory(folder_);
    std::string apart;
    for (const std::string& host : world_.Gather(here ? "" : FactsHere("").host)) {
      if (apart.empty()) apart = host;
    }
    apart_ = world_.Broadcast(apart);
  }
  bool reports() const { return world_.rank() == 0; }
  bool LeftSavesOut() const { return left_saves_out_; }
  // Why cases that save are not judged; empty: they are.
  std::string WhyNoSaves() const {
    return apart_.empty()
               ? ""
               : "cases that save are not judged: host " + apart_ + " does not see the folder " +
                     folder_ + " of rank 0; TMPDIR names one that all hosts share";
  }

  // done: on rank 0. The others go on meanwhile, up to their next collective.
  // enough, on rank 0: whether no further case is to be run; asked where options end a run early.
  void Judge(const std::vector<Case>& cases,
             const std::function<void(size_t place, CaseReport report)>& done,
             const std::function<bool()>& enough = nullptr) {
    for (size_t place = 0; place < cases.size(); ++place) {
      const auto began = std::chrono::steady_clock::now();
      Verdict verdict =
          apart_.empty() || !Saves(cases[place]) ? RunLegs(cases[place]) : NotShared();
      if (reports()) {
        CaseReport row = ReportOf(cases[place], std::move(verdict), options_);
        row.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        done(place, std::move(row));
      }
      if (options_.max_fail == 0 && options_.time_budget == 0) continue;
      const bool over = reports() && enough && enough();
      if (world_.Broadcast(over ? "over" : "on") == "over") return;
    }
  }

  // On rank 0, while the others Follow().
  std::vector<CaseReport> Lead(const std::vector<Case>& cases) {
    if (cases.empty()) return {};  // nothing is said: an empty text is the end
    world_.Broadcast(IdsOf(cases));
    std::vector<CaseReport> reports(cases.size());
    Judge(cases, [&](size_t place, CaseReport report) { reports[place] = std::move(report); });
    return reports;
  }
  // No more cases.
  void EndLead() { world_.Broadcast(""); }
  void Follow() {
    for (std::string ids = world_.Broadcast(""); !ids.empty(); ids = world_.Broadcast(""))
      Judge(CasesOf(ids), nullptr);
  }

 private:
  static bool Saves(const Case& c) {
    const std::vector<Case> legs = LegsOf(c);
    return std::any_of(legs.begin(), legs.end(), [](const Case& leg) {
      return std::any_of(leg.instances.begin(), leg.instances.end(), [](const InstanceSpec& spec) {
        return spec.script.find_first_of("sl") != std::string::npos;
      });
    });
  }
  // An engine may read what another rank wrote, so no rank is blamed for what it does not find.
  Verdict NotShared() {
    left_saves_out_ = true;
    Verdict verdict;
    verdict.outcome = Outcome::kNotCheckable;
    verdict.reason = WhyNoSaves();
    return verdict;
  }

  // All legs run, since only rank 0 knows how one is judged: the first that does not pass decides.
  Verdict RunLegs(const Case& c) {
    const std::string folder = folder_ + "/" + std::to_string(runs_++);
    const std::vector<Case> legs = LegsOf(c);
    Verdict verdict;
    for (size_t leg = 0; leg < legs.size(); ++leg) {
      const CaseEnd end = Run(legs[leg], folder);
      if (!reports() || (leg > 0 && !IsGood(verdict))) continue;
      verdict = JudgeEnd(legs[leg], end, options_);
      if (legs.size() > 1 && !IsGood(verdict)) NameLeg(leg, legs[leg], &verdict);
    }
    return verdict;
  }

  CaseEnd Run(const Case& c, const std::string& folder) {
    const Models models = MakeModels(c);
    const RankOptions rank = SimOptionsFor(options_, Id(c), folder).rank;
    MpiOptions mpi;
    mpi.stall_seconds = options_.stall_seconds;
    return world_.RunCase(c.world, mpi, [&](Fabric& fabric) {
      const Plugin plugin(options_.impl);
      const OwnState before;
      RankOutput output = RunRank(fabric, c, models, plugin, rank);
      output.changed = before.ChangedNow();
      return Pack(output);
    });
  }

  const Options& options_;
  MpiWorld& world_;
  std::optional<ScratchFolder> scratch_;  // of rank 0
  std::string folder_;
  bool left_saves_out_ = false;
  std::string apart_;  // a host that does not see the folder; empty: all do
  size_t runs_ = 0;
};

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
  const bool enough = reporter->Enough();
  if (fitted != nullptr && enough) reporter->report().cut_short = kNotAskedOn;
  if (fitted != nullptr && !enough) more = fitted->AskOn(again, 4);
  for (CaseReport& further : more) reporter->CaseDone(++place, std::move(further));
  if (!options.shard.empty() && reporter->NothingTaken())
    LookElsewhere(options, fitted, judge, *reporter);
  judge.EndLead();
  if (fitted != nullptr) fitted->Conclude(&reporter->report());
}

}  // namespace

namespace {

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
  std::vector<Case> cases;
  if (refusal == "loads") cases = Select(options, asks, world, fits, &report.facts);
  int code = 2;
  try {
    code = RunInWorld(options, world, cases, std::move(report), probe, fits);
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
