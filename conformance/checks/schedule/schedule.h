// schedule.h: does a run follow the 1F1B schedule that hides all-to-alls, and does sharding fit
// under it?
//
// Judges EP-01 to EP-38 (requirements/ep.toml) for cases with MoE layers or the overlap knob.
#pragma once
#include "conformance/checks/base/ordering.h"
#include "conformance/checks/schedule/tokens.h"

namespace shardproof {

CheckResult CheckSchedule(const Analysis& a);

// Rows that other families judge under their own ids: what their verdicts mean for such a case.
// result: what those families found.
CheckResult CiteForSchedule(const Analysis& a, const CheckResult& result);

namespace schedule {

// Its checks. They take facts that are built once.
CheckResult CheckGolden(
    const Facts& facts);  // EP-01 to EP-05, EP-38: what is issued, and in which order
CheckResult CheckExchanges(
    const Facts& facts);  // EP-25 to EP-29: all-to-alls among the members of a group
CheckResult CheckRouting(const Facts& facts);      // EP-27, EP-28: rows against the router's choice
CheckResult CheckUnits(const Facts& facts);        // EP-09 to EP-17, EP-36: gathered parameters
CheckResult CheckGradients(const Facts& facts);    // EP-18 to EP-21: reductions
CheckResult CheckActivations(const Facts& facts);  // EP-07, EP-08, EP-36: activations
// By happens-before.
CheckResult CheckHiding(
    const Facts& facts,
    const Ordering& ordering);  // EP-06, EP-33: what must be ordered, what must not
CheckResult CheckBuffers(const Facts& facts,
                         const Ordering& ordering);  // EP-07, EP-10, EP-12, EP-19, EP-24: memory

}  // namespace schedule
}  // namespace shardproof
