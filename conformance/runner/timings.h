// timings.h: does a case give the same results under many timings?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/runner/judge.h"
#include "conformance/runner/sim_run.h"

namespace shardproof {

struct TimingRange {
  uint64_t first_seed = 1;
  int count = 0;
};

// The seeds after the first, in pieces for workers: each piece runs the first timing again to
// compare with.
std::vector<TimingRange> SplitTimings(uint64_t first_seed, int timings, int jobs);

// Runs the case under options (the timing that everything is compared with), then under each seed
// of the range, and compares results and sequences of collectives (GE-32). A run that does not come
// to its end is judged like any other. mixed: seeds alternate between random and pct, else all have
// options.policy. Stops at the first timing that differs and says how to run it again.
Verdict CompareTimings(const Case& c, const RunCase& run, const SimRunOptions& options,
                       const TimingRange& range, bool mixed);

// Adds what a range said to the verdict on the case itself.
void MergeTimings(const Verdict& range, Verdict* verdict);
// Says in a note how many timings agreed.
void NoteTimings(int timings, const std::string& which, Verdict* verdict);

}  // namespace shardproof
