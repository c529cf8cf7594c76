#include "conformance/checks/metamorphic/metamorphic.h"

#include <gtest/gtest.h>

#include "conformance/checks/base/analysis.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/common/at.h"

namespace shardproof {
namespace {

void Twin(InstanceSpec& spec) { spec.twin = GatherTwin::kGiven; }

TEST(Metamorphic, EqualRunsAgree) {
  const MiniRun a = RunMini(MiniCase(2)), b = RunMini(MiniCase(2));
  const CheckResult result = CompareResults(a.run, b.run, "FS-41");
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-41"));
}

TEST(Metamorphic, ADifferentParameterIsNamed) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  for (const Event& event : b.run.traces[0].events) {
    if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM && event.call == 2) {
      At(b.run.traces[0].values, event.values) += 1;
      break;
    }
  }
  const CheckResult result = CompareResults(a.run, b.run, "FS-40");
  ASSERT_EQ(FoundIn(result), "FS-40");
  EXPECT_EQ(result.findings[0].step, 1);
}

// The runner chooses the pair and names the requirement (runner/partners.cc): each, on one pair
// that agrees and one that does not.
TEST(Metamorphic, EveryRequirementOfPairs) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  const auto compared = [&](const char* id) { return FoundIn(CompareResults(a.run, b.run, id)); };
  const std::vector<const char*> ids = {"FS-13", "FS-18", "FS-40", "FS-41", "EP-30", "EP-31",
                                        "EP-32", "GE-32", "LW-09", "LW-20", "PG-08", "PG-12"};
  for (const char* id : ids) EXPECT_EQ(compared(id), "") << id;
  for (Event& event : b.run.traces[1].events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_GRAD) continue;
    At(b.run.traces[1].values, event.values) += 1;
    break;
  }
  for (const char* id : ids) EXPECT_EQ(compared(id), id);
}

TEST(Metamorphic, AnEvalInBetweenIsSkipped) {
  const MiniRun a = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.script = "t"; }));
  const MiniRun b = RunMini(MiniCase(2, [](InstanceSpec& spec) { spec.script = "te"; }));
  EXPECT_EQ(FoundIn(CompareResults(a.run, b.run, "FS-13")), "");
}

TEST(Metamorphic, ALossThatDiffers) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  for (const Event& event : b.run.traces[1].events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_LOSS) continue;
    At(b.run.traces[1].values, event.values) += 1;
    break;
  }
  EXPECT_EQ(FoundIn(CompareResults(a.run, b.run, "GE-32")), "GE-32");
}

TEST(Metamorphic, TwinsDifferOnlyInTheCommunicator) {
  const MiniRun a = RunMini(MiniCase(2)), b = RunMini(MiniCase(2, Twin));
  EXPECT_EQ(FoundIn(CompareCollectiveSequences(a.run, b.run, "PG-08", TwinAsReducingGroup)), "");
  EXPECT_EQ(FoundIn(CompareCollectiveSequences(a.run, b.run, "PG-08")), "PG-08")
      << "apart, they do differ";
}

TEST(Metamorphic, ATwinAndItsGroupAreOneSequence) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2, Twin));
  for (Event& event : b.run.traces[0].events) {
    if (event.kind == EventKind::kCollective) event.count += 1;
  }
  const CheckResult result = CompareCollectiveSequences(a.run, b.run, "PG-08", TwinAsReducingGroup);
  ASSERT_FALSE(result.findings.empty());
  EXPECT_NE(result.findings[0].message.find(
                " of those on ranks [0,1], group and twin together, is the first"),
            std::string::npos);
}

TEST(Metamorphic, AMissingCollectiveIsADifference) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  std::vector<Event>& events = b.run.traces[1].events;
  const auto drop = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
    return event.kind == EventKind::kCollective;
  });
  events.erase(std::next(drop).base());
  const CheckResult result = CompareCollectiveSequences(a.run, b.run, "GE-32");
  ASSERT_EQ(FoundIn(result), "GE-32");
  EXPECT_EQ(result.findings[0].seen, "nothing more");
}

// As other findings name them, by words.
TEST(Metamorphic, BothOperationsAreNamed) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  const auto first = [](MiniRun& run) -> Event& {
    std::vector<Event>& events = run.run.traces[0].events;
    return *std::find_if(events.begin(), events.end(), [](const Event& event) {
      return event.kind == EventKind::kCollective && event.collective == SPF_REDUCE_SCATTER;
    });
  };
  first(b).count += 16;
  first(b).reduction = SPF_AVG;
  const CheckResult result = CompareCollectiveSequences(a.run, b.run, "GE-32");
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding& finding = result.findings[0];
  EXPECT_TRUE(finding.operation.starts_with("reduce_scatter")) << finding.operation;
  EXPECT_NE(finding.operation.find(" on dp_cp"), std::string::npos) << finding.operation;
  EXPECT_TRUE(finding.expected.starts_with(finding.operation + ", f32 x ")) << finding.expected;
  EXPECT_NE(finding.expected.find(", sum, over ranks [0,1]"), std::string::npos)
      << finding.expected;
  EXPECT_NE(finding.seen.find(", avg, over ranks [0,1]"), std::string::npos) << finding.seen;
  EXPECT_NE(finding.message.find("of those on dp_cp is the first that differs"), std::string::npos)
      << finding.message;
}

TEST(Metamorphic, ACollectiveOfAnotherKindIsADifference) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  for (Event& event : b.run.traces[0].events) {
    if (event.kind != EventKind::kCollective) continue;
    event.collective = SPF_ALL_GATHER_V;
    break;
  }
  EXPECT_EQ(FoundIn(CompareCollectiveSequences(a.run, b.run, "GE-32")), "GE-32");
}

TEST(Metamorphic, RunsWithoutValuesCannotBeCompared) {
  const MiniRun a = RunMini(MiniCase(2));
  MiniRun b = RunMini(MiniCase(2));
  for (Event& event : b.run.traces[0].events) event.values = -1;
  const CheckResult result = CompareResults(a.run, b.run, "FS-41");
  EXPECT_TRUE(result.judged.empty());
  EXPECT_FALSE(result.not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
