// What other families make of units that stay, or are kept in parts, between forward and backward.
#include <gtest/gtest.h>

#include "conformance/checks/groups/groups.h"
#include "conformance/checks/lifetime/lifetime.h"
#include "conformance/checks/order/order.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Asks(int32_t value, const char* script = "tet") {
  return MiniCase(8, [&](InstanceSpec& spec) {
    spec.reshard_after_forward = value;
    spec.microbatches = 2;
    spec.script = script;
  });
}

std::string WindowsOf(int32_t does, int32_t asked) {
  MiniRun mini = RunMini(Asks(does));
  mini.spec->instances[0].reshard_after_forward = asked;
  Derive(*mini.spec);
  return FoundIn(CheckUnitWindows(mini.run));
}

TEST(ReshardFamilies, WhatIsAskedIsLegal) {
  for (const int32_t value : {0, 1, 2, 4}) {
    const MiniRun mini = RunMini(Asks(value));
    EXPECT_EQ(FoundIn(CheckGatheredWhenRead(mini.run)), "") << value;
    EXPECT_EQ(FoundIn(CheckUnitWindows(mini.run)), "") << value;
    EXPECT_EQ(FoundIn(CheckOrder(mini.run)), "") << value;
    EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "") << value;
  }
}

TEST(ReshardFamilies, WhatStaysThatIsToGoIsFound) {
  EXPECT_EQ(WindowsOf(0, 1), "FS-03");  // all of it
  EXPECT_EQ(WindowsOf(0, 2), "FS-03");
  EXPECT_EQ(WindowsOf(2, 1), "FS-03");  // a part
  EXPECT_EQ(WindowsOf(2, 4), "FS-03");  // a larger part
  EXPECT_EQ(WindowsOf(4, 2), "");
}

TEST(ReshardFamilies, AnEvaluationKeepsNothing) {
  MiniFaults faults;
  faults.no_release_forward = true;
  for (const int32_t value : {0, 2}) {
    const MiniRun mini = RunMini(Asks(value, "tee"), faults);
    EXPECT_NE(FoundIn(CheckUnitWindows(mini.run)).find("FS-13"), std::string::npos) << value;
  }
}

TEST(ReshardFamilies, PartsOfOtherRanksAreFound) {
  MiniRun mini = RunMini(Asks(4));
  mini.spec->instances[0].reshard_after_forward = 2;
  Derive(*mini.spec);
  EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "PG-02 PG-18");
}

}  // namespace
}  // namespace shardproof
