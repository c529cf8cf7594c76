// Traces that show less than they should: none of them passes. Traces that show all of it do.
#include "conformance/runner/recorded_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "conformance/common/at.h"
#include "conformance/report/verdict_rule.h"
#include "conformance/runner/sim_run.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using Traces = std::vector<Trace>;

// What the reference leaves on disk, once for each case and level.
const Traces& Good(const std::string& id, RecordLevel level = RecordLevel::kDigests) {
  static std::map<std::pair<std::string, RecordLevel>, Traces> recorded;
  Traces& traces = recorded[{id, level}];
  if (traces.empty()) {
    const Case c = ParseId(id);
    SimRunOptions options;
    options.rank.level = level;
    options.rank.folder = testing::TempDir() + "/" + id;
    traces = RunOnSim(c, MakeModels(c), Plugin("builtin:reference"), options).run.traces;
  }
  return traces;
}

Status StatusOfTraces(const Traces& traces) {
  return JudgeTraces(traces, "folder").verdict.outcome;
}

// All that a person reads about the verdict.
std::string Words(const Verdict& verdict) {
  std::string text = verdict.reason;
  for (const Finding& finding : verdict.result.findings)
    text += "\n" + finding.requirement + ": " + finding.seen + ": " + finding.message;
  for (const NotCheckable& row : verdict.result.not_checkable)
    text += "\n" + row.requirement + " open: " + row.why;
  return text;
}

// The index of the nth event of the kind, and of the entry call of that name.
size_t Find(const Trace& trace, EventKind kind, const std::string& name, int nth = 0) {
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != kind || (!name.empty() && trace.Text(event.text) != name)) continue;
    if (nth-- == 0) return i;
  }
  ADD_FAILURE() << "no " << name;
  return 0;
}

void CutBefore(Trace& trace, size_t event) { trace.events.resize(event); }
void CutAll(Traces& traces, EventKind kind, const std::string& name, int nth, size_t after) {
  for (Trace& trace : traces) CutBefore(trace, Find(trace, kind, name, nth) + after);
}
void ProvideNothing(Traces& traces) {
  for (Trace& trace : traces) trace.provides = {};
}
void Name(Traces& traces, const std::string& id) {
  for (Trace& trace : traces) trace.case_id = id;
}
void End(Trace& trace, TraceEnd end) {
  trace.end = end;
  trace.end_reason = "as the test says";
}
void Answer(Trace& trace, const std::string& call, spf_status status) {
  At(trace.events, Find(trace, EventKind::kCallEnd, call)).status = static_cast<uint8_t>(status);
}

struct Row {
  const char* name;
  std::function<void(Traces&)> spoil;
  Status expected;
  const char* says;
};

// Nothing is provided or recorded, or the footer says that the run did not end well.
std::vector<Row> NothingOrEndedEarly() {
  return {
      {"nothing_provided", ProvideNothing, Status::kNotCheckable, "provide"},
      {"empty_and_nothing_provided",
       [](Traces& t) {
         ProvideNothing(t);
         for (Trace& trace : t) trace.events.clear();
       },
       Status::kNotCheckable, "provide"},
      {"empty",
       [](Traces& t) {
         for (Trace& trace : t) trace.events.clear();
       },
       Status::kFail, "the trace ends before any entry call"},
      {"one_rank_empty", [](Traces& t) { t[1].events.clear(); }, Status::kFail,
       "the trace ends before any entry call"},
      {"all_died",
       [](Traces& t) {
         for (Trace& trace : t) End(trace, TraceEnd::kDied);
       },
       Status::kFail, "its footer says that it died: as the test says"},
      {"one_died", [](Traces& t) { End(t[1], TraceEnd::kDied); }, Status::kFail, "GE-26"},
      {"all_aborted",
       [](Traces& t) {
         for (Trace& trace : t) End(trace, TraceEnd::kAborted);
       },
       Status::kFail, "no trace tells which rank ended the run"},
      {"one_aborted", [](Traces& t) { End(t[0], TraceEnd::kAborted); }, Status::kFail, "GE-27"},
      {"died_and_nothing_provided",
       [](Traces& t) {
         ProvideNothing(t);
         End(t[0], TraceEnd::kDied);
       },
       Status::kFail, "GE-26"},
  };
}

// The footer says complete, and the trace is not.
std::vector<Row> Cut() {
  return {
      {"cut_after_create", [](Traces& t) { CutAll(t, EventKind::kCallEnd, "create", 0, 1); },
       Status::kFail, "goes on to train_step 0, but the trace ends after create"},
      {"cut_within_a_step", [](Traces& t) { CutAll(t, EventKind::kCompute, "", 3, 1); },
       Status::kFail, "began and never ended"},
      {"cut_after_a_step", [](Traces& t) { CutAll(t, EventKind::kCallEnd, "train_step", 0, 1); },
       Status::kFail, "but the trace ends after train_step 0"},
      {"cut_before_destroy", [](Traces& t) { CutAll(t, EventKind::kCallBegin, "destroy", 0, 0); },
       Status::kFail, "goes on to destroy"},
      {"cut_within_destroy", [](Traces& t) { CutAll(t, EventKind::kCallBegin, "destroy", 0, 1); },
       Status::kFail, "destroy began and never ended"},
      {"cut_on_one_rank", [](Traces& t) { CutBefore(t[1], t[1].events.size() / 2); }, Status::kFail,
       "rank 1"},
      {"a_step_left_out",
       [](Traces& t) {
         for (Trace& trace : t) {
           const size_t from = Find(trace, EventKind::kCallBegin, "train_step", 1);
           const size_t to = Find(trace, EventKind::kCallEnd, "train_step", 1);
           trace.events.erase(trace.events.begin() + static_cast<std::ptrdiff_t>(from),
                              trace.events.begin() + static_cast<std::ptrdiff_t>(to) + 1);
         }
       },
       Status::kFail, "goes on to"},
  };
}

// Calls that did not go well, and events that leave out what they should say.
std::vector<Row> SaysLess() {
  return {
      {"a_call_failed", [](Traces& t) { Answer(t[1], "train_step", SPF_FAILED); }, Status::kFail,
       "GE-26"},
      {"a_call_was_aborted", [](Traces& t) { Answer(t[1], "train_step", SPF_ABORTED); },
       Status::kFail, "GE-27"},
      {"rejected_on_one_rank", [](Traces& t) { Answer(t[1], "create", SPF_REJECTED); },
       Status::kFail, "GE-24"},
      {"rejected",
       [](Traces& t) {
         for (Trace& trace : t) Answer(trace, "create", SPF_REJECTED);
       },
       Status::kFail, "GE-23"},
      {"values_left_out",
       [](Traces& t) {
         for (Trace& trace : t) {
           for (Event& event : trace.events) {
             if (event.kind == EventKind::kPublish) event.values = -1;
           }
         }
       },
       Status::kPartial, "publishes a result without values"},
      {"reads_left_out",
       [](Traces& t) {
         for (Trace& trace : t) {
           for (Event& event : trace.events) event.reads = {};
         }
       },
       Status::kPartial, "says nothing of what it read"},
      {"an_illegal_case_that_was_accepted", [](Traces& t) { Name(t, "w2.zero3.k-1"); },
       Status::kFail, "GE-20"},
  };
}

std::vector<Row> Incomplete() {
  std::vector<Row> rows = NothingOrEndedEarly();
  for (const auto& more : {Cut(), SaysLess()}) rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

class IncompleteTest : public testing::TestWithParam<Row> {};
TEST_P(IncompleteTest, DoesNotPass) {
  Traces traces = Good("w2.zero3");
  ASSERT_EQ(StatusOfTraces(traces), Status::kPass);
  GetParam().spoil(traces);
  const Verdict verdict = JudgeTraces(traces, "folder").verdict;
  EXPECT_EQ(verdict.outcome, GetParam().expected) << Words(verdict);
  EXPECT_THAT(Words(verdict), HasSubstr(GetParam().says));
  for (const NotCheckable& row : verdict.result.not_checkable)
    EXPECT_EQ(verdict.result.judged.count(row.requirement), 0u) << row.requirement << " is open";
}
INSTANTIATE_TEST_SUITE_P(Rows, IncompleteTest, testing::ValuesIn(Incomplete()),
                         [](const auto& param) { return std::string(param.param.name); });

// Cut anywhere, on one rank or on all, with a footer that says complete.
TEST(CutAnywhere, NoTracePasses) {
  for (const size_t parts : {7, 11}) {
    for (size_t part = 0; part < parts; ++part) {
      for (const bool all : {true, false}) {
        Traces traces = Good("w2.zero3");
        for (Trace& trace : traces) {
          if (all || trace.rank == 1) CutBefore(trace, trace.events.size() * part / parts);
        }
        EXPECT_EQ(StatusOfTraces(traces), Status::kFail) << part << " of " << parts;
      }
    }
    Traces last = Good("w2.zero3");
    CutBefore(last[0], last[0].events.size() - 1);
    EXPECT_EQ(StatusOfTraces(last), Status::kFail);
  }
}

class CaseOfACheck : public testing::TestWithParam<const char*> {};

TEST_P(CaseOfACheck, AGoodTracePasses) {
  const Verdict verdict = JudgeTraces(Good(GetParam()), "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPass) << Words(verdict);
}

struct Field {
  const char* name;
  bool Provides::*in;
};
constexpr Field kFields[] = {
    {"groups", &Provides::groups},   {"collectives", &Provides::collectives},
    {"sync", &Provides::sync},       {"memory", &Provides::memory},
    {"work", &Provides::work},       {"digests", &Provides::digests},
    {"results", &Provides::results}, {"marks", &Provides::marks},
    {"calls", &Provides::calls}};

// What was judged before and has lost its evidence is named as open: nothing is passed over.
TEST_P(CaseOfACheck, EachEntryOfProvidesThatIsLeftOutIsMissed) {
  const std::set<std::string> whole = JudgeTraces(Good(GetParam()), "folder").verdict.result.judged;
  for (const Field& field : kFields) {
    for (const bool all : {true, false}) {
      Traces traces = Good(GetParam());
      for (Trace& trace : traces) {
        if (all || trace.rank == 0) trace.provides.*field.in = false;
      }
      const Verdict verdict = JudgeTraces(traces, "folder").verdict;
      if (std::string_view(field.name) == "marks") {
        EXPECT_EQ(verdict.outcome, Status::kPass) << "marks are optional: " << Words(verdict);
      } else {
        EXPECT_NE(verdict.outcome, Status::kPass) << "without " << field.name;
      }
      std::set<std::string> told = verdict.result.judged;
      for (const NotCheckable& row : verdict.result.not_checkable) told.insert(row.requirement);
      for (const std::string& id : whole)
        EXPECT_EQ(told.count(id), 1u) << id << " without " << field.name;
    }
  }
}

TEST_P(CaseOfACheck, AtLevelOrderNothingPasses) {
  const Verdict verdict = JudgeTraces(Good(GetParam(), RecordLevel::kOrder), "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPartial) << Words(verdict);
  EXPECT_THAT(Words(verdict), HasSubstr("FS-15 open"));
}

INSTANTIATE_TEST_SUITE_P(Cases, CaseOfACheck,
                         testing::Values("w1.zero3", "w2.ddp", "w2.zero3.do=ttsrlt",
                                         "w4.zero3.ep2.k2.moe4.1f1b.dw", "w3.lw.lr0p0625.bcast",
                                         "w2.zero3.twin.grid", "w4.ddp.pp2.k4.layers4.vpp2"));

TEST(Labels, ACaseOfAnotherWorldIsAnErrorOfInput) {
  for (const char* id : {"w64.zero3", "w1.zero3", "w4.zero3"}) {
    Traces traces = Good("w2.zero3");
    Name(traces, id);
    try {
      JudgeTraces(traces, "traces/of/mine");
      ADD_FAILURE() << id;
    } catch (const TraceError& error) {
      EXPECT_THAT(error.what(), HasSubstr("traces/of/mine: the traces are of 2 ranks, but case"));
    }
  }
}

// Good traces as somebody else's program: only what needs no case is asked, and all of it is there.
Traces Foreign() {
  Traces traces = Good("w2.zero3");
  Name(traces, "their own job 17");
  return traces;
}

TEST(ForeignTraces, PassWithAllEvidence) {
  const Verdict verdict = JudgeTraces(Foreign(), "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPass) << Words(verdict);
  EXPECT_EQ(verdict.result.judged.count("GE-01"), 1u);
  EXPECT_EQ(verdict.result.judged.count("FS-15"), 0u);
}

// What the case does not have is told by file and line, not by what would follow from it.
std::string RefusalOf(Traces traces, const std::string& folder) {
  try {
    return "judged: " + Words(JudgeTraces(std::move(traces), folder).verdict);
  } catch (const TraceError& error) {
    return error.what();
  }
}

TEST(TracesOfAnotherCase, AreRefusedWithFileAndLine) {
  const std::string folder = testing::TempDir() + "/strangers";
  WriteTraceFolder(Good("w2.zero3"), folder);
  const Traces good = ReadTraceFolder(folder);
  EXPECT_THAT(RefusalOf(good, folder), HasSubstr("judged: "));
  const size_t publish = Find(good[1], EventKind::kPublish, "");
  const size_t compute = Find(good[1], EventKind::kCompute, "");
  const std::vector<std::pair<std::function<void(Event&)>, const char*>> rows = {
      {[](Event& event) { event.id = 4711; },
       "names parameter 4711: the trace is not of this case"},
      {[](Event& event) { event.call = 99; }, "names entry call 99"},
      {[](Event& event) { event.instance = 3; }, "names engine instance 3"}};
  for (const auto& [spoil, says] : rows) {
    Traces traces = good;
    spoil(At(traces[1].events, publish));
    const std::string said = RefusalOf(traces, folder);
    EXPECT_THAT(said, HasSubstr(says));
    EXPECT_THAT(said, HasSubstr("trace.00001.jsonl:"));
    EXPECT_THAT(said, HasSubstr("(w2.zero3)"));
    EXPECT_THAT(RefusalOf(traces, "nowhere"), HasSubstr(says));
  }
  Traces traces = good;
  At(traces[1].events, compute).id = 4711;
  EXPECT_THAT(RefusalOf(traces, folder), HasSubstr("names node 4711"));
}

TEST(ForeignTraces, EarnNothingWithoutEvents) {
  for (const bool provided : {true, false}) {
    Traces traces = Foreign();
    for (Trace& trace : traces) trace.events.clear();
    if (!provided) ProvideNothing(traces);
    const Verdict verdict = JudgeTraces(traces, "folder").verdict;
    EXPECT_EQ(verdict.outcome, Status::kNotCheckable) << Words(verdict);
  }
}

TEST(ForeignTraces, WithoutCallsNobodyKnowsHowTheRanksEnded) {
  Traces traces = Foreign();
  for (Trace& trace : traces) trace.provides.calls = false;
  EXPECT_TRUE(RecordedEnds(traces, nullptr).empty());
  const Verdict verdict = JudgeTraces(traces, "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPartial) << Words(verdict);
  for (const char* id : {"GE-24", "GE-26", "GE-27"}) {
    EXPECT_EQ(verdict.result.judged.count(id), 0u) << id;
    EXPECT_THAT(Words(verdict), HasSubstr(std::string(id) + " open: the traces do not tell"));
  }
}

TEST(ForeignTraces, ThatStopBeforeDestroyDoNotShowWhatIsLeft) {
  Traces traces = Foreign();
  CutAll(traces, EventKind::kCallBegin, "destroy", 0, 0);
  const Verdict verdict = JudgeTraces(traces, "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPartial) << Words(verdict);
  EXPECT_THAT(Words(verdict), HasSubstr("FS-33 open"));
}

TEST(ForeignTraces, OperationsThatMeetAreNotJudgedWhereNothingIsProvided) {
  Traces traces = Foreign();
  Event& gather = At(traces[0].events, Find(traces[0], EventKind::kCollective, ""));
  gather.collective = SPF_REDUCE_SCATTER;
  EXPECT_EQ(StatusOfTraces(traces), Status::kFail);
  ProvideNothing(traces);
  EXPECT_EQ(StatusOfTraces(traces), Status::kNotCheckable);
}

TEST(ForeignTraces, WithoutByteRangesShowNothingOfRaces) {
  Traces traces = Foreign();
  for (Trace& trace : traces) {
    trace.ranges.clear();
    for (Event& event : trace.events) event.ranges = {};
  }
  const Verdict verdict = JudgeTraces(traces, "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kFail) << Words(verdict);
  EXPECT_THAT(Words(verdict), HasSubstr("GE-18: 0 bytes"));  // memory is provided
  EXPECT_THAT(Words(verdict), HasSubstr("GE-05 open: no event names the bytes"));
}

TEST(ForeignTraces, WithoutOperationsOfSeveralRanksShowNothingOfMatching) {
  Traces traces = Foreign();
  for (Trace& trace : traces) {
    std::erase_if(trace.events, [](const Event& event) {
      return event.kind != EventKind::kCallBegin && event.kind != EventKind::kCallEnd;
    });
  }
  const Verdict verdict = JudgeTraces(traces, "folder").verdict;
  EXPECT_EQ(verdict.outcome, Status::kPartial) << Words(verdict);
  for (const char* id : {"GE-01", "GE-03", "GE-05"})
    EXPECT_THAT(Words(verdict), HasSubstr(std::string(id) + " open: nothing in the run shows it"));
}

}  // namespace
}  // namespace shardproof
