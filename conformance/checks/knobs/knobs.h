// knobs.h: does an engine do what the knobs that it read promise?
//
// Of knobs whose promise no other family judges (abi/KNOBS.md says what each promises). What a knob
// changes may be invisible in results: a run whose numbers are right shows nothing of a recompute
// that never was. The evidence is what the promise says, not how the reference keeps it. Judges
// KN-01 to KN-16.
#pragma once
#include "conformance/checks/base/analysis.h"

namespace shardproof {

CheckResult CheckKnobs(const Analysis& a);

// Its parts. Over which ranks, averaged, and how many elements at once: gathers and reductions.
CheckResult CheckTravels(const Analysis& a);
// Units between their forward and their backward.
CheckResult CheckReshard(const Analysis& a);
// Buffers that units take in turn.
CheckResult CheckDoubleBuffers(const Analysis& a);
// Copies of parameters that backward alone reads.
CheckResult CheckBackwardCopies(const Analysis& a);
// Of an instance that gathers copies of which backward reads some: KN-15 and KN-16.
std::set<std::string> ShownWithBackwardCopies(const InstanceFacts& facts);
// Units under the 1F1B overlap: whole, or module by module.
CheckResult CheckFineGrained(const Analysis& a);
// Activations that are computed again.
CheckResult CheckRecompute(const Analysis& a);
// What backward begins with.
CheckResult CheckLossScale(const Analysis& a);
// Streams of all-to-alls, and combined steps of interleaved pipelines.
CheckResult CheckOverlapKnobs(const Analysis& a);

}  // namespace shardproof
