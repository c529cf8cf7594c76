#include "conformance/runner/command/run_sim.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/common/safe_text.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/command/sim_cases.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/planted.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/selection.h"
#include "conformance/runner/support/fitted_run.h"

namespace shardproof {

namespace {

// Of a shard in which the engine takes no legal case: whether it takes one of another shard. Each
// is asked, up to the first.
void LookElsewhere(const Options& options, const FittedRun* fitted, SimCases& judge,
                   Reporter& reporter) {
  const std::vector<Case> all = CasesOfAllShards(options, fitted, 0);
  const auto batch = static_cast<size_t>(2 * judge.jobs());
  for (size_t first = 0; first < all.size() && !reporter.Enough(); first += batch) {
    const std::vector<Case> some(
        all.begin() + static_cast<ptrdiff_t>(first),
        all.begin() + static_cast<ptrdiff_t>(std::min(first + batch, all.size())));
    for (const CaseReport& c : judge.Judge(some)) {
      if (!IsTaken(c)) continue;
      reporter.report().taken_elsewhere = c.id;
      return;
    }
  }
}

// Of random cases a batch runs whole, unless the time is over: which cases run does not depend on
// which worker is first.
void JudgeInBatches(const Options& options, const std::vector<Case>& cases, SimCases& judge,
                    const std::function<void(size_t place, CaseReport report)>& done,
                    Reporter& reporter) {
  constexpr size_t kRandomBatch = 20;
  const bool random = options.random > 0;
  const size_t batch = random ? kRandomBatch : cases.size();
  const auto enough = [&] {
    reporter.Tick();
    return reporter.Enough() && (!random || reporter.OutOfTime());
  };
  for (size_t first = 0; first < cases.size() && !reporter.Enough(); first += batch) {
    const auto end = cases.begin() + std::ptrdiff_t(std::min(first + batch, cases.size()));
    const std::vector<Case> some(cases.begin() + std::ptrdiff_t(first), end);
    judge.Judge(
        some, [&](size_t place, CaseReport row) { done(first + place, std::move(row)); }, enough);
  }
}

// At the end of a run whose cases depend on the engine.
void Conclude(const Options& options, size_t cases, FittedRun& fitted, SimCases& judge,
              Reporter& reporter) {
  const auto again = [&](const auto& some, const IsLast& last) { return judge.Judge(some, last); };
  size_t place = cases;
  if (AsksOn(options, reporter.Enough(), reporter.OutOfTime())) {
    for (CaseReport& further : fitted.AskOn(again)) reporter.CaseDone(++place, std::move(further));
  } else {
    reporter.report().cut_short = kNotAskedOn;
  }
  fitted.Conclude(&reporter.report());
}

}  // namespace

int RunSimCommand(const Options& options) {
  if (!options.quiet)
    std::cout << VisibleLine(HeaderLine(options)) << std::endl;  // what follows takes seconds
  RunReport report = ReportFor(options);
  const EngineProbe probe = ProbeEngine(options);
  report.engine = probe.name;
  if (!options.quiet && !probe.name.empty())
    std::cout << "engine: " << VisibleLine(probe.name) << std::endl;
  std::optional<FittedRun> fitted;
  if (probe.loads && IsFitted(options)) {
    if (WillAsk(options) && !options.quiet) std::cout << kAsking << std::flush;
    fitted.emplace(options, 0);
  }
  const std::vector<Case> cases = fitted ? fitted->Cases() : SelectCases(options, &report.facts);
  if (fitted && !fitted->Seeds().empty()) std::cout << fitted->Seeds() << "\n" << std::flush;
  RequireRankOfFault(options, cases);
  if (options.queues > 0)
    report.facts.push_back("hardware queues a rank: " + std::to_string(options.queues));
  Reporter reporter(options, std::move(report), cases.size(), std::cout,
                    isatty(STDOUT_FILENO) != 0);
  if (const auto row = RowOf(probe, options)) reporter.CaseDone(cases.size(), *row);
  if (!probe.loads) return reporter.Finish();
  SimCases judge(options);
  const auto done = [&](size_t place, CaseReport row) {
    if (fitted) fitted->CaseDone(place, cases[place], row);
    reporter.CaseDone(place, std::move(row));
  };
  JudgeInBatches(options, cases, judge, done, reporter);
  if (options.timings > 1) {
    reporter.report().facts.push_back("timings: " + std::to_string(options.timings) +
                                      " of each case, " + std::to_string(judge.different()) +
                                      " different in all");
  }
  if (fitted) Conclude(options, cases.size(), *fitted, judge, reporter);
  if (!options.shard.empty() && reporter.NothingTaken())
    LookElsewhere(options, fitted ? &*fitted : nullptr, judge, reporter);
  TellFault(options, FaultStruck(options), &reporter.report());
  return reporter.Finish();
}

}  // namespace shardproof
