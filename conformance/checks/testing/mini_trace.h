// mini_trace.h: what does one rank of the small engine of mini_engine.h leave as its trace?
#pragma once
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {

Trace WriteMiniTrace(const Case& c, const InstanceFacts& facts, int32_t rank,
                     const MiniFaults& faults);

}  // namespace shardproof
