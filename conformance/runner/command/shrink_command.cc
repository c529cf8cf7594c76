// shrink: the smallest case that fails as the one that is named.
#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "conformance/cases/support/simpler_cases.h"
#include "conformance/common/safe_text.h"
#include "conformance/runner/chosen.h"
#include "conformance/runner/command/run_command.h"
#include "conformance/runner/command/sim_cases.h"
#include "conformance/runner/isolation/probe.h"
#include "conformance/runner/reporter.h"
#include "conformance/runner/reporting.h"
#include "conformance/runner/support/shrink.h"

namespace shardproof {
namespace {

struct Smallest {
  Case c;
  CaseReport report;
  size_t runs = 1;
};

// Goes to the first simpler case with the same cause, if there is one.
bool Step(SimCases& judge, const std::string& cause, Smallest* found) {
  const std::vector<Case> simpler = SimplerCases(found->c);
  const size_t batch = 2 * judge.jobs();
  for (size_t first = 0; first < simpler.size(); first += batch) {
    const std::vector<Case> some(
        simpler.begin() + static_cast<ptrdiff_t>(first),
        simpler.begin() + static_cast<ptrdiff_t>(std::min(first + batch, simpler.size())));
    std::vector<CaseReport> reports = judge.Judge(some);
    found->runs += some.size();
    for (size_t i = 0; i < reports.size(); ++i) {
      if (CauseOf(reports[i]) != cause) continue;
      *found = {some[i], std::move(reports[i]), found->runs};
      return true;
    }
  }
  return false;
}

}  // namespace

int ShrinkCommand(const Options& options) {
  const Case given = CaseOfId(options.cases.front());
  std::cout << VisibleLine(HeaderLine(options)) << std::endl;
  const EngineProbe probe = ProbeEngine(options);
  Reporter reporter(options, ReportFor(options), 1, std::cout, false);
  if (const auto row = RowOf(probe, options)) reporter.CaseDone(1, *row);
  if (!probe.loads) return reporter.Finish();
  SimCases judge(options);
  Smallest found{given, judge.Judge({given}).front()};
  const std::string cause = CauseOf(found.report);
  if (cause.empty()) {
    throw std::invalid_argument("case " + Id(given) + " is " + StatusName(found.report.status) +
                                ": only one that fails can be made smaller");
  }
  while (Step(judge, cause, &found)) {
    std::cout << "also " << cause << ": " << VisibleLine(found.report.id) << std::endl;
  }
  reporter.report().facts.push_back("smallest case with " + cause + " first: " + found.report.id +
                                    " (" + std::to_string(found.runs) + " runs)");
  reporter.CaseDone(0, std::move(found.report));
  return reporter.Finish();
}

}  // namespace shardproof
