#include "conformance/checks/check_all.h"

#include <gtest/gtest.h>

#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

std::string WhyNot(const CheckResult& result, const std::string& requirement) {
  for (const NotCheckable& one : result.not_checkable) {
    if (one.requirement == requirement) return one.why;
  }
  return "";
}

TEST(CheckAll, AGoodRunIsJudgedByEveryFamily) {
  const MiniRun mini = RunMini(MiniCase(2));
  const CheckResult result = CheckAll(mini.run);
  for (const char* id : {"PG-02", "FS-01", "FS-02", "FS-05", "FS-06", "GE-24", "GE-03"}) {
    EXPECT_TRUE(result.judged.contains(id)) << id;
  }
}

TEST(CheckAll, ForeignTracesGetTheCaseFreeChecks) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.spec = nullptr;
  mini.run.oracles.clear();
  mini.run.outcomes.clear();
  const CheckResult result = CheckAll(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-33"));
  EXPECT_EQ(WhyNot(result, "FS-01"), "the traces come without a case");
}

TEST(CheckAll, TracesOfAnotherCaseAreNotJudgedByIt) {
  MiniRun mini = RunMini(MiniCase(2));
  for (Event& event : mini.run.traces[1].events) {
    if (event.kind == EventKind::kInit) event.id = 4711;
  }
  const CheckResult result = CheckAll(mini.run);
  EXPECT_NE(WhyNot(result, "FS-01").find("names parameter 4711"), std::string::npos)
      << WhyNot(result, "FS-01");
}

TEST(CheckAll, FewerTracesThanRanksAreNotJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces.pop_back();
  mini.run.outcomes.pop_back();
  EXPECT_EQ(WhyNot(CheckAll(mini.run), "FS-01"), "there are 1 traces for a world of 2");
}

TEST(CheckAll, NoTracesAreNoVerdict) {
  const CheckResult result = CheckAll(shardproof::Run{});
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_FALSE(result.not_checkable.empty());
}

TEST(CheckAll, NothingIsBothJudgedAndNotCheckable) {
  MiniFaults faults;
  faults.marks = false;
  const MiniRun mini = RunMini(MiniCase(2), faults);
  const CheckResult result = CheckAll(mini.run);
  for (const NotCheckable& one : result.not_checkable)
    EXPECT_FALSE(result.judged.contains(one.requirement));
}

}  // namespace
}  // namespace shardproof
