// Traces that show less than they should: none of them passes. Traces that show all of it do.
#include "conformance/runner/recorded_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "conformance/common/at.h"
#include "conformance/runner/recorded_traces_for_test.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof::recorded {
namespace {

using ::testing::HasSubstr;

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
       Status::kPartial, "without values (key v): record digests or bytes"},
      {"values_of_one_left_out",
       [](Traces& t) {
         const size_t end = Find(t[1], EventKind::kCallEnd, "train_step", 1);
         size_t last = end;
         while (t[1].events[last].kind != EventKind::kPublish) --last;
         t[1].events[last].values = -1;
       },
       Status::kPartial, "without values (key v): others have some, so the run ended"},
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

// The engine says why in the entry call.
void Explain(Trace& trace, EventKind kind, const std::string& call, const std::string& why) {
  Event said;
  said.kind = EventKind::kExplain;
  said.text = static_cast<int32_t>(trace.strings.size());
  trace.strings.push_back(why);
  const size_t at = Find(trace, kind, call);
  trace.events.insert(trace.events.begin() + static_cast<std::ptrdiff_t>(at), said);
}

TEST(Unsupported, TheReasonIsTheEnginesOwn) {
  Traces traces = Good("w2.zero3");
  CutAll(traces, EventKind::kCallEnd, "create", 0, 1);
  for (Trace& trace : traces) Answer(trace, "create", SPF_UNSUPPORTED);
  EXPECT_EQ(JudgeTraces(traces, "folder").verdict.reason,
            "the engine answered SPF_UNSUPPORTED in create");
  for (Trace& trace : traces) Explain(trace, EventKind::kCallEnd, "create", "no tied weights");
  EXPECT_EQ(JudgeTraces(traces, "folder").verdict.outcome, Status::kUnsupported);
  EXPECT_EQ(JudgeTraces(traces, "folder").verdict.reason, "no tied weights");
}

TEST(Unsupported, WhyACallIsLackingIsToldInDestroy) {
  Traces traces = Good("w2.zero3");
  Name(traces, "w2.zero3.do=ttts");
  EXPECT_EQ(JudgeTraces(traces, "folder").verdict.reason, "the trace has no save");
  for (Trace& trace : traces) Explain(trace, EventKind::kCallEnd, "destroy", "it has no save()");
  EXPECT_EQ(JudgeTraces(traces, "folder").verdict.reason, "it has no save()");
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

}  // namespace
}  // namespace shardproof::recorded
