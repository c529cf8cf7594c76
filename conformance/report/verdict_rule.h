// verdict_rule.h: when is a case passed, and when is an engine conformant?
//
// The one rule, for `run` and `check`, for all levels of recording and all fabrics.
//
// A case, or a recorded trace, is
//   fail           if a finding is open, that is: not waived;
//   not-checkable  else, if nothing was judged;
//   partial        else, if evidence for some requirement is missing, or a waived finding kept it
//                  from being judged: a waiver excuses its finding, not what was not looked at;
//   waived         else, if there is a finding;
//   pass           else.
// What is not asked (NotCheckable::Kind::kNotAsked) changes nothing. Other statuses (unsupported,
// suite-error) come from the runner. A MUST and a SHOULD count alike.
//
// A run is
//   failed                    if the suite failed in some case;
//   not conformant            if a case failed, the waiver file has a problem, nothing was judged,
//                             or none of the legal cases that were selected was;
//   conformant where judged   if a case is partial or not-checkable;
//   conformant                else.
#pragma once
#include <string>

#include "conformance/report/report.h"

namespace shardproof {

Status StatusOf(const CheckResult& result);
// From findings, judged and not_checkable alone.
Status StatusOf(const CaseReport& report);

enum class RunVerdict : uint8_t { kConformant, kWhereJudged, kNotConformant, kSuiteFailed };
struct Decision {
  RunVerdict verdict = RunVerdict::kNotConformant;
  std::string why;  // of kNotConformant, where the counts of statuses do not say it; else empty
};
Decision Decide(const RunReport& report);
const char* VerdictName(RunVerdict verdict);

// 0 conformant, or where judged if the user allows that; 1 not conformant; 2 the suite failed; 4
// conformant where judged. (3 is an error of usage or input.)
int ExitCode(const RunReport& report);

}  // namespace shardproof
