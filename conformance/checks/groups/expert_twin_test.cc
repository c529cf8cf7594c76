// Experts have a twin, or nobody else has one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "conformance/checks/groups/edits_for_test.h"
#include "conformance/checks/groups/groups.h"

namespace shardproof {
namespace {

void ExpertsTwin(InstanceSpec& spec) {
  Experts(spec);
  spec.twin = GatherTwin::kGiven;
}

TEST(ExpertTwin, AGoodRunHasNoFinding) {
  EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, ExpertsTwin)).run)), "");
}

// Collectives of one kind on one group run on another, on all ranks.
MiniRun Moved(uint8_t collective, const std::string& from, const std::string& to) {
  MiniRun mini = RunMini(MiniCase(4, ExpertsTwin));
  for (Trace& trace : mini.run.traces) {
    const auto id = [&](const std::string& name) {
      const auto at = std::find_if(trace.groups.begin(), trace.groups.end(),
                                   [&](const GroupInfo& group) { return group.name == name; });
      return static_cast<int32_t>(at - trace.groups.begin());
    };
    for (Event& event : trace.events) {
      if (event.collective == collective && event.group == id(from)) event.group = id(to);
    }
  }
  return mini;
}

TEST(ExpertTwin, GathersOfExpertsOnTheReducingGroup) {
  EXPECT_EQ(FoundIn(CheckGroups(Moved(SPF_ALL_GATHER, "expt_dp_ag", "expt_dp").run)), "PG-09");
}

TEST(ExpertTwin, ReductionsOfExpertsOnTheTwin) {
  const std::string found =
      FoundIn(CheckGroups(Moved(SPF_REDUCE_SCATTER, "expt_dp", "expt_dp_ag").run));
  EXPECT_NE(found.find("PG-10"), std::string::npos) << found;
}

// One kind has a twin, the other one is gathered where it is reduced.
TEST(ExpertTwin, OneKindOnly) {
  for (const auto& [twin, own, other] :
       {std::tuple{GatherTwin::kDenseOnly, "dp_cp", "expt_dp"},
        std::tuple{GatherTwin::kExpertsOnly, "expt_dp", "dp_cp"}}) {
    const auto edit = [twin = twin](InstanceSpec& spec) {
      Experts(spec);
      spec.twin = twin;
    };
    EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, edit)).run)), "") << own;
    MiniFaults faults;
    faults.gather_on_reducer = true;
    EXPECT_EQ(FoundIn(CheckGroups(RunMini(MiniCase(4, edit), faults).run)), "PG-09") << own;
    const auto with_grid = [edit](InstanceSpec& spec) {
      edit(spec);
      spec.grid = true;
    };
    MiniRun mini = RunMini(MiniCase(4, with_grid));
    EXPECT_EQ(FoundIn(CheckGroups(mini.run)), "") << own;
    Trace& trace = mini.run.traces[0];
    for (Event& event : trace.events) {
      if (event.kind != EventKind::kGroupCreate || trace.Text(event.text) != "cp") continue;
      trace.strings.push_back(std::string(other) + "_ag");
      event.text = static_cast<int32_t>(trace.strings.size()) - 1;
    }
    EXPECT_NE(FoundIn(CheckGroups(mini.run)).find("PG-07"), std::string::npos) << other;
  }
}

TEST(ExpertTwin, OtherMembersOrAnotherOrder) {
  MiniRun mini = RunMini(MiniCase(4, ExpertsTwin));
  EditGroups(mini, "expt_dp_ag", [](GroupInfo& group, const Trace&) {
    std::reverse(group.world_ranks.begin(), group.world_ranks.end());
  });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-06"), std::string::npos) << found;
}

TEST(ExpertTwin, TheReducingGroupItself) {
  MiniRun mini = RunMini(MiniCase(4, ExpertsTwin));
  for (Trace& trace : mini.run.traces) {
    std::string comm;
    for (const GroupInfo& group : trace.groups) comm = group.name == "expt_dp" ? group.comm : comm;
    for (GroupInfo& group : trace.groups) {
      if (group.name == "expt_dp_ag") group.comm = comm;
    }
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-06"), std::string::npos) << found;
}

TEST(ExpertTwin, OneThatNobodyAskedFor) {
  MiniRun mini = RunMini(MiniCase(4, [](InstanceSpec& spec) { Experts(spec), spec.grid = true; }));
  Trace& trace = mini.run.traces[0];
  for (Event& event : trace.events) {
    if (event.kind != EventKind::kGroupCreate || trace.Text(event.text) != "cp") continue;
    trace.strings.push_back("expt_dp_ag");
    event.text = static_cast<int32_t>(trace.strings.size()) - 1;
  }
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-07"), std::string::npos) << found;
}

// The experts' twin is made for the dense group's members: experts are gathered over other ranks
// than they are reduced over (NVIDIA/Megatron-LM#2663).
TEST(ExpertTwin, TheMembersOfTheDenseOne) {
  MiniRun mini = RunMini(MiniCase(4, ExpertsTwin));
  EditGroups(mini, "expt_dp_ag", [](GroupInfo& group, const Trace& trace) {
    group.world_ranks = MembersOf(trace, "dp_cp_ag");
  });
  const std::string found = FoundIn(CheckGroups(mini.run));
  EXPECT_NE(found.find("PG-06"), std::string::npos) << found;
}

TEST(ExpertTwin, GathersOfExpertsOnTheDenseTwin) {
  const std::string found =
      FoundIn(CheckGroups(Moved(SPF_ALL_GATHER, "expt_dp_ag", "dp_cp_ag").run));
  EXPECT_NE(found.find("PG-11"), std::string::npos) << found;
}

}  // namespace
}  // namespace shardproof
