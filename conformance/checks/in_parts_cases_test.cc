// Do all checks say the same of a run in parts as whole, and what takes the whole run?
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/check_all.h"
#include "conformance/checks/in_parts_for_test.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/testing/replicate.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

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

TEST(InPartsCasesTest, ALongRunIsJudgedInManyPartsAndSaysTheSame) {
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

TEST(InPartsCasesTest, WithOneRowChangedNothingIsMissed) {
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

TEST(InPartsCasesTest, WhatLivesIsKnownInTheNextPart) {
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

// As PyTorch's process groups: an event is recorded behind each operation, and few are waited for.
TEST(InPartsCasesTest, RecordsAndFreesThatNobodyWaitsForLeaveTheRankAtRest) {
  Parted run;
  const int third = run.t_.Stream("third");
  const int old = run.t_.Alloc(run.stream_, 64), last = run.t_.EventCreate();
  run.t_.Record(last, run.stream_);
  run.t_.Wait(last, third);
  run.t_.Free(third, old);
  for (int step = 0; step < 4; ++step) {
    run.Write(run.side_, run.block_);
    const int waited = run.t_.EventCreate(), other = run.t_.EventCreate();
    run.t_.Record(waited, run.side_);
    run.t_.Record(other, run.side_);
    run.t_.Wait(waited, run.stream_);
    run.Write(run.stream_, run.block_);
    run.t_.StreamSync(run.stream_);
    run.t_.Wait(other, run.stream_);
  }
  InParts got;
  const std::vector<Trace> rows = {run.t_.Done()};
  ExpectAlike(rows, 1, &got);
  EXPECT_EQ(got.whole, "");
  EXPECT_GT(got.parts, 4);
}

TEST(InPartsCasesTest, WhatTwoPartsShowTogetherTakesTheWholeRun) {
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

TEST(InPartsCasesTest, GroupsThatComeAndGoTakeTheWholeRun) {
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

}  // namespace
}  // namespace shardproof
