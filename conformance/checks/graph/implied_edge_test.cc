#include "conformance/checks/graph/implied_edge.h"

#include <gtest/gtest.h>

#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

using Kind = EdgeVerdict::Kind;

// One rank with a block that is written on one stream and read on another.
class ImpliedEdge : public testing::Test {
 protected:
  ImpliedEdge()
      : trace_(0, 1),
        a_(trace_.Stream("a")),
        b_(trace_.Stream("b")),
        block_(trace_.Alloc(a_, 64)) {}

  void Write() { trace_.Launch(a_, SPF_K_FILL, {Writes(block_, 0, 64)}); }
  void Read() { trace_.Launch(b_, SPF_K_SUM_SQUARES, {Reads(block_, 0, 64)}); }
  // Returns the wait's place in the trace.
  int64_t Order(int from, int to) {
    const int event = trace_.EventCreate();
    trace_.Record(event, from);
    trace_.Wait(event, to);
    return trace_.size() - 1;
  }
  EdgeVerdict Judge(int64_t event) { return JudgeEdge({trace_.Done()}, {0, event}); }

  TraceBuilder trace_;
  int a_, b_, block_;
};

TEST_F(ImpliedEdge, TheOnlyOrderIsNeeded) {
  Write();
  const int64_t wait = Order(a_, b_);
  Read();
  const EdgeVerdict verdict = Judge(wait);
  EXPECT_EQ(verdict.kind, Kind::kNeeded);
  ASSERT_FALSE(verdict.findings.empty());
  EXPECT_EQ(verdict.findings[0].requirement, "GE-05");
  EXPECT_NE(verdict.edge.find("stream b"), std::string::npos);
}

TEST_F(ImpliedEdge, OfTwoEqualWaitsTheSecondIsImplied) {
  Write();
  Order(a_, b_);
  const int64_t second = Order(a_, b_);
  Read();
  const EdgeVerdict verdict = Judge(second);
  EXPECT_EQ(verdict.kind, Kind::kCovered) << verdict.proof;
  EXPECT_NE(verdict.proof.find("kernel FILL (stream a) -> record"), std::string::npos)
      << verdict.proof;
}

TEST_F(ImpliedEdge, APathNamesTheEndsOfWhatFollowsOnOneStream) {
  Write();
  for (int i = 0; i < 5; ++i) trace_.Launch(a_, SPF_K_FILL, {Writes(block_, 0, 64)});
  Order(a_, b_);
  const int64_t second = Order(a_, b_);
  Read();
  const std::string proof = Judge(second).proof;
  EXPECT_NE(proof.find("rank 0's allocation of block 0 (stream a) -> 6 more on this stream -> "
                       "record of event 0 (stream a) -> wait for event 0 (stream b) -> "),
            std::string::npos)
      << proof;
}

TEST_F(ImpliedEdge, OfALongPathBothEndsAreNamed) {
  Write();
  int last = a_;
  for (int i = 0; i < 12; ++i) {
    const int next = trace_.Stream("s" + std::to_string(i));
    Order(last, next);
    last = next;
  }
  Order(last, b_);
  a_ = last;
  const int64_t second = Order(a_, b_);
  Read();
  const std::string proof = Judge(second).proof;
  EXPECT_NE(proof.find(" more steps -> "), std::string::npos) << proof;
  EXPECT_LT(proof.size(), 700u) << proof;
}

TEST_F(ImpliedEdge, AHostSyncBeforeTheWaitImpliesIt) {
  Write();
  const int event = trace_.EventCreate();
  trace_.Record(event, a_);
  trace_.StreamSync(a_);
  trace_.Wait(event, b_);
  const int64_t wait = trace_.size() - 1;
  Read();
  const EdgeVerdict verdict = Judge(wait);
  EXPECT_EQ(verdict.kind, Kind::kImplied);
  EXPECT_NE(verdict.proof.find("host sync"), std::string::npos) << verdict.proof;
}

TEST_F(ImpliedEdge, AWaitOnTheStreamOfItsRecordIsImplied) {
  Write();
  const int64_t wait = Order(a_, a_);
  Write();
  EXPECT_EQ(Judge(wait).kind, Kind::kImplied);
}

TEST_F(ImpliedEdge, AWaitThatOrdersNoAccessesIsUnused) {
  Write();
  const int64_t wait = Order(a_, b_);
  trace_.Launch(b_, SPF_K_FILL, {Writes(trace_.Alloc(b_, 64), 0, 64)});
  EXPECT_EQ(Judge(wait).kind, Kind::kUnused);
}

TEST_F(ImpliedEdge, AHostSyncBeforeAHostAccessIsNeeded) {
  const int pinned = trace_.Alloc(a_, 64, {}, SPF_PINNED);
  trace_.Copy(a_, Reads(block_, 0, 64), Writes(pinned, 0, 64));
  trace_.StreamSync(a_);
  const int64_t sync = trace_.size() - 1;
  trace_.HostAccess({Reads(pinned, 0, 64)});
  const EdgeVerdict verdict = Judge(sync);
  EXPECT_EQ(verdict.kind, Kind::kNeeded);
  EXPECT_EQ(verdict.findings.at(0).requirement, "GE-06");
}

TEST_F(ImpliedEdge, OrderThroughAPeerIsAProof) {
  // Rank 0's wait orders a write before a read; so does the way through rank 1 and its second
  // gather.
  TraceBuilder peer(1, 2);
  TraceBuilder mine(0, 2);
  for (TraceBuilder* trace : {&mine, &peer}) {
    trace->Group("dp", {0, 1});
    trace->Group("twin", {0, 1});
    trace->Stream("a");
    trace->Stream("b");
  }
  const int block = mine.Alloc(0, 64);
  mine.Launch(0, SPF_K_FILL, {Writes(block, 0, 64)});
  mine.Collective(SPF_ALL_GATHER, 0, 0, 8);
  const int event = mine.EventCreate();
  mine.Record(event, 0);
  mine.Wait(event, 1);
  const int64_t wait = mine.size() - 1;
  mine.Collective(SPF_ALL_GATHER, 1, 1, 8);
  mine.Launch(1, SPF_K_SUM_SQUARES, {Reads(block, 0, 64)});
  peer.Collective(SPF_ALL_GATHER, 0, 0, 8);
  peer.Collective(SPF_ALL_GATHER, 1, 0, 8);
  const EdgeVerdict verdict = JudgeEdge({mine.Done(), peer.Done()}, {0, wait});
  EXPECT_EQ(verdict.kind, Kind::kCovered) << verdict.proof;
  EXPECT_NE(verdict.proof.find("rank 1's"), std::string::npos) << verdict.proof;
}

TEST_F(ImpliedEdge, ARunWithRacesIsNotCheckable) {
  Read();
  Write();
  const int64_t wait = Order(a_, b_);
  Read();
  EXPECT_EQ(Judge(wait).kind, Kind::kNotCheckable);
}

TEST_F(ImpliedEdge, EdgesAreWaitsAndSyncsThatWaitForSomething) {
  trace_.Wait(trace_.EventCreate(), b_);  // never recorded
  trace_.StreamSync(b_);
  const int64_t wait = Order(a_, b_);
  const std::vector<SyncEdge> edges = FindSyncEdges({trace_.Done()});
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(edges[1].event, wait);
}

}  // namespace
}  // namespace shardproof
