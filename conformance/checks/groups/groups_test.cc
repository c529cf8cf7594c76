#include "conformance/checks/groups/groups.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/groups/edits_for_test.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

// Edits one event of one rank's trace: the first for which match answers true.
Event& FirstOf(Run& run, int rank, const std::function<bool(const Event&)>& match) {
  for (Event& event : run.traces[size_t(rank)].events) {
    if (match(event)) return event;
  }
  throw std::logic_error("the trace has no such event");
}

void Grid(InstanceSpec& spec) { spec.grid = true; }
void GridTwin(InstanceSpec& spec) {
  spec.grid = true;
  spec.twin = GatherTwin::kGiven;
}
void Twin(InstanceSpec& spec) { spec.twin = GatherTwin::kGiven; }
void Hybrid(InstanceSpec& spec) {
  spec.outer = 2;
  spec.twin = GatherTwin::kGiven;
}

TEST(Groups, AGoodRunHasNoFinding) {
  const MiniRun mini = RunMini(MiniCase(4));
  const CheckResult result = CheckGroups(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  for (const char* id : {"PG-01", "PG-02", "PG-09", "PG-11", "PG-14", "PG-18"})
    EXPECT_TRUE(result.judged.contains(id)) << id;
}

TEST(Groups, AGoodRunWithTwinsHasNoFinding) {
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, Twin)).run)), "");
}

TEST(Groups, AGoodHybridRunWithTwinsHasNoFinding) {
  const MiniRun mini = RunMini(MiniCase(4, Hybrid));
  const CheckResult result = CheckGroups(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("PG-05"));
}

TEST(Groups, AGoodRunThatBuildsItsOwnGridHasNoFinding) {
  const MiniRun mini = RunMini(MiniCase(4, GridTwin));
  const CheckResult result = CheckGroups(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("PG-13"));
}

// Who only evaluates reduces nothing.
void Evaluates(InstanceSpec& spec) { spec.script = "ee"; }
void EvaluatesWithTwin(InstanceSpec& spec) {
  Twin(spec);
  Evaluates(spec);
}

TEST(Groups, AGatherOfAnEvaluationOnTheReducingGroupAlthoughATwinIsGiven) {
  MiniFaults faults;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, EvaluatesWithTwin), faults).run)), "");
  faults.gather_on_reducer = true;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, EvaluatesWithTwin), faults).run)), "PG-09");
}

TEST(Groups, AGatherOnTheReducingGroupAlthoughATwinIsGiven) {
  MiniFaults faults;
  faults.gather_on_reducer = true;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, Twin), faults).run)), "PG-09");
}

// Outer ranks fill up the shard on a group of their own; units are gathered on the inner twin.
TEST(Groups, WithOuterShardsATwinIsAskedForToo) {
  const auto hybrid = [](InstanceSpec& spec) {
    Twin(spec);
    spec.outer = 2;
    spec.outer_strategy = OuterStrategy::kOptim;
  };
  MiniFaults faults;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(8, hybrid), faults).run)), "");
  faults.gather_on_reducer = true;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(8, hybrid), faults).run)), "PG-09");
}

TEST(Groups, AReductionOnTheTwin) {
  MiniFaults faults;
  faults.reduce_on_twin = true;
  const std::string found = FoundIn(CheckGroups(RunMini(MiniCase(4, Twin), faults).run));
  EXPECT_NE(found.find("PG-10"), std::string::npos) << found;
}

TEST(Groups, ACollectiveOnAnotherInstancesGroup) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[1]
      .groups[size_t(
          FirstOf(mini.run, 1, [](const Event& e) { return e.kind == EventKind::kCollective; })
              .group)]
      .instance = 3;
  EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "PG-14");
}

TEST(Groups, AGoodRunWithExpertsHasNoFinding) {
  const CheckResult result = CheckGroups(RunMini(MiniCase(4, Experts)).run);
  EXPECT_EQ(FoundIn(result), "") << (result.findings.empty() ? "" : result.findings[0].message);
}

TEST(Groups, AnExpertParameterOnADenseCommunicator) {
  MiniRun mini = RunMini(MiniCase(4, Experts));
  for (GroupInfo& group : mini.run.traces[1].groups) {
    if (group.name == "expt_dp") group.name = "dp_cp";
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-11"), std::string::npos) << found;
}

// Gathers run on a communicator whose members stand in another order than those of the reducing
// group.
MiniRun PermutedGathers() {
  MiniRun mini = RunMini(MiniCase(4, Twin));
  for (Trace& trace : mini.run.traces) {
    for (GroupInfo& group : trace.groups) {
      if (group.name == "dp_cp_ag") std::swap(group.world_ranks[2], group.world_ranks[3]);
    }
  }
  return mini;
}

TEST(Groups, ATwinWithPermutedMembers) {
  const std::string found = FoundIn(CheckGroups(PermutedGathers().run));
  EXPECT_NE(found.find("PG-06"), std::string::npos) << found;
}

TEST(Groups, AGatherInAnotherOrderThanTheReduction) {
  MiniRun mini = PermutedGathers();
  mini.spec->instances[0].twin = GatherTwin::kNone;
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-18"), std::string::npos) << found;
}

// The optimizer instances hold the same shards: nothing is gathered over the ranks of several.
TEST(Groups, AGatherOverOuterRanksThatShareOutNothing) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.outer = 2; }));
  EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "");
  for (Trace& trace : mini.run.traces) {
    const auto outer = std::ranges::find(trace.groups, "inter_dp_cp", &GroupInfo::name);
    ASSERT_NE(outer, trace.groups.end());
    for (Event& event : trace.events) {
      if (event.kind == EventKind::kCollective && event.collective == SPF_ALL_GATHER)
        event.group = static_cast<int32_t>(outer - trace.groups.begin());
    }
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-18"), std::string::npos) << found;
}

TEST(Groups, MembersInAnotherOrderThanTheFormulaGives) {
  MiniRun mini = RunMini(MiniCase(4));
  for (GroupInfo& group : mini.run.traces[2].groups) {
    if (group.name == "dp_cp") std::swap(group.world_ranks[0], group.world_ranks[1]);
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-02"), std::string::npos) << found;
  EXPECT_NE(found.find("PG-01"), std::string::npos) << found;
}

TEST(Groups, ATwinThatIsTheReducingGroupItself) {
  MiniRun mini = RunMini(MiniCase(4, Twin));
  for (Trace& trace : mini.run.traces) {
    std::string comm;
    for (const GroupInfo& group : trace.groups) comm = group.name == "dp_cp" ? group.comm : comm;
    for (GroupInfo& group : trace.groups) {
      if (group.name == "dp_cp_ag") group.comm = comm;
    }
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-06"), std::string::npos) << found;
}

TEST(Groups, ATwinThatNobodyAskedFor) {
  MiniRun mini = RunMini(MiniCase(4, Grid));
  Trace& trace = mini.run.traces[0];
  for (Event& event : trace.events) {
    if (event.kind != EventKind::kGroupCreate || trace.Text(event.text) != "cp") continue;
    trace.strings.push_back("dp_cp_ag");
    event.text = static_cast<int32_t>(trace.strings.size()) - 1;
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-07"), std::string::npos) << found;
}

TEST(Groups, AGroupThatIsCreatedTwice) {
  MiniFaults faults;
  faults.double_create = true;
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, Grid), faults).run)), "PG-17");
}

TEST(Groups, AGatherOfAnEvaluationOverOtherRanks) {
  MiniRun mini = RunMini(MiniCase(4, Evaluates));
  const CheckResult good = CheckGroups(mini.run);
  EXPECT_EQ(FoundIn(good), "");
  EXPECT_TRUE(good.judged.contains("PG-09") && good.judged.contains("PG-18"));
  EditGroups(mini, "dp_cp", [](GroupInfo& group, const Trace&) {
    std::reverse(group.world_ranks.begin(), group.world_ranks.end());
  });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-18"), std::string::npos) << found;
}

TEST(Groups, AnExpertGridOfFewerRanks) {
  MiniRun mini = RunMini(MiniCase(4, Experts));
  EditGroups(mini, "ep",
             [](GroupInfo& group, const Trace& trace) { group.world_ranks = {trace.rank}; });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-03"), std::string::npos) << found;
}

TEST(Groups, DisjointAxesThatShareRanks) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { spec.tp = 2; }));
  EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "");
  EditGroups(mini, "tp", [](GroupInfo& group, const Trace& trace) {
    group.world_ranks = MembersOf(trace, "dp_cp");
  });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-04"), std::string::npos) << found;
}

TEST(Groups, AnOuterGroupWithinAnInnerOne) {
  MiniRun mini = RunMini(MiniCase(4, Hybrid));
  EditGroups(mini, "inter_dp_cp", [](GroupInfo& group, const Trace& trace) {
    group.world_ranks = MembersOf(trace, "intra_dp_cp");
  });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-05"), std::string::npos) << found;
}

TEST(Groups, ARankOutsideTheGridTakesPart) {
  MiniRun mini = RunMini(MiniCase(4));
  mini.spec->instances[0].span = 2;
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-15"), std::string::npos) << found;
}

TEST(Groups, ARankThatCreatesOneGroupLess) {
  MiniRun mini = RunMini(MiniCase(4, Grid));
  std::vector<Event>& events = mini.run.traces[3].events;
  const auto create = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
    return event.kind == EventKind::kGroupCreate;
  });
  events.erase(std::next(create).base());
  EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "PG-13");
}

TEST(Groups, WithoutACaseRoutingCannotBeJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.spec = nullptr;
  const CheckResult result = CheckGroups(mini.run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("PG-14"));
  EXPECT_FALSE(result.not_checkable.empty());
}

TEST(Groups, WithoutGroupEventsNothingCanBeJudged) {
  MiniRun mini = RunMini(MiniCase(2));
  mini.run.traces[0].provides.groups = false;
  const CheckResult result = CheckGroups(mini.run);
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
