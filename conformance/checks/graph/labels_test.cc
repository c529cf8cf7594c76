#include "conformance/checks/graph/labels.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// What one rank gathers, in order: equal shapes, on one communicator of everybody.
using Gathers = std::vector<BuilderLabel>;

CheckResult Check(const std::vector<Gathers>& ranks, TraceEnd last = TraceEnd::kComplete,
                  bool all = false) {
  const auto n = static_cast<int>(ranks.size());
  std::vector<int32_t> everybody;
  for (int rank = 0; rank < n; ++rank) everybody.push_back(rank);
  std::vector<Trace> traces;
  for (int rank = 0; rank < n; ++rank) {
    TraceBuilder t(rank, n);
    const int dp = t.Group("dp", everybody), comm = t.Stream("comm");
    for (const BuilderLabel& label : ranks[static_cast<size_t>(rank)])
      t.Collective(SPF_ALL_GATHER, dp, comm, 8, {}, {.label = label});
    traces.push_back(t.Done(rank + 1 == n ? last : TraceEnd::kComplete));
  }
  return all ? CheckGraph(traces) : CheckMatching(traces);
}

BuilderLabel Full(int module, int microbatch = -1) {
  return {SPF_FOR_PARAM_FULL, module, microbatch};
}

// One finding of GE-01 with these words, and its rank.
void ExpectFound(const CheckResult& result, int rank, const std::vector<std::string>& words) {
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-01");
  EXPECT_EQ(result.findings[0].rank, rank);
  for (const std::string& part : words)
    EXPECT_NE(result.findings[0].message.find(part), std::string::npos)
        << result.findings[0].message;
}

TEST(Labels, ThatAgreeAreNoFinding) {
  const Gathers one = {Full(1), Full(2), {SPF_FOR_GRAD, 2, 0}};
  EXPECT_TRUE(Check({one, one, one}).findings.empty());
}

TEST(Labels, OfTwoModulesThatMeetAreAFinding) {
  const CheckResult result = Check({{Full(1), Full(2)}, {Full(1), Full(2)}, {Full(2), Full(1)}});
  ExpectFound(result, 2, {"operation #0", "module 2", "module 1", "shapes are equal"});
}

TEST(Labels, OfTwoPurposesThatMeetAreAFinding) {
  ExpectFound(Check({{Full(1)}, {{SPF_FOR_GRAD, 1, -1}}}), 1, {"gradients", "full parameters"});
}

TEST(Labels, AreNeededOnNobody) {
  EXPECT_TRUE(Check({{Full(1)}, {{}}, {Full(1)}}).findings.empty());
  EXPECT_TRUE(Check({{Full(1)}, {{SPF_FOR_PARAM_FULL, -1, -1}}}).findings.empty());
  ExpectFound(Check({{Full(1)}, {{}}, {Full(2)}}), 2, {"module 2"});
}

// Pipelined ranks may work at different microbatches.
TEST(Labels, OfMicrobatchesAloneDecideNothingInEqualSequences) {
  EXPECT_TRUE(Check({{Full(1, 0)}, {Full(1, 1)}}).findings.empty());
}

TEST(Labels, TellWhichOperationWasLeftOutOfACompleteRun) {
  ExpectFound(Check({{Full(1), Full(2), Full(3)}, {Full(1), Full(3)}}), 1,
              {"operation #1", "rank 0 issues 1 operation that rank 1 does not: #1"});
}

TEST(Labels, TellWhichMicrobatchWasLeftOut) {
  ExpectFound(Check({{Full(1, 0), Full(1, 1), Full(1, 2)}, {Full(1, 0), Full(1, 2)}}), 1,
              {"operation #1", "rank 0 issues 1 operation that rank 1 does not: #1"});
}

TEST(Labels, TellWhichOperationARunThatWasEndedLeftOut) {
  ExpectFound(Check({{Full(1), Full(2), Full(3), Full(4)}, {Full(1), Full(3), Full(4)}},
                    TraceEnd::kAborted),
              1, {"operation #1", "rank 0 issues 1 operation that rank 1 does not: #1"});
}

TEST(Labels, ThatSayNothingLeaveTheEndToBlame) {
  ExpectFound(Check({{{}, {}, {}}, {{}, {}}}), 0, {"operation #2", "missing", "rank 1 only 2"});
}

TEST(Labels, ThatDifferWhereShapesMeetLeaveTheOrderJudged) {
  const CheckResult result =
      Check({{Full(1), Full(2)}, {Full(2), Full(1)}}, TraceEnd::kComplete, /*all=*/true);
  ExpectFound(result, 1, {"operation #0"});
  EXPECT_TRUE(result.judged.contains("GE-03")) << "they do meet";
}

}  // namespace
}  // namespace shardproof
