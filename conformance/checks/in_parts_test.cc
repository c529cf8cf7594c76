// Does the graph of a run say the same in parts as whole?
//
// On random programs of several host threads, in parts as small as they can be. One recorded run:
//
//   bazel test --test_output=all --test_env=SHARDPROOF_RACE_PROGRAMS=6000
//       --test_env=SHARDPROOF_RACE_SEED=2026 //conformance/checks:in_parts_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/parts/part_reader.h"
#include "conformance/checks/testing/listed_rows.h"
#include "conformance/checks/testing/racing_programs.h"

namespace shardproof {
namespace {

// What rows another program brings, behind those that are there.
void Append(const Trace& from, int32_t copy, Trace* to) {
  const auto first = [&](auto& pool, const auto& more) {
    const auto begin = static_cast<uint32_t>(pool.size());
    pool.insert(pool.end(), more.begin(), more.end());
    return begin;
  };
  const uint32_t ranges = first(to->ranges, from.ranges),
                 numbers = first(to->numbers, from.numbers);
  const auto shift = [](Slice& slice, uint32_t by) { slice = {slice.begin + by, slice.end + by}; };
  for (Event event : from.events) {
    constexpr int32_t kNumbers = 1000;  // of requests and hand-overs of one program, at most
    shift(event.ranges, ranges);
    shift(event.send_counts, numbers);
    shift(event.recv_counts, numbers);
    if (event.request >= 0) event.request += copy * kNumbers;
    if (event.kind == EventKind::kRequestWait || event.kind == EventKind::kThreadPost ||
        event.kind == EventKind::kThreadAwait)
      event.id += copy * kNumbers;
    to->events.push_back(event);
  }
}

// Between two programs of a rank: mostly all threads wait for everything and go on from there.
class Barrier {
 public:
  Barrier(std::mt19937& random, int32_t copy, Trace* to)
      : random_(random), next_(1'000'000 + copy * 100), to_(to) {}

  void Add() {
    std::set<uint16_t> threads;
    for (const Event& event : to_->events) threads.insert(event.thread);
    threads.erase(0);
    for (const uint16_t thread : threads) HandOver(thread, 0, 12);
    Finish();
    Event sync;
    sync.kind = EventKind::kDeviceSync;
    if (OneIn(6)) sync.kind = EventKind::kStreamSync, sync.stream = Pick(3);
    if (!OneIn(12)) to_->events.push_back(sync);
    for (const uint16_t thread : threads) HandOver(0, thread, 12);
  }

 private:
  int32_t Pick(int32_t n) { return static_cast<int32_t>(random_() % static_cast<uint32_t>(n)); }
  bool OneIn(int32_t n) { return Pick(n) == 0; }
  // What is still under way.
  void Finish() {
    std::set<int32_t> open;
    for (const Event& event : to_->events) {
      if (event.request >= 0) open.insert(event.request);
      if (event.kind == EventKind::kRequestWait) open.erase(event.id);
    }
    for (const int32_t request : open) {
      Event wait;
      wait.kind = EventKind::kRequestWait;
      wait.id = request;
      if (!OneIn(40)) to_->events.push_back(wait);
    }
  }
  // One of so many is left out.
  void HandOver(uint16_t from, uint16_t to, int32_t n) {
    if (OneIn(n)) return;
    Event event;
    event.kind = EventKind::kThreadPost;
    event.id = next_++;
    event.thread = from;
    to_->events.push_back(event);
    event.kind = EventKind::kThreadAwait;
    event.thread = to;
    to_->events.push_back(event);
  }

  std::mt19937& random_;
  int32_t next_;
  Trace* to_;
};

// Mostly one without a finding: else few runs of several would have none.
std::vector<Trace> DrawProgram(std::mt19937& random) {
  const bool any = random() % 8 == 0;
  while (true) {
    std::vector<Trace> traces = ToTraces(graph::DrawRacingProgram(random), &random);
    if (any || CheckGraph(traces).findings.empty()) return traces;
  }
}

std::vector<Trace> DrawLongRun(std::mt19937& random) {
  std::vector<Trace> run = DrawProgram(random);
  const int32_t programs = 2 + static_cast<int32_t>(random() % 3);
  for (int32_t copy = 1; copy < programs;) {
    const std::vector<Trace> more = DrawProgram(random);
    if (more.size() != run.size()) continue;
    for (size_t rank = 0; rank < run.size(); ++rank) {
      Barrier(random, copy, &run[rank]).Add();
      Append(more[rank], copy, &run[rank]);
    }
    ++copy;
  }
  return run;
}

struct InParts {
  std::string whole;  // why nothing follows
  int64_t parts = 0;
  bool finds = false;
  std::set<std::string> judged;
  int32_t spin = 0;
  bool exact = true;
};

InParts GraphInParts(const std::vector<Trace>& run, int64_t least) {
  parts::PartReader reader(ListRows(run), {.least = least, .carried = 0});
  InParts said;
  std::set<std::string> open;  // in the part before
  for (std::vector<Trace> part = reader.Next(); !part.empty(); part = reader.Next()) {
    const CheckResult result = CheckGraph(part);
    said.finds |= !result.findings.empty();
    said.judged.insert(result.judged.begin(), result.judged.end());
    std::set<std::string> missing;
    for (const NotCheckable& row : result.not_checkable) missing.insert(row.requirement);
    if (said.parts++ > 0 && missing != open) said.whole = "evidence is missing in one part alone";
    open = std::move(missing);
    if (result.slots) said.spin = std::max(said.spin, result.slots->spin);
    if (result.slots) said.exact = said.exact && result.slots->exact;
  }
  if (!reader.whole().empty()) said.whole = reader.whole();
  return said;
}

TEST(InPartsTest, RandomProgramsSayTheSameInPartsAsWhole) {
  const graph::Draws draws = graph::WantedDraws({.programs = 1500, .seed = 7});
  std::mt19937 random(draws.seed);
  int whole = 0, several = 0, clean = 0;
  for (int i = 0; i < draws.programs; ++i) {
    const std::vector<Trace> run = DrawLongRun(random);
    const InParts got = GraphInParts(run, 1 + static_cast<int64_t>(random() % 40));
    if (!got.whole.empty()) {
      ++whole;
      continue;
    }
    const CheckResult want = CheckGraph(run);
    several += got.parts > 1;
    clean += got.parts > 1 && !got.finds;
    // Where hosts and streams race for the order of issue there is nothing to judge.
    ASSERT_EQ(got.finds, !want.findings.empty())
        << "program " << i << " of seed " << draws.seed << " in " << got.parts
        << " parts: " << (want.findings.empty() ? "" : want.findings.front().message);
    if (got.finds) continue;
    ASSERT_EQ(got.judged, want.judged) << "program " << i << " of seed " << draws.seed;
    if (want.slots && want.slots->exact && got.exact) {
      ASSERT_EQ(got.spin, want.slots->spin) << "program " << i << " of seed " << draws.seed;
    }
  }
  std::printf("seed %u: %d programs; %d in several parts, %d of them without a finding; %d whole\n",
              draws.seed, draws.programs, several, clean, whole);
  EXPECT_GT(several, draws.programs / 20);
  EXPECT_GT(clean, draws.programs / 40);
}

}  // namespace
}  // namespace shardproof
