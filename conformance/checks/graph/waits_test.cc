#include "conformance/checks/graph/waits.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// Two ranks; edit adds what the first does beyond one all_reduce, of so many elements on the
// second.
CheckResult Check(const std::function<void(TraceBuilder&, int stream, int event)>& edit,
                  const std::function<void(Provides&)>& provided = {}, int64_t theirs = 8) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1}), stream = t.Stream("s"), event = t.EventCreate();
    t.Collective(SPF_ALL_REDUCE, dp, stream, rank == 0 ? 8 : theirs);
    if (rank == 0) edit(t, stream, event);
    if (provided) provided(t.provides());
    traces.push_back(t.Done());
  }
  return Shown(CheckRaces(traces));
}

void WaitFirst(TraceBuilder& t, int stream, int event) {
  t.Wait(event, stream);
  t.Record(event, stream);
}
void RecordFirst(TraceBuilder& t, int stream, int event) {
  t.Record(event, stream);
  t.Wait(event, stream);
}

bool Found(const CheckResult& result) {
  for (const Finding& finding : result.findings) {
    if (finding.requirement == "GE-07") return true;
  }
  return false;
}

TEST(Waits, OfARecordedEventAreFine) {
  const CheckResult result = Check(RecordFirst);
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.judged.contains("GE-07"));
}

TEST(Waits, BeforeTheFirstRecordAreAFinding) {
  EXPECT_TRUE(Found(Check(WaitFirst)));
  EXPECT_TRUE(Found(Check([](TraceBuilder& t, int, int event) { t.EventSync(event); })));
}

TEST(Waits, AreJudgedBySynchronisationAlone) {
  const auto sync_alone = [](Provides& provides) {
    provides = {};
    provides.sync = true;
  };
  const CheckResult wrong = Check(WaitFirst, sync_alone);
  EXPECT_TRUE(Found(wrong));
  EXPECT_FALSE(wrong.judged.contains("GE-05"));
  const CheckResult right = Check(RecordFirst, sync_alone);
  EXPECT_FALSE(Found(right));
  EXPECT_TRUE(right.judged.contains("GE-07"));
}

TEST(Waits, AreJudgedWhereCollectivesDoNotMatch) {
  EXPECT_TRUE(Found(Check(WaitFirst, {}, /*theirs=*/9)));
}

TEST(Waits, WithoutSynchronisationAreNotJudged) {
  const CheckResult result = Check(WaitFirst, [](Provides& provides) { provides.sync = false; });
  EXPECT_FALSE(Found(result));
  EXPECT_FALSE(result.judged.contains("GE-07"));
  bool told = false;
  for (const NotCheckable& one : result.not_checkable)
    told = told || (one.requirement == "GE-07" &&
                    one.why.find("streams and synchronisation") != std::string::npos);
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace shardproof
