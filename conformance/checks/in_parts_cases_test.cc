// Do all checks say the same of a run in parts as whole, and what takes the whole run?
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
#include "conformance/checks/in_parts.h"
#include "conformance/checks/parts/part_reader.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/testing/listed_rows.h"
#include "conformance/checks/testing/replicate.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

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
};

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
TEST(InPartsCasesTest, WhatDestroyLeavesBehindIsSeenAcrossParts) {
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

TEST(InPartsCasesTest, WhatIsNotFollowedTakesTheWholeRun) {
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
TEST(InPartsCasesTest, PrioritiesOfStreamsAreKnownInEachPart) {
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
TEST(InPartsCasesTest, EntryCallsOfAScriptAreJudged) {
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
