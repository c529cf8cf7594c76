// Does a run say the same in parts as whole?
//
// On random programs of several host threads, in parts as small as they can be, and on a long run
// of an engine in which one row is changed. One recorded run of 200,000 programs:
//
//   bazel test --test_output=all --test_env=SHARDPROOF_RACE_PROGRAMS=200000
//       //conformance/checks:in_parts_test
//
// SHARDPROOF_RACE_SEED=N draws others.
#include "conformance/checks/in_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/parts/part_reader.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/testing/listed_rows.h"
#include "conformance/checks/testing/racing_programs.h"
#include "conformance/checks/testing/replicate.h"
#include "conformance/trace/trace_builder.h"

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

using Row = std::tuple<std::string, std::string, int>;
struct Said {
  bool finds = false;
  std::set<std::string> judged;
  std::set<Row> rows;
  std::vector<std::string> notes;
  bool operator==(const Said&) const = default;
};
Said SaidBy(const CheckResult& result) {
  Said said{!result.findings.empty(), result.judged, {}, result.notes};
  for (const NotCheckable& row : result.not_checkable)
    said.rows.emplace(row.requirement, row.why, static_cast<int>(row.kind));
  return said;
}
std::string Text(const Said& said) {
  std::string text = said.finds ? "finds" : "finds nothing";
  for (const std::string& id : said.judged) text += " " + id;
  for (const auto& [id, why, kind] : said.rows) text += "\n" + id + ": " + why;
  for (const std::string& note : said.notes) text += "\n" + note;
  return text;
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

// Steps of a sharded engine; at the end of each the host waits for all streams, as a loop that
// reads its loss.
std::vector<Trace> Steps(int32_t ranks, int64_t events) {
  std::vector<Trace> step = graph::SyntheticRun(ranks, 2, false);
  for (Trace& trace : step) {
    trace.case_id = "a program";
    trace.provides.calls = false;
    Event sync;
    sync.kind = EventKind::kDeviceSync;
    trace.events.push_back(sync);
  }
  return graph::Replicate(step, events);
}

// What CheckAll says, and what the parts say, if they do.
void ExpectAlike(const std::vector<Trace>& run, int64_t least, InParts* got) {
  *got = {};
  parts::PartReader reader(ListRows(run), {.least = least, .carried = 0});
  PartsVerdict verdict;
  for (std::vector<Trace> part = reader.Next(); !part.empty(); part = reader.Next())
    verdict.Add(CheckPart(std::move(part)));
  got->parts = reader.parts();
  got->whole = reader.whole().empty() ? verdict.whole() : reader.whole();
  if (!got->whole.empty()) return;
  const Said want = SaidBy(CheckAll(Run{nullptr, run, {}, {}}));
  const Said said = SaidBy(std::move(verdict).Conclude(reader.Ends(), {}));
  EXPECT_EQ(said, want) << Text(said) << "\n-- whole --\n" << Text(want);
}

TEST(InPartsTest, ALongRunIsJudgedInManyPartsAndSaysTheSame) {
  InParts got;
  ExpectAlike(Steps(2, 3000), 100, &got);
  EXPECT_EQ(got.whole, "");
  EXPECT_GT(got.parts, 10);
}

bool FindsSomething(const std::vector<Trace>& run) {
  return !CheckAll(Run{nullptr, run, {}, {}}).findings.empty();
}

// One row of rank 1 is changed: left out, put elsewhere, given another stream or number.
void ChangeARow(std::mt19937& random, Trace* trace) {
  std::vector<Event>& events = trace->events;
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const auto at = events.begin() + static_cast<std::ptrdiff_t>(pick(events.size()));
  switch (pick(6)) {
    case 0:
      events.erase(at);
      break;
    case 1:
      std::swap(*at, events[pick(events.size())]);
      break;
    case 2:
      if (at->stream >= 0) at->stream = static_cast<int32_t>(pick(3));
      break;
    case 3:
      if (at->event >= 0)
        at->event = static_cast<int32_t>(pick(static_cast<size_t>(at->event) + 1));
      break;
    case 4:
      if (at->alloc >= 0)
        at->alloc = static_cast<int32_t>(pick(static_cast<size_t>(at->alloc) + 1));
      break;
    default:
      if (!at->ranges.empty()) {
        Range& range = trace->ranges[at->ranges.begin];
        range.alloc = static_cast<int32_t>(pick(static_cast<size_t>(range.alloc) + 1));
      }
  }
}

TEST(InPartsTest, WithOneRowChangedNothingIsMissed) {
  std::mt19937 random(11);
  const std::vector<Trace> good = Steps(2, 800);
  int found = 0, alike = 0;
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    std::vector<Trace> run = good;
    ChangeARow(random, &run[1]);
    SCOPED_TRACE("change " + std::to_string(i));
    InParts got;
    ExpectAlike(run, 60, &got);
    alike += got.whole.empty();
    const bool finds = FindsSomething(run);
    found += finds;
    EXPECT_TRUE(!finds || !got.whole.empty());
  }
  std::printf("300 changed rows: %d found, %d judged in parts\n", found, alike);
  EXPECT_GT(found, 100);
  EXPECT_GT(alike, 30);
}

// Rows of one rank of one thread and stream, with a rest behind each line.
class Parted {
 public:
  Parted() : t_(0, 1, "a program") {
    t_.provides().calls = false;
    stream_ = t_.Stream("compute"), side_ = t_.Stream("side");
    block_ = t_.Alloc(stream_, 64);
    Rest();
  }
  void Rest() { t_.DeviceSync(); }
  void Write(int stream, int block) { t_.Launch(stream, SPF_K_FILL, {Writes(block, 0, 64)}); }
  // Why it must be judged whole, or empty.
  std::string Whole() {
    InParts got;
    const std::vector<Trace> run = {t_.Done()};
    ExpectAlike(run, 1, &got);
    EXPECT_TRUE(got.parts > 1 || !got.whole.empty());
    return got.whole;
  }

  TraceBuilder t_;
  int stream_ = 0, side_ = 0, block_ = 0;
};

TEST(InPartsTest, WhatLivesIsKnownInTheNextPart) {
  Parted run;
  const int event = run.t_.EventCreate();
  run.t_.Record(event, run.stream_);
  run.Write(run.stream_, run.block_);
  run.Rest();
  run.t_.Wait(event, run.side_);  // it was recorded
  run.Write(run.side_, run.block_);
  run.Rest();
  run.t_.Free(run.stream_, run.block_);
  run.t_.EventDestroy(event);
  EXPECT_EQ(run.Whole(), "");
}

TEST(InPartsTest, WhatTwoPartsShowTogetherTakesTheWholeRun) {
  const auto whole = [](auto&& change) {
    Parted run;
    const int other = run.t_.Alloc(run.stream_, 64), event = run.t_.EventCreate();
    run.t_.Record(event, run.stream_);
    run.Rest();
    change(run, other, event);
    run.Write(run.stream_, run.block_);
    run.Rest();
    return run.Whole();
  };
  EXPECT_EQ(whole([](Parted&, int, int) {}), "");
  EXPECT_NE(whole([](Parted& run, int other, int) {
              run.t_.Free(run.stream_, other);
              run.Rest();
              run.Write(run.stream_, other);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int other, int) {
              run.t_.Free(run.stream_, other);
              run.Rest();
              run.t_.Free(run.stream_, other);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int, int event) {
              run.t_.EventDestroy(event);
              run.Rest();
              run.t_.Wait(event, run.side_);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int, int) {
              run.t_.StreamDestroy(run.side_);
              run.Rest();
              run.Write(run.side_, run.block_);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int other, int) {  // its number is used again
              run.t_.Free(run.stream_, other);
              run.Rest();
              run.t_.Alloc(run.stream_, 64);
              run.t_.Last().alloc = other;
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int other, int) {
              run.t_.Release(other);
              run.Rest();
              run.Write(run.stream_, other);
            }),
            "");
}

TEST(InPartsTest, GroupsThatComeAndGoTakeTheWholeRun) {
  const auto whole = [](auto&& change) {
    Parted run;
    const int group = run.t_.Group("dp", {0});
    const auto reduce = [&](int stream) {
      run.t_.Collective(SPF_ALL_REDUCE, group, stream, 4,
                        {Reads(run.block_, 0, 16), Writes(run.block_, 0, 16)});
    };
    reduce(run.stream_);
    run.Rest();
    change(run, group, reduce);
    run.Rest();
    run.Write(run.stream_, run.block_);
    run.Rest();
    return run.Whole();
  };
  EXPECT_EQ(whole([](Parted& run, int, auto&& reduce) { reduce(run.stream_); }), "");
  EXPECT_NE(whole([](Parted&, int, auto&& reduce) { reduce(-1); }), "");  // by the host
  EXPECT_NE(whole([](Parted& run, int group, auto&& reduce) {
              run.t_.GroupDestroy(group);
              run.Rest();
              reduce(run.stream_);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int group, auto&&) { run.t_.GroupCreate(group, "ep", {0}); }),
            "");
  EXPECT_NE(whole([](Parted& run, int group, auto&&) {
              const int block = run.t_.Alloc(run.stream_, 64, {}, SPF_REGISTRABLE);
              run.t_.GroupRegister(group, block);
            }),
            "");
  EXPECT_NE(whole([](Parted& run, int, auto&&) { run.t_.Refused("spf_launch", "no stream"); }), "");
}

// Why a run of one rank must be judged whole; empty: it need not, and says the same.
std::string WholeOrAlike(Trace trace) {
  const std::vector<Trace> run = {std::move(trace)};
  const std::vector<EngineOutcome> ended(1);
  parts::PartReader reader(ListRows(run), {.least = 1, .carried = 0});
  PartsVerdict verdict;
  for (std::vector<Trace> part = reader.Next(); !part.empty(); part = reader.Next())
    verdict.Add(CheckPart(std::move(part)));
  if (!reader.whole().empty()) return reader.whole();
  if (!verdict.whole().empty()) return verdict.whole();
  EXPECT_GT(reader.parts(), 2);
  const Said want = SaidBy(CheckAll(shardproof::Run{nullptr, run, ended, {}}));
  const Said said = SaidBy(std::move(verdict).Conclude(reader.Ends(), ended));
  EXPECT_EQ(said, want) << Text(said) << "\n-- whole --\n" << Text(want);
  return "";
}

// The host waits while it tears down, so destroy begins in one part and ends in another.
TEST(InPartsTest, WhatDestroyLeavesBehindIsSeenAcrossParts) {
  const auto whole = [](bool frees) {
    TraceBuilder t(0, 1, "a program");
    t.CallBegin("create");
    const int stream = t.Stream("compute"), block = t.Alloc(stream, 64);
    t.DeviceSync();
    t.CallEnd("create");
    t.CallBegin("destroy");
    if (frees) t.Free(stream, block);
    for (int i = 0; i < 4; ++i) {
      t.StreamSync(stream);
      t.Explain("tears down");
    }
    t.StreamDestroy(stream);
    t.CallEnd("destroy");
    return WholeOrAlike(t.Done());
  };
  EXPECT_EQ(whole(true), "");
  EXPECT_NE(whole(false), "");
}

TEST(InPartsTest, WhatIsNotFollowedTakesTheWholeRun) {
  const auto whole = [](int streams, int instance) {
    TraceBuilder t(0, 1, "a program");
    t.provides().calls = false;
    const int first = t.Stream("compute"), block = t.Alloc(first, 64);
    t.DeviceSync();
    t.Instance(instance);
    for (int i = 0; i < streams; ++i) {
      t.Launch(t.Stream("more"), SPF_K_FILL, {Writes(block, 0, 64)});
      t.DeviceSync();
    }
    const std::vector<Trace> run = {t.Done()};
    InParts got;
    ExpectAlike(run, 1, &got);
    return got.whole;
  };
  EXPECT_EQ(whole(40, 0), "");
  EXPECT_NE(whole(70, 0).find("more than 64"), std::string::npos);
  EXPECT_NE(whole(40, 1).find("instances"), std::string::npos);
}

// Kernels of streams with two priorities may overtake: that is said of each part.
TEST(InPartsTest, PrioritiesOfStreamsAreKnownInEachPart) {
  std::vector<Trace> run;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2, "a program");
    t.provides().calls = false;
    const int dp = t.Group("dp", {0, 1}), twin = t.Group("dp_ag", {0, 1});
    const int one = t.Stream("one", 0), other = t.Stream("other", -1);
    t.DeviceSync();
    for (int step = 0; step < 3; ++step) {
      t.Collective(graph::kBarrier, dp, one, 0);
      t.DeviceSync();
    }
    t.Collective(graph::kBarrier, dp, one, 0);
    t.Collective(graph::kBarrier, twin, other, 0);
    t.DeviceSync();
    run.push_back(t.Done());
  }
  InParts got;
  ExpectAlike(run, 1, &got);
  EXPECT_EQ(got.whole, "");
  EXPECT_GT(got.parts, 2);
  EXPECT_NE(CheckAll(shardproof::Run{nullptr, run, {}, {}}).notes.at(0).find("not claimed"),
            std::string::npos);
}

// A script is one entry call.
TEST(InPartsTest, EntryCallsOfAScriptAreJudged) {
  const auto whole = [](const char* call, int status, bool leaves) {
    TraceBuilder t(0, 1, "a program");
    t.CallBegin(call, call[0] == 't' ? 0 : -1);
    const int stream = t.Stream("compute"), event = t.EventCreate(), block = t.Alloc(stream, 64);
    for (int step = 0; step < 4; ++step) {
      t.Launch(stream, SPF_K_FILL, {Writes(block, 0, 64)});
      t.DeviceSync();
    }
    t.CallEnd(call, call[0] == 't' ? 0 : -1, status);
    t.CallBegin("destroy");
    t.Free(stream, block);
    if (!leaves) t.EventDestroy(event);
    t.StreamDestroy(stream);
    t.CallEnd("destroy");
    return WholeOrAlike(t.Done());
  };
  EXPECT_EQ(whole("create", SPF_OK, false), "");
  EXPECT_NE(whole("create", SPF_OK, true), "");
  EXPECT_NE(whole("create", SPF_FAILED, false), "");
  EXPECT_NE(whole("train_step", SPF_OK, false), "");
}

}  // namespace
}  // namespace shardproof
