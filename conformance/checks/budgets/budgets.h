// budgets.h: does an engine spend no more memory, traffic and host time than its strategy needs?
//
// Of what no other family bounds: unreduced gradients, pinned memory, bytes and kinds of
// collectives, collectives that nobody needs, waits of the host. Each bound is that of the most
// generous published system (abi/KNOBS.md, "Budgets"). Judges BU-01 to BU-07.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckBudgets(const Analysis& a);

// Its parts. Units whose gradients are in memory whole, in one backward.
CheckResult CheckGradientPeak(const Analysis& a);
// Pinned memory over steps.
CheckResult CheckPinned(const Analysis& a);
// Bytes that carry nothing, and bytes that are sent twice.
CheckResult CheckWire(const Analysis& a);
// Collectives whose results nobody needs.
CheckResult CheckPurpose(const Analysis& a);
// How often the host waits for the device.
CheckResult CheckHostWaits(const Analysis& a);

}  // namespace shardproof
