// Does the linear search for races miss none and invent none?
//
// On random programs, held against trying all pairs. One recorded run of 100,000:
//
//   bazel test --test_output=all --test_env=SHARDPROOF_RACE_PROGRAMS=100000
//       //conformance/checks/graph:race_search_test
//
// SHARDPROOF_RACE_SEED=N draws others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <tuple>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/testing/racing_programs.h"
#include "conformance/common/at.h"

namespace shardproof::graph {
namespace {

constexpr int64_t kSlotBytes = 16;

// 16 bytes of a block of a rank.
using Slot = std::tuple<int32_t, int32_t, int64_t>;

// What two entries of a rank both touch, one of them writing.
std::set<Slot> Conflict(const Program& program, uint32_t a, uint32_t b) {
  std::set<Slot> slots;
  const int32_t rank = program.entries[a].rank;
  for (const Range& x : RangesOf(program, program.entries[a])) {
    for (const Range& y : RangesOf(program, program.entries[b])) {
      if (x.alloc != y.alloc || ((x.access | y.access) & kWrite) == 0) continue;
      const int64_t end = std::min(x.offset + x.length, y.offset + y.length);
      for (int64_t at = std::max(x.offset, y.offset); at < end; at += kSlotBytes)
        slots.insert({rank, x.alloc, at});
    }
  }
  return slots;
}

std::set<Slot> RacingSlots(const Program& program, const std::vector<Race>& races) {
  std::set<Slot> slots;
  for (const Race& race : races) slots.merge(Conflict(program, race.first, race.second));
  return slots;
}

using Pairs = std::set<std::pair<uint32_t, uint32_t>>;

Pairs PairsOf(const Program& program, const std::vector<Race>& races, int32_t rank) {
  Pairs pairs;
  for (const Race& race : races) {
    if (program.entries[race.first].rank == rank) pairs.insert({race.first, race.second});
  }
  return pairs;
}

// Who races with an access that comes before it, and on which bytes?
template <typename Before>
std::set<std::pair<uint32_t, Slot>> Latecomers(const Program& program, const Pairs& races,
                                               Before&& before) {
  std::set<std::pair<uint32_t, Slot>> found;
  for (const auto& [a, b] : races) {
    for (const Slot& slot : Conflict(program, a, b)) found.insert({before(a, b) ? b : a, slot});
  }
  return found;
}

// Conflicting pairs whose later issued access must be over before the earlier issued one starts.
int PairsBackwards(const Program& program, MustOrder& order) {
  int backwards = 0;
  for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
    for (uint32_t b = program.first_entry[rank]; b < program.first_entry[rank + 1]; ++b) {
      for (uint32_t a = program.first_entry[rank]; a < b; ++a)
        backwards += order.Precedes(b, a) && !Conflict(program, a, b).empty();
    }
  }
  return backwards;
}

// What the programs were.
struct Counts {
  int hang = 0, judged = 0;
  int racing = 0, clean = 0;
  int64_t slots = 0;  // that race
  // With a conflicting pair ordered that way.
  int racing_backwards = 0, clean_backwards = 0;
  int threads = 0, host = 0, requests = 0;  // several threads on a rank; on the host

  void Print(unsigned seed) const {
    std::printf(
        "seed %u: %d programs judged, %d more can hang\n"
        "%d race, in %lld slots; %d do not\n"
        "%d of these and %d of those have a pair that is ordered against the order of issue\n"
        "%d have several threads on a rank, %d collectives on the host, %d requests\n",
        seed, judged, hang, racing, static_cast<long long>(slots), clean, racing_backwards,
        clean_backwards, threads, host, requests);
  }

  // A generator that draws nothing of interest shows nothing.
  void ExpectShares() const {
    EXPECT_GE(racing, judged / 4);
    EXPECT_GE(clean, judged / 4);
    EXPECT_GE(racing_backwards, judged / 20);
    EXPECT_GE(clean_backwards, judged / 40);
    EXPECT_GE(threads, judged / 2);
    EXPECT_GE(host, judged / 2);
    EXPECT_GE(requests, judged / 4);
  }
};

// Each pair that was found races; and each access that races with one before it was found to, on
// the same bytes. Before: in issue order, or in an order that agrees with all paths.
void JudgeRank(const Program& program, MustOrder& order, const Pairs& all, const Pairs& found) {
  ASSERT_TRUE(std::includes(all.begin(), all.end(), found.begin(), found.end())) << "invented";
  const auto issued = [](uint32_t a, uint32_t b) { return a < b; };
  if (Latecomers(program, all, issued) == Latecomers(program, found, issued)) return;
  const auto starts = [&](uint32_t a, uint32_t b) {
    return order.StartPlace(a) < order.StartPlace(b);
  };
  ASSERT_EQ(Latecomers(program, all, starts), Latecomers(program, found, starts)) << "missed";
}

void JudgeProgram(const Program& program, Counts& counts) {
  MustOrder order(program);
  const std::vector<Race> all = FindAllRaces(program, order);
  const std::vector<Race> found = FindRaces(program, order, {}).races;
  ASSERT_EQ(FindRaces(program, order, {}, {.rows = 0}).races, found) << "by clocks that are trees";
  for (int32_t rank = 0; rank < Length(program.first_entry) - 1; ++rank) {
    JudgeRank(program, order, PairsOf(program, all, rank), PairsOf(program, found, rank));
    if (testing::Test::HasFatalFailure()) return;
  }
  ASSERT_EQ(RacingSlots(program, found), RacingSlots(program, all)) << "missed";
  ++counts.judged;
  ++(all.empty() ? counts.clean : counts.racing);
  counts.slots += static_cast<int64_t>(RacingSlots(program, all).size());
  if (PairsBackwards(program, order) > 0)
    ++(all.empty() ? counts.clean_backwards : counts.racing_backwards);
  counts.host += program.host_collectives;
  counts.requests += std::any_of(program.entries.begin(), program.entries.end(),
                                 [](const Entry& e) { return e.kind == EntryKind::kHostRequest; });
}

TEST(RaceSearch, MissesNoByteAndInventsNoPair) {
  const Draws draws = WantedDraws({.programs = 4000, .seed = 14});
  std::mt19937 random(draws.seed);
  Counts counts;
  while (counts.judged < draws.programs) {
    const DeadlockProgram drawn = DrawRacingProgram(random);
    SCOPED_TRACE(ToText(drawn));
    const std::vector<Trace> traces = ToTraces(drawn, &random);
    const Program program = Lower(traces);
    ASSERT_EQ(program.unordered_threads, "");
    if (!Safe(program, Profile::kE0)) {
      ++counts.hang;
      continue;
    }
    counts.threads += std::any_of(drawn.ranks.begin(), drawn.ranks.end(),
                                  [](const auto& threads) { return threads.size() > 1; });
    JudgeProgram(program, counts);
    if (HasFatalFailure()) return;
  }
  counts.Print(draws.seed);
  counts.ExpectShares();
}

}  // namespace
}  // namespace shardproof::graph
