// judge.h: what is the verdict on one case, given its run and those of its partners?
//
// Pure functions: nothing is run or written here.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/case.h"
#include "conformance/checks/base/check.h"
#include "conformance/report/report.h"
#include "conformance/runner/partners.h"

namespace shardproof {

using Outcome = Status;

struct Verdict {
  Outcome outcome = Outcome::kSuiteError;
  std::string reason;  // why unsupported, not checkable, or what failed in the suite
  CheckResult result;
  std::vector<uint64_t> timings;                // hashes of the timings that it rests on; sim only
  std::map<int32_t, std::string> printed = {};  // by the engine, by rank
  std::map<size_t, std::string> drawings = {};  // of findings, by place (report/html/drawing.h)
  // Of findings that compare two runs, by place: the id of the other run's case.
  std::map<size_t, std::string> partners = {};
};

// How a partner of the case ran.
struct PartnerRun {
  const Partner* partner;
  Run run;  // run.spec is &partner->spec
};

// Requirements with findings that only warn: each is a SHOULD.
std::set<std::string> WarningsOf(const CheckResult& result);

// Expected results from the oracle, then every check. run.spec and run.oracles are not read. What
// only partners can show is not asked. A case that the engine declines is judged as far as it was
// run, and is unsupported only if nothing was found.
// kNotKept: what compares numbers is not asked, and no oracle trains (fabric/dry).
enum class Numbers : uint8_t { kKept, kNotKept };
Verdict JudgeRun(const Case& c, const Run& run, Numbers numbers = Numbers::kKept);

// The verdict when the runs of partners count too: each must agree with the case's run.
// REQUIRES: alone is the verdict on run, a pass or partial, with warnings or without; run.spec is
// the case.
Verdict JudgeWithPartners(Verdict alone, const Run& run, const std::vector<PartnerRun>& partners);

// The verdict when a requirement has been judged in further runs: in its place stands what they
// say. REQUIRES: alone is good.
Verdict JudgeWithFurther(Verdict alone, const std::string& requirement, CheckResult further);

// A pass, or what of it was judged.
bool IsGood(const Verdict& verdict);
// Says of a verdict on one leg of a case which it is: the first is 0.
void NameLeg(size_t leg, const Case& c, Verdict* verdict);

// Of a run that must agree with one that ended well: the first rank that did not end well, if any.
std::optional<Finding> EndedBadly(const Run& run, const std::string& requirement);

// The verdict on the traces of somebody else's program: only what needs no case is judged.
Verdict JudgeForeign(Run run);

// The same, where the checks have spoken and found nothing to draw.
Verdict VerdictOn(CheckResult result);

// The verdict on a run of which nothing was recorded.
Verdict NothingRecorded();

}  // namespace shardproof
