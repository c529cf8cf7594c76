#include <gtest/gtest.h>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/checks/program/collective_kinds.h"
#include "conformance/checks/testing/shown.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// A world in which every rank has one communicator of everybody and one stream.
class Matching : public testing::Test {
 protected:
  void World(int n) {
    std::vector<int32_t> ranks;
    for (int rank = 0; rank < n; ++rank) ranks.push_back(rank);
    for (int rank = 0; rank < n; ++rank) {
      auto& builder = builders_.emplace_back(rank, n);
      builder.Group("dp", ranks);
      builder.Stream("comm");
    }
  }
  void AllGather(int rank, int64_t count, BuilderLabel label = {}) {
    CollectiveOptions options;
    options.label = label;
    builders_[static_cast<size_t>(rank)].Collective(SPF_ALL_GATHER, 0, 0, count, {}, options);
  }
  TraceBuilder& At(int rank) { return builders_[static_cast<size_t>(rank)]; }
  void End(int rank, TraceEnd end) { ends_[rank] = end; }
  CheckResult Check(bool all = false) {
    const std::vector<Trace> traces = Traces();
    return Shown(all ? CheckGraph(traces) : CheckMatching(traces));
  }
  std::vector<Trace> Traces() {
    std::vector<Trace> traces;
    for (size_t rank = 0; rank < builders_.size(); ++rank) {
      const auto end = ends_.find(static_cast<int>(rank));
      traces.push_back(
          builders_[rank].Done(end == ends_.end() ? TraceEnd::kComplete : end->second));
    }
    return traces;
  }

  std::vector<TraceBuilder> builders_;
  std::map<int, TraceEnd> ends_;
};

TEST_F(Matching, EqualSequencesPass) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) AllGather(rank, 8), AllGather(rank, 16);
  const CheckResult result = Check();
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.judged.contains("GE-01"));
  EXPECT_FALSE(result.judged.contains("GE-09")) << "no messages, so no evidence";
}

TEST_F(Matching, TheRankInTheMinorityIsTheOddOne) {
  World(4);
  for (int rank = 0; rank < 4; ++rank) AllGather(rank, 8), AllGather(rank, rank == 2 ? 15 : 16);
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-01");
  EXPECT_EQ(result.findings[0].rank, 2);
  EXPECT_NE(result.findings[0].message.find("#1"), std::string::npos);
  EXPECT_NE(result.findings[0].expected.find("x 16"), std::string::npos);
  EXPECT_NE(result.findings[0].seen.find("x 15"), std::string::npos);
}

TEST_F(Matching, ADroppedOperationIsNamedAtItsPlace) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int layer = 0; layer < 5; ++layer) {
      if (rank != 1 || layer != 2) AllGather(rank, 8 + layer);
    }
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_NE(result.findings[0].message.find("#2"), std::string::npos);
  EXPECT_NE(
      result.findings[0].message.find("ranks 0 and 2 issue 1 operation that rank 1 does not: #2"),
      std::string::npos)
      << result.findings[0].message;
}

TEST_F(Matching, AnExtraOperationIsNamedAtItsPlace) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    AllGather(rank, 8);
    if (rank == 0) AllGather(rank, 9);
    AllGather(rank, 10);
    AllGather(rank, 11);
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].rank, 0);
  EXPECT_NE(
      result.findings[0].message.find("rank 0 issues 1 operation that ranks 1 and 2 do not: #1"),
      std::string::npos)
      << result.findings[0].message;
}

TEST_F(Matching, AnEarlierShiftThatEqualCountsHideIsShownByItsLabels) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    for (int layer = 0; layer < 6; ++layer) {
      const bool left_out = rank == 1 && (layer == 1 || layer == 2);
      if (!left_out) AllGather(rank, layer < 5 ? 8 : 16, {SPF_FOR_PARAM_FULL, layer, -1});
    }
    for (int last = 0; last < 2; ++last) AllGather(rank, 32);
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  const std::string& message = result.findings[0].message;
  EXPECT_NE(message.find("operation #3"), std::string::npos) << message;
  EXPECT_NE(message.find("ranks 0 and 2 issue 2 operations that rank 1 does not: #1 and #2"),
            std::string::npos)
      << message;
}

// Of what rank 1 of two does in another order.
TEST_F(Matching, TwoInTheOtherOrderAreASwap) {
  World(2);
  for (const int64_t count : {8, 16, 24, 32}) AllGather(0, count);
  for (const int64_t count : {8, 24, 16, 32}) AllGather(1, count);
  const std::string message = Check().findings.at(0).message;
  EXPECT_NE(message.find("rank 1 issues operations #1 and #2 in the other order"),
            std::string::npos)
      << message;
}

TEST_F(Matching, AReversedOrderLeavesNothingOut) {
  World(2);
  for (const int64_t count : {8, 16, 24, 32, 40}) AllGather(0, count);
  for (const int64_t count : {8, 32, 24, 16, 40}) AllGather(1, count);
  const std::string message = Check().findings.at(0).message;
  EXPECT_NE(message.find("rank 1 issues operations #1 to #3 in another order"), std::string::npos)
      << message;
}

TEST_F(Matching, OneOfTurnsThatIsLeftOutIsNoSwap) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != 1) AllGather(rank, 8);
    for (const int64_t count : {16, 8, 16, 8, 16}) AllGather(rank, count);
  }
  const std::string message = Check().findings.at(0).message;
  EXPECT_NE(message.find("ranks 0 and 2 issue 1 operation that rank 1 does not: #0"),
            std::string::npos)
      << message;
}

TEST_F(Matching, OneOfManyTurnsThatIsLeftOutIsNoOtherOrder) {
  World(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 40; ++i) {
      if (rank != 1 || i != 0) AllGather(rank, i % 2 == 0 ? 8 : 16);
    }
  }
  const std::string message = Check().findings.at(0).message;
  EXPECT_NE(message.find("rank 0 issues 1 operation that rank 1 does not: #0"), std::string::npos)
      << message;
}

TEST_F(Matching, AMissingLastOperationIsNamed) {
  World(2);
  AllGather(0, 8), AllGather(0, 8), AllGather(1, 8);
  const CheckResult result = Check(true);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("rank 1 only 1"), std::string::npos)
      << result.findings[0].message;
  EXPECT_FALSE(result.judged.contains("GE-03"))
      << "deadlock is not judged on sequences that do not match";
}

TEST_F(Matching, ARankWithoutAnyIssuesNone) {
  World(3);
  AllGather(0, 8);
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find(", ranks 1 and 2 issue none. "), std::string::npos)
      << result.findings[0].message;
}

TEST_F(Matching, ARankThatDiedBeforeItsOperationIsTheCause) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    AllGather(rank, 8);
    if (rank != 1) AllGather(rank, 8);
    End(rank, rank == 1 ? TraceEnd::kDied : TraceEnd::kAborted);
  }
  const std::vector<Trace> traces = Traces();
  for (const CheckResult& result : {CheckMatching(traces), CheckGraph(traces)}) {
    ASSERT_EQ(result.findings.size(), 1u);
    EXPECT_EQ(result.findings[0].requirement, "GE-01");
    EXPECT_NE(result.findings[0].message.find("rank 1 ends before it"), std::string::npos)
        << result.findings[0].message;
  }
}

TEST_F(Matching, AnAbortedRunWithShiftedSequencesIsTracedToTheShift) {
  World(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int layer = 0; layer < 4; ++layer) {
      if (rank != 1 || layer != 2) AllGather(rank, 8, {SPF_FOR_PARAM_FULL, layer, -1});
    }
    End(rank, TraceEnd::kAborted);
  }
  const CheckResult result = Check(true);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("#2"), std::string::npos) << result.findings[0].message;
  EXPECT_NE(result.findings[0].seen.find("module 3"), std::string::npos);
}

TEST_F(Matching, ExchangeCountsMustAgreePairwise) {
  World(2);
  for (int rank = 0; rank < 2; ++rank) {
    CollectiveOptions options;
    options.send_counts = {1, 2};
    options.recv_counts = rank == 0 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{3, 2};
    At(rank).Collective(SPF_ALL_TO_ALL_V, 0, 0, 0, {}, options);
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-02");
  EXPECT_EQ(result.findings[0].rank, 1);
  EXPECT_NE(result.findings[0].message.find("rank 0 sends 2 elements to rank 1, which expects 3"),
            std::string::npos);
}

TEST_F(Matching, GatherCountListsMustBeEqual) {
  World(3);
  for (int rank = 0; rank < 3; ++rank) {
    CollectiveOptions options;
    options.recv_counts = {4, 4, rank == 1 ? 5 : 4};
    At(rank).Collective(SPF_ALL_GATHER_V, 0, 0, 0, {}, options);
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-02");
  EXPECT_EQ(result.findings[0].rank, 1);
}

TEST_F(Matching, RootsAndReductionsMustBeEqual) {
  for (const int kind : {SPF_BROADCAST, SPF_ALL_REDUCE}) {
    builders_.clear();
    World(2);
    for (int rank = 0; rank < 2; ++rank) {
      CollectiveOptions options;
      if (kind == SPF_BROADCAST) options.peer = rank;
      if (kind == SPF_ALL_REDUCE) options.reduction = rank == 0 ? SPF_SUM : SPF_AVG;
      At(rank).Collective(kind, 0, 0, 8, {}, options);
    }
    EXPECT_EQ(Check().findings.size(), 1u);
  }
}

TEST_F(Matching, AnotherRootIsNamedWithItsRankAndThatOfTheOthers) {
  for (const int kind : {int{SPF_BROADCAST}, int{graph::kReduce}}) {
    builders_.clear();
    for (int rank = 0; rank < 4; ++rank) {
      auto& builder = builders_.emplace_back(rank, 4);
      builder.Group("pair", rank < 2 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{2, 3});
      builder.Stream("comm");
      CollectiveOptions options;
      options.peer = rank == 3 ? 1 : 0;
      builder.Collective(kind, 0, 0, 8, {}, options);
    }
    const CheckResult result = Check();
    ASSERT_EQ(result.findings.size(), 1u);
    EXPECT_EQ(result.findings[0].requirement, "GE-01");
    EXPECT_NE(
        result.findings[0].message.find("differs by its root: rank 3 names root 1 (rank 3), rank 2 "
                                        "names root 0 (rank 2)"),
        std::string::npos)
        << result.findings[0].message;
  }
}

TEST_F(Matching, OtherCountsBesideAnotherRootAreAnotherOperation) {
  World(2);
  for (int rank = 0; rank < 2; ++rank) {
    CollectiveOptions options;
    options.peer = rank;
    At(rank).Collective(SPF_BROADCAST, 0, 0, 8 + rank, {}, options);
  }
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_NE(result.findings[0].message.find("differs"), std::string::npos);
  EXPECT_NE(result.findings[0].message.find("root 1 (rank 1)"), std::string::npos);
}

TEST_F(Matching, AMessageOfOneMicrobatchIsNotReceivedForAnother) {
  for (const int received : {0, 1, -1}) {  // -1: says nothing
    builders_.clear();
    World(2);
    CollectiveOptions to, from;
    to.peer = 1;
    to.label.microbatch = 1;
    from.peer = 0;
    from.label.microbatch = received;
    At(0).Collective(SPF_SEND, 0, 0, 4, {}, to);
    At(1).Collective(SPF_RECV, 0, 0, 4, {}, from);
    const CheckResult result = Check();
    ASSERT_EQ(result.findings.size(), received == 0 ? 1u : 0u) << received;
    if (received != 0) continue;
    EXPECT_EQ(result.findings[0].requirement, "GE-09");
    EXPECT_NE(result.findings[0].message.find("sent for microbatch 1 is received for microbatch 0"),
              std::string::npos)
        << result.findings[0].message;
  }
}

TEST_F(Matching, SendsAndReceivesPairInOrder) {
  World(2);
  CollectiveOptions to;
  to.peer = 1;
  CollectiveOptions from;
  from.peer = 0;
  At(0).Collective(SPF_SEND, 0, 0, 4, {}, to);
  At(0).Collective(SPF_SEND, 0, 0, 8, {}, to);
  At(1).Collective(SPF_RECV, 0, 0, 4, {}, from);
  At(1).Collective(SPF_RECV, 0, 0, 9, {}, from);
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-09");
}

TEST_F(Matching, ASendWithoutReceiveIsMissing) {
  World(2);
  CollectiveOptions to;
  to.peer = 1;
  At(0).Collective(SPF_SEND, 0, 0, 4, {}, to);
  const CheckResult result = Check();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].requirement, "GE-09");
  EXPECT_NE(result.findings[0].message.find(", rank 1 issues none on its side. "),
            std::string::npos)
      << result.findings[0].message;
}

TEST_F(Matching, GroupsCreatedInAnotherOrderAreFound) {
  World(4);
  for (int rank = 0; rank < 4; ++rank) {
    const std::vector<int32_t> row =
        rank < 2 ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{2, 3};
    const std::vector<int32_t> column =
        rank % 2 == 0 ? std::vector<int32_t>{0, 2} : std::vector<int32_t>{1, 3};
    At(rank).GroupCreate(0, "a", rank == 3 ? column : row);
    At(rank).GroupCreate(0, "b", rank == 3 ? row : column);
  }
  const CheckResult result = Check();
  ASSERT_FALSE(result.findings.empty());
  EXPECT_EQ(result.findings[0].requirement, "GE-08");
  EXPECT_NE(result.findings[0].message.find("creation #0"), std::string::npos);
}

TEST_F(Matching, GroupsCreatedAlikePass) {
  World(4);
  for (int rank = 0; rank < 4; ++rank) {
    At(rank).GroupCreate(0, "a",
                         rank < 2 ? std::vector<int32_t>{1, 0} : std::vector<int32_t>{2, 3});
    At(rank).GroupCreate(0, "b", rank == 0 ? std::vector<int32_t>{0} : std::vector<int32_t>{});
  }
  EXPECT_TRUE(Check().findings.empty());
}

TEST_F(Matching, TracesWithoutCollectivesAreNotCheckable) {
  World(2);
  At(1).provides().collectives = false;
  const CheckResult result = Check();
  EXPECT_TRUE(result.judged.empty());
  ASSERT_FALSE(result.not_checkable.empty());
  EXPECT_NE(result.not_checkable[0].why.find("rank 1"), std::string::npos);
}

TEST_F(Matching, ATraceOfARankThatIsNotThereIsNotCheckable) {
  World(3);
  builders_.pop_back();
  EXPECT_FALSE(Check().not_checkable.empty());
}

}  // namespace
}  // namespace shardproof
