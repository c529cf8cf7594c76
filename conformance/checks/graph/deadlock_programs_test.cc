// Every program of fixtures/deadlock against every verdict that it states.
#include "conformance/checks/testing/deadlock_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/testing/shown.h"

namespace shardproof::graph {
namespace {

const std::vector<DeadlockProgram>& Programs() {
  static const auto* programs =
      new std::vector<DeadlockProgram>(ReadDeadlockPrograms("fixtures/deadlock/programs.jsonl"));
  return *programs;
}

class EveryProgram : public testing::TestWithParam<size_t> {
 protected:
  EveryProgram()
      : program_(Programs()[GetParam()]), traces_(ToTraces(program_)), lowered_(Lower(traces_)) {}

  void ExpectProfile(const char* name, Profile profile) {
    const auto at = program_.profiles.find(name);
    if (at != program_.profiles.end()) {
      EXPECT_EQ(Safe(lowered_, profile), at->second == "ok") << name;
    }
  }

  const DeadlockProgram& program_;
  std::vector<Trace> traces_;
  Program lowered_;
};

TEST_P(EveryProgram, Matching) {
  const CheckResult result = CheckMatching(traces_);
  ASSERT_EQ(result.findings.empty(), program_.matching == "ok");
  if (program_.matching == "kind") {
    EXPECT_NE(result.findings[0].message.find("differs"), std::string::npos);
  }
  if (program_.matching == "missing") {
    EXPECT_NE(result.findings[0].message.find("missing"), std::string::npos);
  }
}

TEST_P(EveryProgram, Profiles) {
  ExpectProfile("e0", Profile::kE0);
  ExpectProfile("e1", Profile::kE1);
  ExpectProfile("e2", Profile::kE2);
  ExpectProfile("e2s", Profile::kE2s);
  ExpectProfile("eager", Profile::kEager);
}

TEST_P(EveryProgram, GroupTakenAsOneOperationGivesTheStatedWrongVerdict) {
  if (program_.group_as_one_operation.empty()) return;
  GraphOptions options;
  options.group_as_one_operation = true;
  const WaitGraph graph = BuildGraph(lowered_, options);
  EXPECT_EQ(Sort(graph.graph, graph.never).complete(), program_.group_as_one_operation == "ok");
}

TEST_P(EveryProgram, Slots) {
  if (program_.spin.empty()) return;  // not determined
  const std::vector<Slots> slots = CountSlots(lowered_);
  std::vector<int32_t> spin, resident;
  for (const Slots& one : slots) {
    EXPECT_TRUE(one.exact);
    EXPECT_LE(one.spin, one.resident);
    EXPECT_LE(one.resident, one.local);
    spin.push_back(one.spin);
    resident.push_back(one.resident);
  }
  EXPECT_EQ(spin, program_.spin);
  EXPECT_EQ(resident, program_.resident);
  EXPECT_EQ(resident, program_.max_resident);
  for (size_t rank = 0; rank < spin.size(); ++rank)
    EXPECT_GE(spin[rank], program_.max_spinning[rank]);
  const bool one_each = std::all_of(spin.begin(), spin.end(), [](int32_t n) { return n <= 1; });
  if (program_.e3) {
    EXPECT_EQ(one_each, *program_.e3);
  }
  if (program_.has_slots_in_order) {
    EXPECT_EQ(SlotsInOrder(lowered_), program_.slots_in_order);
  }
}

TEST_P(EveryProgram, Races) {
  if (!program_.races) return;  // not determined
  MustOrder order(lowered_, /*communicator_order=*/true);
  using Pair = std::tuple<int32_t, int32_t, int32_t>;
  const auto pairs = [&](const std::vector<Race>& races) {
    std::set<Pair> result;
    for (const Race& race : races) {
      const Entry& first = lowered_.entries[race.first];
      const Entry& second = lowered_.entries[race.second];
      result.insert(
          {first.rank, static_cast<int32_t>(first.event), static_cast<int32_t>(second.event)});
    }
    return result;
  };
  std::set<Pair> expected;
  for (const auto& race : *program_.races) expected.insert({race.rank, race.first, race.second});
  EXPECT_EQ(pairs(FindAllRaces(lowered_, order)), expected);
  const std::set<Pair> fast = pairs(FindRaces(lowered_, order, {}).races);
  EXPECT_TRUE(std::includes(expected.begin(), expected.end(), fast.begin(), fast.end()));
  EXPECT_EQ(fast.empty(), expected.empty());
}

// What is known about one slot and starts in any order.
TEST_P(EveryProgram, OneSlotInAnyOrder) {
  if (program_.one_slot_any_order.empty() || program_.matching != "ok") return;  // not determined
  if (!lowered_.host_collectives && program_.e3.value_or(false)) {
    EXPECT_EQ(program_.one_slot_any_order, "ok");
  }
  if (!lowered_.host_collectives && !Safe(lowered_, Profile::kE2s)) {
    EXPECT_EQ(program_.one_slot_any_order, "hang");
  }
}

TEST_P(EveryProgram, FindingsNameTheWeakestProfileThatFails) {
  const CheckResult result = Shown(CheckGraph(traces_));
  const auto found = [&](const char* id) {
    return std::any_of(result.findings.begin(), result.findings.end(),
                       [&](const Finding& finding) { return finding.requirement == id; });
  };
  if (program_.matching != "ok") {
    EXPECT_FALSE(found("GE-03") || found("GE-04") || found("GE-05")) << "positions mean nothing";
    EXPECT_FALSE(result.not_checkable.empty());
    return;
  }
  EXPECT_EQ(found("GE-03"), program_.profiles.at("e0") == "hang");
  const auto serial = program_.profiles.find("e2s");
  if (serial != program_.profiles.end()) {
    EXPECT_EQ(found("GE-04"), serial->second == "hang" && program_.profiles.at("e0") == "ok");
  }
  for (const Finding& finding : result.findings) {
    EXPECT_GE(finding.rank, 0);
    EXPECT_GE(finding.event, 0);
    EXPECT_FALSE(finding.message.empty());
  }
}

TEST_P(EveryProgram, TwoRunsSayTheSame) {
  const CheckResult first = CheckGraph(traces_), second = CheckGraph(ToTraces(program_));
  ASSERT_EQ(first.findings.size(), second.findings.size());
  for (size_t i = 0; i < first.findings.size(); ++i) {
    EXPECT_EQ(first.findings[i].message, second.findings[i].message);
  }
  EXPECT_EQ(first.notes, second.notes);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, EveryProgram, testing::Range<size_t>(0, 257),
                         [](const auto& instance) { return Programs()[instance.param].name; });

TEST(DeadlockPrograms, ThereAre257) { EXPECT_EQ(Programs().size(), 257u); }

}  // namespace
}  // namespace shardproof::graph
