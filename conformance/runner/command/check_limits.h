// check_limits.h: how does judging a trace from anywhere end in a stated time and memory?
#pragma once
#include <cstdint>

namespace shardproof {

// From here on this process gets at most so much address space and processor time (0: no limit).
// More memory: std::bad_alloc. More time: a sentence on stderr, and the process ends with status 3.
// Throws std::invalid_argument if the system refuses. Limits stay until the process ends.
void LimitCheck(int64_t most_mib, int64_t most_seconds);

// What was freed stays with the process: part after part of a run needs as much again, and pages
// that go back to the system are faulted in anew.
void KeepFreedMemory();

}  // namespace shardproof
