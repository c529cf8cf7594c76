#include <gtest/gtest.h>

#include "conformance/checks/budgets/budgets.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

CheckResult Checked(const MiniFaults& faults, const std::function<void(InstanceSpec&)>& edit = {}) {
  return CheckHostWaits(RunMini(MiniCase(2, edit), faults).run);
}

TEST(HostWaits, AGoodRunHasNoFinding) {
  MiniFaults faults;
  faults.flag = MiniFlag::kReadOnHost;
  const CheckResult result = Checked(faults);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("BU-07"));
}

TEST(HostWaits, AfterEachOperation) {
  MiniFaults faults;
  faults.host_waits = true;
  faults.rank = 0;
  const CheckResult result = Checked(faults);
  EXPECT_EQ(FoundIn(result), "BU-07");
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].rank, 0);
  // 8 for scalars, and in a microbatch one for the loss and two for each of three units.
  EXPECT_EQ(result.findings[0].expected, "at most 15 waits of the host");
}

TEST(HostWaits, OfAnEvaluationAreNotCounted) {
  MiniFaults faults;
  faults.host_waits = true;
  const CheckResult result = Checked(faults, [](InstanceSpec& spec) { spec.script = "e"; });
  EXPECT_EQ(FoundIn(result), "");
}

TEST(HostWaits, WithoutWaitsInTheTraceNothingIsSaid) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1].provides.sync = false;
  const CheckResult result = CheckHostWaits(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_EQ(NotCheckableIn(result), std::set<std::string>{"BU-07"});
}

}  // namespace
}  // namespace shardproof
