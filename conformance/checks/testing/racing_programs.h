// racing_programs.h: which random programs put the race check to the test?
//
// Two or three ranks of one to three host threads; collectives, messages and groups on streams, and
// collectives that block the host or run as requests, in orders that differ by rank; records,
// waits, syncs and hand-overs; few accesses to few bytes. Operations that meet are the same, and a
// stream, event, communicator or request goes from thread to thread by hand-overs only. Some can
// hang.
#pragma once
#include <random>

#include "conformance/checks/testing/deadlock_programs.h"

namespace shardproof::graph {

DeadlockProgram DrawRacingProgram(std::mt19937& random);

// From the environment, SHARDPROOF_RACE_PROGRAMS and SHARDPROOF_RACE_SEED, so that one run can be
// long; else as given.
struct Draws {
  int programs = 0;
  unsigned seed = 0;
};
Draws WantedDraws(const Draws& otherwise);

// "all_gather c0 s1 write=b0[0,32); kernel s1 // host all_reduce c2": threads, and ranks in lines.
std::string ToText(const DeadlockProgram& program);

}  // namespace shardproof::graph
