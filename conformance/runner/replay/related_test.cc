// Which events have part in what is wrong at one event, in traces written by hand.
#include "conformance/runner/replay/related.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/runner/replay/view.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// An all_reduce on a stream of its own, and a kernel that reads what it writes.
struct Reduced {
  int64_t reduce = 0, record = 0, kernel = 0;
  Trace trace;
};
Reduced WriteReduced(int rank, bool records, bool waits) {
  Reduced reduced;
  TraceBuilder t(rank, 2);
  const int dp = t.Group("dp_cp", {0, 1});
  const int compute = t.Stream("compute"), comm = t.Stream("comm");
  const int grads = t.Alloc(compute, 64, {SPF_FOR_GRAD, -1, -1});
  const int allocated = t.EventCreate(), ready = t.EventCreate();
  t.Record(allocated, compute);
  t.Wait(allocated, comm);
  reduced.reduce = t.size();
  t.Collective(SPF_ALL_REDUCE, dp, comm, 16, {Updates(grads, 0, 64)});
  reduced.record = t.size();
  if (records) t.Record(ready, comm);
  if (waits) t.Wait(ready, compute);
  reduced.kernel = t.size();
  t.Launch(compute, SPF_K_AXPBY, {Updates(grads, 0, 32)});
  reduced.trace = t.Done();
  return reduced;
}

Run RunOf(bool records, bool waits) {
  Run run;
  for (int rank = 0; rank < 2; ++rank)
    run.traces.push_back(WriteReduced(rank, records, waits).trace);
  return run;
}

std::string Missing(const Run& run, int64_t first, int64_t second) {
  const Analysis analysis(run);
  return MissingOrder(analysis, 0, first, second);
}

TEST(MissingOrder, NamesTheRecordThatNobodyWaitsFor) {
  const Reduced at = WriteReduced(0, true, false);
  EXPECT_EQ(Missing(RunOf(true, false), at.reduce, at.kernel),
            "rank 0: #7 (stream comm) before #9 (stream compute); event 1 is recorded behind the "
            "former (#8), but stream compute does not wait for it before the latter");
}

TEST(MissingOrder, SaysThatNothingIsRecorded) {
  const Reduced at = WriteReduced(0, false, false);
  EXPECT_EQ(Missing(RunOf(false, false), at.reduce, at.kernel),
            "rank 0: #7 (stream comm) before #8 (stream compute); no event is recorded on stream "
            "comm between them for stream compute to wait for");
}

TEST(MissingOrder, IsEmptyWhereThereIsAnOrder) {
  const Reduced at = WriteReduced(0, true, true);
  EXPECT_EQ(Missing(RunOf(true, true), at.reduce, at.kernel), "");
  EXPECT_EQ(Missing(RunOf(true, true), 0, at.kernel), "");  // no work
}

TEST(OnOtherRanks, FindsTheSameOperation) {
  const auto run = RunOf(true, true);
  const Analysis analysis(run);
  const Reduced at = WriteReduced(0, true, true);
  const std::vector<EventAt> expected = {{1, at.reduce}};
  EXPECT_EQ(OnOtherRanks(analysis, {0, at.reduce}), expected);
  EXPECT_TRUE(OnOtherRanks(analysis, {0, at.kernel}).empty());
}

TEST(OnOtherRanks, SaysWhoNeverIssuesIt) {
  auto run = RunOf(true, true);
  const Reduced at = WriteReduced(0, true, true);
  run.traces[1].events.resize(static_cast<size_t>(at.reduce));
  const Analysis analysis(run);
  const std::vector<EventAt> expected = {{1, -1}};
  EXPECT_EQ(OnOtherRanks(analysis, {0, at.reduce}), expected);
}

// Two all_reduces in one group operation; rank 1 frees what the second one reads too early.
TEST(Grouped, TheEndOfAGroupStandsForItsCollectives) {
  shardproof::Run run;
  int64_t second = 0, end = 0, freed = 0;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp_cp", {0, 1});
    const int compute = t.Stream("compute"), comm = t.Stream("comm");
    const int grads = t.Alloc(comm, 64, {SPF_FOR_GRAD, -1, -1});
    t.GroupBegin();
    t.Collective(SPF_ALL_REDUCE, dp, comm, 8, {Updates(grads, 0, 32)});
    second = t.size();
    t.Collective(SPF_ALL_REDUCE, dp, comm, 8, {Updates(grads, 32, 32)});
    end = t.size();
    t.GroupEnd();
    freed = t.size();
    t.Free(compute, grads);
    run.traces.push_back(t.Done());
  }
  EXPECT_EQ(Missing(run, end, freed),
            "rank 0: #" + std::to_string(end) + " (stream comm) before #" + std::to_string(freed) +
                " (stream compute); no event is recorded on stream comm between them for stream "
                "compute to wait for");
  const Analysis analysis(run);
  EXPECT_EQ(OnOtherRanks(analysis, {0, end}), (std::vector<EventAt>{{1, second - 1}, {1, second}}));
  EXPECT_EQ(OnOtherRanks(analysis, {0, second}), (std::vector<EventAt>{{1, second}}));
}

TEST(LastAccesses, AreThoseThatChangeTheBytes) {
  const auto run = RunOf(true, true);
  const Analysis analysis(run);
  const Reduced at = WriteReduced(0, true, true);
  const std::vector<EventAt> expected = {{0, at.reduce}, {0, 2}};  // the all_reduce, the allocation
  EXPECT_EQ(LastAccesses(analysis, {0, at.kernel}, 9), expected);
  EXPECT_EQ(LastAccesses(analysis, {0, at.kernel}, 1).size(), 1u);
  const std::vector<EventAt> next = {{0, at.reduce}, {0, at.kernel}};
  EXPECT_EQ(NextAccesses(analysis, {0, 2}, 9), next);
  EXPECT_TRUE(NextAccesses(analysis, {0, at.reduce}, 9).empty());
}

std::string Shown(const Run& run, const CaseReport& report, const ReplayView& view) {
  std::ostringstream out;
  ShowRun(run, report, view, out);
  return out.str();
}

CaseReport RaceAt(const Reduced& at) {
  CaseReport report;
  report.id = "w2.ddp";
  report.status = Status::kFail;
  Finding finding;
  finding.requirement = "GE-05";
  finding.rank = 0;
  finding.event = at.kernel;
  finding.begins = at.reduce;
  report.findings.push_back({finding, "", false});
  return report;
}

TEST(ShowRun, MarksTheFindingAndItsPartner) {
  const Reduced at = WriteReduced(0, true, false);
  const auto run = RunOf(true, false);
  const std::string text = Shown(run, RaceAt(at), {});
  EXPECT_NE(text.find("> rank 0 #9  kernel AXPBY (stream compute); updates block 0 (gradients) [0, "
                      "32)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("* rank 0 #7  all_reduce on dp_cp (stream comm), f32 x 16; updates block 0 "
                      "(gradients) [0, 64)\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("missing order: rank 0: #7"), std::string::npos) << text;
  EXPECT_EQ(text.find("rank 1"), std::string::npos) << text;
}

// Where two runs differ, no event of this one is wrong.
TEST(ShowRun, WithoutAnEventItSaysToReplayThePartner) {
  const auto run = RunOf(true, true);
  CaseReport report;
  report.id = "w2.ddp";
  report.status = Status::kFail;
  Finding finding;
  finding.requirement = "FS-41";
  finding.message = "two runs differ";
  report.findings.push_back({finding, "", false, "shardproof replay --case w2.zero3"});
  const std::string text = Shown(run, report, {});
  EXPECT_EQ(text.find("the finding names no event"), std::string::npos) << text;
  EXPECT_NE(text.find("\n    shardproof replay --case w2.zero3\n"), std::string::npos) << text;
  report.findings.front().partner.clear();
  EXPECT_NE(Shown(run, report, {}).find("the finding names no event"), std::string::npos);
}

TEST(ShowRun, ShowsWhatIsSelected) {
  const Reduced at = WriteReduced(0, true, false);
  const auto run = RunOf(true, false);
  CaseReport none;
  none.id = "w2.ddp";
  EXPECT_NE(Shown(run, none, {}).find("nothing was found in 20 events"), std::string::npos);
  ReplayView view;
  view.only = "collectives";
  view.rank = 1;
  EXPECT_EQ(Shown(run, none, view),
            "  rank 1 #7  all_reduce on dp_cp (stream comm), f32 x 16; updates block 0 (gradients) "
            "[0, 64)\n");
  view = {};
  view.only = "findings";
  const std::string marked = Shown(run, RaceAt(at), view);
  EXPECT_EQ(marked.find("\n  rank"), std::string::npos) << marked;
  EXPECT_NE(marked.find("\n> rank"), std::string::npos) << marked;
  view = {};
  view.whole = true;
  const std::string all = Shown(run, none, view);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 20);
}

TEST(CheckView, NamesWhatTheRunDoesNotHave) {
  const auto run = RunOf(true, false);
  ReplayView view;
  view.stream = "gather";
  EXPECT_THROW(CheckView(run, view), std::invalid_argument);
  view.stream = "comm";
  EXPECT_NO_THROW(CheckView(run, view));
  view.around = 10;
  EXPECT_THROW(CheckView(run, view), std::invalid_argument);
  view.around = 9;
  EXPECT_NO_THROW(CheckView(run, view));
  view.rank = 2;
  EXPECT_THROW(CheckView(run, view), std::invalid_argument);
}

// At the end of a call: what is still allocated on the device, the largest first.
TEST(Held, AreTheLargestBlocksThatNobodyGaveBack) {
  TraceBuilder t(0, 1);
  t.CallBegin("train_step", 0);
  const int compute = t.Stream("compute");
  const int64_t small = t.size();
  t.Alloc(compute, 16);
  const int64_t large = t.size();
  t.Alloc(compute, 64);
  const int freed = t.Alloc(compute, 128);
  t.Free(compute, freed);
  t.CallEnd("train_step", 0);
  const int64_t end = t.size() - 1;
  shardproof::Run run;
  run.traces.push_back(t.Done());
  const Analysis analysis(run);
  const auto events = [&](EventAt at, size_t most) {
    std::vector<int64_t> found;
    for (const EventAt& block : HeldAt(analysis, at, most)) found.push_back(block.event);
    return found;
  };
  EXPECT_EQ(events({0, end}, 4), (std::vector<int64_t>{large, small}));
  EXPECT_EQ(events({0, end}, 1), (std::vector<int64_t>{large}));
  EXPECT_TRUE(events({0, large}, 4).empty()) << "no end of a call";
}

}  // namespace
}  // namespace shardproof
