// verdict_rule.h: when is a case passed, and when is an engine conformant?
//
// The one rule, for `run` and `check`, for all levels of recording and all fabrics.
//
// A case, or a recorded trace, is
//   fail           if a finding is open, that is: not waived, and no warning;
//   not-checkable  else, if nothing was judged;
//   partial        else, if evidence for some requirement is missing, or a waived finding kept it
//                  from being judged: a waiver excuses its finding, not what was not looked at;
//   waived         else, if a finding is waived;
//   bounded        else, if the engine's optimizer rounds by itself, and says so: parameters were
//                  judged within a bound, all else as for pass;
//   pass           else.
// What is not asked (NotCheckable::Kind::kNotAsked) changes nothing. Other statuses (unsupported,
// suite-error) come from the runner.
//
// A finding of a MUST is never a warning. One of a SHOULD is: it is told and counted, and changes
// no status and no exit code. With --strict a SHOULD counts as a MUST.
//
// A run is
//   failed                    if the suite failed in some case;
//   not conformant            if a case failed, the run has a problem (a waiver, a capability file,
//                             a fault that never struck), nothing was judged,
//                             or none of the legal cases that were selected was;
//   conformant where judged   if a case is partial or not-checkable, or cases were left out for
//                             want of time (--time-budget);
//   conformant within bounds  if a case is bounded;
//   conformant                else.
// A shard in which the engine takes no case has nothing to judge, and is not red, if the engine
// takes some case of another shard: that is tried.
#pragma once
#include <set>
#include <string>

#include "conformance/report/report.h"

namespace shardproof {

// warnings: requirements whose findings are warnings.
Status StatusOf(const CheckResult& result, const std::set<std::string>& warnings);
// From findings, judged and not_checkable alone.
Status StatusOf(const CaseReport& report);
// Of a case whose findings have become other than they were: waived, or strict. An engine that
// declined the case has failed it only if a finding is open; a suite that failed has no verdict.
Status StatusAfter(Status before, const CaseReport& report);

enum class RunVerdict : uint8_t {
  kNothingHere,  // of a shard
  kConformant,
  kWithinBounds,
  kWhereJudged,
  kNotConformant,
  kSuiteFailed
};
struct Decision {
  RunVerdict verdict = RunVerdict::kNotConformant;
  std::string why;  // where the counts of statuses do not say it; else empty
};
Decision Decide(const RunReport& report);
// Whether the engine took a legal case, well or badly.
bool IsTaken(const CaseReport& report);
const char* VerdictName(RunVerdict verdict);
// Of a report; a name that this suite does not know is kSuiteFailed, as bad as can be.
RunVerdict VerdictNamed(const std::string& name);

// 0 conformant, within bounds too, nothing to judge in a shard, or where judged if the user allows
// that; 1 not conformant; 2 the suite failed; 4 conformant where judged. (3 is an error of usage or
// input.)
int ExitCode(RunVerdict verdict, bool allow_partial);
int ExitCode(const RunReport& report);

}  // namespace shardproof
