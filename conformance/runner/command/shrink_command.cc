// shrink: the smallest case that fails as the one that is named.
#include <iostream>
#include <stdexcept>

#include "conformance/common/safe_text.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/command/sim_cases.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/planted.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/support/shrink.h"

namespace shardproof {

int ShrinkCommand(const Options& options) {
  const Case given = CaseOfId(options.cases.front());
  RequireRankOfFault(options, {given});
  std::cout << VisibleLine(HeaderLine(options)) << std::endl;
  const EngineProbe probe = ProbeEngine(options);
  Reporter reporter(options, ReportFor(options), 1, std::cout, false);
  if (const auto row = RowOf(probe, options)) reporter.CaseDone(1, *row);
  if (!probe.loads) return reporter.Finish();
  SimCases judge(options);
  const CaseReport report = judge.Judge({given}).front();
  const std::string cause = CauseOf(report);
  if (cause.empty()) {
    const std::string why = WhyNotStruck(options, FaultStruck(options));
    throw std::invalid_argument("case " + Id(given) + " is " + StatusName(report.status) +
                                ": only one that fails can be made smaller" +
                                (why.empty() ? "" : "; " + why));
  }
  const auto again = [&](const auto& some, const IsLast& last) { return judge.Judge(some, last); };
  const auto tell = [&](const CaseReport& smaller) {
    std::cout << "also " << cause << ": " << VisibleLine(smaller.id) << std::endl;
  };
  Shrunk found = ShrinkCase(given, report, again, tell);
  reporter.report().facts.push_back("smallest case with " + cause + " first: " + found.report.id +
                                    " (" + std::to_string(found.runs + 1) + " runs)");
  reporter.CaseDone(0, std::move(found.report));
  TellFault(options, FaultStruck(options), &reporter.report());
  return reporter.Finish();
}

}  // namespace shardproof
