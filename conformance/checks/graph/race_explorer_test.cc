// Do accesses race exactly if they can run at the same time?
//
// Random programs run without the checks' help, with one access held for ever: what starts
// nevertheless is not ordered behind it. race_search_test says how to run more.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/testing/explorer.h"
#include "conformance/checks/testing/racing_programs.h"

namespace shardproof::graph {
namespace {

// The entries of a program, as calls of the threads that the explorer reads.
std::vector<Explorer::Work> WorkOf(const Program& program) {
  std::vector<Explorer::Work> work;
  for (uint32_t e = 0; e < program.entries.size(); ++e) {
    const Entry& entry = program.entries[e];
    const Trace& trace = program.trace(entry.rank);
    Explorer::Work one{entry.rank, entry.thread, 0, -1};
    for (uint32_t i = 0; i < entry.event; ++i) one.call += trace.events[i].thread == entry.thread;
    if (entry.on_device()) {
      const bool next = e > 0 && program.entries[e - 1].rank == entry.rank &&
                        program.entries[e - 1].event == entry.event;
      one.item = next ? work[e - 1].item + 1 : 0;  // several kernels of a group
    }
    work.push_back(one);
  }
  return work;
}

struct Counts {
  int programs = 0;
  int64_t pairs = 0, racing = 0, backwards = 0;
};

void JudgeRank(const Program& program, const Explorer& explorer, size_t rank, Counts& counts) {
  const std::vector<Explorer::Work> work = WorkOf(program);
  MustOrder order(program);
  std::vector<uint32_t> entries;  // that access something
  for (uint32_t e = program.first_entry[rank]; e < program.first_entry[rank + 1]; ++e) {
    if (!RangesOf(program, program.entries[e]).empty()) entries.push_back(e);
  }
  for (const uint32_t b : entries) {
    for (const uint32_t a : entries) {
      if (a == b) break;
      const bool forwards = order.Precedes(a, b), backwards = order.Precedes(b, a);
      ASSERT_EQ(forwards, !explorer.StartsWithout(work[b], work[a])) << a << ", " << b;
      ASSERT_EQ(backwards, !explorer.StartsWithout(work[a], work[b])) << b << ", " << a;
      ++counts.pairs;
      counts.racing += !forwards && !backwards;
      counts.backwards += backwards;
    }
  }
}

TEST(RaceExplorer, WhatMustBeOverFirstIsWhatNothingStartsWithout) {
  const Draws draws = WantedDraws({.programs = 3000, .seed = 5});
  std::mt19937 random(draws.seed);
  Counts counts;
  while (counts.programs < draws.programs) {
    const DeadlockProgram drawn = DrawRacingProgram(random);
    SCOPED_TRACE(ToText(drawn));
    const std::vector<Trace> traces = ToTraces(drawn, &random);
    const Program program = Lower(traces);
    if (!Safe(program, Profile::kE0)) continue;
    ++counts.programs;
    const Explorer explorer(drawn);
    for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
      JudgeRank(program, explorer, rank, counts);
      if (HasFatalFailure()) return;
    }
  }
  std::printf(
      "seed %u: %d programs, %lld pairs of accesses: %lld in no order, %lld against the order of "
      "issue\n",
      draws.seed, counts.programs, static_cast<long long>(counts.pairs),
      static_cast<long long>(counts.racing), static_cast<long long>(counts.backwards));
  EXPECT_GT(counts.racing, counts.pairs / 10);
  EXPECT_GT(counts.backwards, counts.pairs / 100);
}

}  // namespace
}  // namespace shardproof::graph
