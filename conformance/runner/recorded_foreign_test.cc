// Traces of somebody else's program: what needs no case is judged where its evidence is there;
// traces of another case are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/runner/recorded_traces_for_test.h"
#include "conformance/trace/reader.h"
#include "conformance/trace/writer.h"

namespace shardproof::recorded {
namespace {

using ::testing::HasSubstr;

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
}  // namespace shardproof::recorded
