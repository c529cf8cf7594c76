#include "conformance/runner/job/job_run.h"

#include <unistd.h>

#include <iostream>
#include <optional>
#include <utility>

#include "conformance/common/safe_text.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/planted.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {
namespace {

constexpr char kLoads[] = "loads", kBreaks[] = "breaks";

// What rank 0 knows alone.
struct Chosen {
  EngineProbe probe;
  std::optional<FittedRun> fitted;  // if its cases depend on the engine
  std::optional<Reporter> reporter;
};

// On rank 0: what is wrong with the address, or the file of what the engine takes; or kLoads; or
// kBreaks, where the probe says how.
std::string AskEngine(const Options& options, Chosen* here) {
  if (!options.quiet) std::cout << VisibleLine(HeaderLine(options)) << std::endl;
  try {
    here->probe = ProbeEngine(options);
    if (!options.quiet && !here->probe.name.empty())
      std::cout << "engine: " << VisibleLine(here->probe.name) << std::endl;
    if (!here->probe.loads) return kBreaks;
    if (IsFitted(options)) {
      if (WillAsk(options) && !options.quiet) std::cout << kAsking << std::flush;
      here->fitted.emplace(options, options.ranks);
    }
    return kLoads;
  } catch (const std::invalid_argument& error) {  // what else is thrown, the suite has failed
    return error.what();
  }
}

void RefuseOnAll(JobJudge& judge, const std::string& problem) {
  if (const std::string why = judge.Broadcast(problem); !why.empty()) throw JobRefused(why);
}

// Rank 0 chooses, which takes a second of its processor; the others are told.
std::vector<Case> Select(const Options& options, JobJudge& judge, Chosen* here,
                         std::vector<std::string>* facts) {
  std::vector<Case> cases;
  std::string problem;
  try {
    if (judge.reports()) cases = here->fitted ? here->fitted->Cases() : SelectCases(options, facts);
    RequireRankOfFault(options, cases);
  } catch (const std::invalid_argument& error) {
    problem = error.what();
  }
  RefuseOnAll(judge, problem);
  const std::string ids = judge.Broadcast(IdsOf(cases));
  return judge.reports() ? cases : CasesOf(ids);
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

// Of a shard in which the engine takes no legal case: whether it takes one of another shard.
void LookElsewhere(const Options& options, JobJudge& judge, Chosen& here) {
  const FittedRun* fitted = here.fitted ? &*here.fitted : nullptr;
  for (const Case& c : CasesOfAllShards(options, fitted, options.ranks)) {
    if (here.reporter->Enough()) return;
    const CaseReport report = judge.Lead({c}).front();
    if (!IsTaken(report)) continue;
    here.reporter->report().taken_elsewhere = report.id;
    return;
  }
}

std::vector<CaseReport> LeadUpTo(JobJudge& judge, const std::vector<Case>& cases,
                                 const IsLast& last) {
  if (!last) return judge.Lead(cases);
  std::vector<CaseReport> reports;
  for (const Case& c : cases) {
    reports.push_back(judge.Lead({c}).front());
    if (last(reports.back())) break;
  }
  return reports;
}

// At the end of a run whose further cases depend on the engine, on all processes.
void Conclude(const Options& options, size_t cases, JobJudge& judge, Chosen& here) {
  if (!judge.reports()) return judge.Follow();
  Reporter& reporter = *here.reporter;
  std::vector<CaseReport> more;
  if (here.fitted) {
    if (AsksOn(options, reporter.Enough(), reporter.OutOfTime())) {
      more = here.fitted->AskOn(
          [&](const auto& some, const IsLast& last) { return LeadUpTo(judge, some, last); });
    } else {
      reporter.report().cut_short = kNotAskedOn;
    }
  }
  size_t place = cases;
  for (CaseReport& further : more) reporter.CaseDone(++place, std::move(further));
  if (!options.shard.empty() && reporter.NothingTaken()) LookElsewhere(options, judge, here);
  judge.EndLead();
  if (here.fitted) here.fitted->Conclude(&reporter.report());
}

}  // namespace

int RunInJob(const Options& options, JobJudge& judge, const std::vector<std::string>& facts) {
  Chosen here;
  const bool reports = judge.reports();
  const std::string answer = judge.Broadcast(reports ? AskEngine(options, &here) : "");
  if (answer != kLoads && answer != kBreaks) throw JobRefused(answer);
  RunReport report = ReportFor(options);
  report.facts.insert(report.facts.end(), facts.begin(), facts.end());
  report.engine = here.probe.name;
  std::vector<Case> cases;
  if (answer == kLoads) cases = Select(options, judge, &here, &report.facts);
  if (here.fitted && !here.fitted->Seeds().empty()) std::cout << here.fitted->Seeds() << std::endl;
  RefuseOnAll(judge, reports ? Open(options, std::move(report), cases.size(), &here.reporter) : "");
  if (const auto row = RowOf(here.probe, options)) here.reporter->CaseDone(cases.size(), *row);
  const auto done = [&](size_t place, CaseReport row) {
    if (here.fitted) here.fitted->CaseDone(place, cases[place], row);
    here.reporter->CaseDone(place, std::move(row));
  };
  judge.Judge(cases, done, [&] { return here.reporter->Enough(); });
  const bool goes_on = reports && (here.fitted || !options.shard.empty());
  if (judge.Broadcast(goes_on ? "on" : "over") == "on")
    Conclude(options, cases.size(), judge, here);
  int code = 0;
  const bool planted = !judge.Broadcast(options.fault).empty();
  const bool struck = planted && judge.Any(FaultStruck(options));
  if (reports) {
    TellFault(options, struck, &here.reporter->report());
    for (std::string& fact : judge.Facts())
      here.reporter->report().facts.push_back(std::move(fact));
    code = here.reporter->Finish();
  }
  return std::stoi(judge.Broadcast(std::to_string(code)));
}

}  // namespace shardproof
