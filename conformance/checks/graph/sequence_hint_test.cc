#include "conformance/checks/graph/sequence_hint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/checks/graph/graph_checks.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// What a rank reduces in each entry call, by sizes.
using Call = std::vector<int64_t>;
using Calls = std::vector<Call>;

// Traces without entry calls, as from elsewhere, if calls is false.
std::vector<Trace> Reducing(const std::vector<Calls>& ranks, bool calls = true,
                            TraceEnd end = TraceEnd::kComplete) {
  std::vector<Trace> traces;
  std::vector<int32_t> everybody;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    everybody.push_back(static_cast<int32_t>(rank));
  for (const int32_t rank : everybody) {
    TraceBuilder t(rank, static_cast<int>(ranks.size()));
    const int dp = t.Group("dp", everybody), comm = t.Stream("comm");
    int step = 0;
    const Calls& mine = ranks[static_cast<size_t>(rank)];
    for (size_t i = 0; i < mine.size(); ++i) {
      if (calls) t.CallBegin("train_step", step);
      for (const int64_t count : mine[i]) t.Collective(SPF_ALL_REDUCE, dp, comm, count);
      const bool cut = end != TraceEnd::kComplete && i + 1 == mine.size();
      if (calls && !cut) t.CallEnd("train_step", step);
      ++step;
    }
    t.provides().calls = calls;
    traces.push_back(t.Done(end));
  }
  return traces;
}

std::string MessageOf(const std::vector<Trace>& traces) {
  const CheckResult result = CheckMatching(traces);
  if (result.findings.size() != 1) return std::to_string(result.findings.size()) + " findings";
  return result.findings[0].message;
}

void ExpectSaid(const std::vector<Trace>& traces, const std::string& words) {
  const std::string message = MessageOf(traces);
  EXPECT_NE(message.find("; " + words + ". Let every member"), std::string::npos) << message;
}

// Nothing between what meets and the advice.
void ExpectNothingSaid(const std::vector<Trace>& traces,
                       const std::string& advice = "Let every member issue the same sequence") {
  const std::string message = MessageOf(traces);
  const std::string last = message.substr(message.rfind("; ") + 2);
  EXPECT_EQ(last.find(" all_reduce on dp"), last.find(" all")) << message;
  EXPECT_NE(last.find(" all_reduce on dp"), std::string::npos) << message;
  EXPECT_TRUE(last.ends_with(". " + advice)) << message;
}

// Buckets of an engine whose two layers have the same sizes: of which layer those are that one call
// lacks, sizes do not tell.
const Call kLayers = {512, 16, 384, 768, 16, 256, 768, 16, 384, 768, 16, 256, 768, 16, 512};
const Call kUsed = {512, 16, 384, 768, 16, 256, 768, 16, 512};

TEST(SequenceHint, NothingIsAlignedAcrossTheEndOfAnEntryCall) {
  const Calls leaves_out = {kUsed, kUsed, kUsed}, all = {kLayers, kLayers, kLayers};
  ExpectSaid(Reducing({leaves_out, all, leaves_out}),
             "in train_step 0 rank 1 issues 6 operations more than ranks 0 and 2");
}

// As dumps that were cut to one length.
TEST(SequenceHint, WithoutEntryCallsListsMayGoOn) {
  ExpectSaid(Reducing({{{1, 2, 3, 4, 5, 6}}, {{1, 3, 4, 5, 6, 7}}}, false),
             "rank 0 issues 1 operation that rank 1 does not: #1");
  ExpectNothingSaid(Reducing({{kUsed}, {kLayers}, {kUsed}}, false));
}

TEST(SequenceHint, WhatIsLeftOutAtTheEndOfAnEntryCallIsNotTheNextCallsFirst) {
  ExpectSaid(Reducing({{{8, 16, 24, 32}, {64, 8}}, {{8, 16}, {64, 8}}}),
             "in train_step 0 rank 0 issues 2 operations that rank 1 does not: #2 and #3");
}

// Rank 1's step 1 begins as the rest of rank 0's step 0 does.
TEST(SequenceHint, EqualSizesBeyondTheEntryCallHideNoDifference) {
  const Call rest = {64, 8, 40};
  ExpectSaid(Reducing({{{1, 2, 64, 8}, rest}, {{1, 2}, rest}}),
             "in train_step 0 rank 0 issues 2 operations that rank 1 does not: #2 and #3");
}

TEST(SequenceHint, TheFewerAreNotBlamed) {
  ExpectSaid(Reducing({{{8, 16, 24}}, {{8, 24}}, {{8, 16, 24}}, {{8, 24}}, {{8, 16, 24}}}),
             "in train_step 0 ranks 0, 2 and 4 issue 1 operation that ranks 1 and 3 do not: #1");
}

// Ranks 0 and 1 are alike where the first difference is, but not after it.
TEST(SequenceHint, OnlyRanksOfWhichItIsTrueAreNamed) {
  ExpectSaid(Reducing({{{8, 16, 24, 32}}, {{8, 16, 32, 40}}, {{8, 24, 32}}}),
             "in train_step 0 rank 0 issues 1 operation that rank 2 does not: #1");
}

TEST(SequenceHint, TwoThatAreLeftOutAreNoSwap) {
  // As an engine's gathers: each rank leaves out some.
  const Call zero = {784, 1040, 384, 784, 640, 528, 1, 2, 3, 4, 5, 6, 7},
             one = {1040, 784, 900, 640, 528, 1, 2, 3, 4, 5, 6, 7};
  ExpectSaid(Reducing({{zero, zero}, {one, one}}),
             "in train_step 0 rank 0 issues 2 operations that rank 1 does not: #0 and #2; rank 1 "
             "issues 1 that rank 0 does not: #2");
}

TEST(SequenceHint, AnotherOperationBesideOneThatIsLeftOutIsSaid) {
  ExpectSaid(Reducing({{{9, 1, 2, 20, 3, 4, 5, 6, 7, 8}}, {{1, 2, 21, 3, 4, 5, 6, 7, 8}}}),
             "in train_step 0 rank 0 issues 2 operations that rank 1 does not: #0 and #3; rank 1 "
             "issues 1 that rank 0 does not: #2");
}

TEST(SequenceHint, TwoInTheOtherOrderAreSaidWhereNothingIsLeftOut) {
  ExpectSaid(Reducing({{{8, 16, 24, 32}, {4}}, {{8, 24, 16, 32}, {4}}}),
             "rank 1 issues operations #1 and #2 in the other order");
  ExpectSaid(Reducing({{{8, 16, 24, 32}, {4}}, {{8, 32, 16, 24}, {4}}}),
             "rank 1 issues operations #1 to #3 in another order");
}

// How many is sure, but not which ones of those that are equal.
TEST(SequenceHint, OneOfEqualOperationsHasNoPlace) {
  ExpectSaid(Reducing({{{8, 8, 8, 16}}, {{8, 8, 16}}}),
             "in train_step 0 rank 0 issues 1 operation more than rank 1");
}

TEST(SequenceHint, NothingIsSaidOfSequencesThatHaveLittleInCommon) {
  ExpectNothingSaid(Reducing({{{8, 1, 2, 3, 4, 5, 6, 7}}, {{8, 9, 10, 11, 12, 1, 13, 14, 15}}}));
}

TEST(SequenceHint, NothingIsSaidWhereSeveralExplanationsAreAsShort) {
  ExpectNothingSaid(Reducing({{{1, 2, 9, 4, 5, 6, 7, 8, 8}}, {{2, 1, 4, 5, 6, 7, 8}}}));
  ExpectNothingSaid(
      Reducing({{{9, 1, 2, 5, 5, 3, 4, 6, 7, 8, 10, 11}}, {{1, 2, 5, 20, 3, 4, 6, 7, 8, 10, 11}}}));
  const Call turns = {8, 16, 8, 16, 8, 16}, others = {16, 8, 16, 8, 16, 8, 16};
  ExpectNothingSaid(Reducing({{turns}, {others}}, true, TraceEnd::kAborted));
}

TEST(SequenceHint, WhatComesLaterIsNotLeftOut) {
  ExpectNothingSaid(Reducing({{{9, 1, 2, 3, 4, 5, 6, 7, 8, 20}}, {{1, 2, 3, 4, 5, 6, 7, 8, 9}}}));
}

TEST(SequenceHint, TwoThatMeetTheOtherWayRoundByChanceAreNoSwap) {
  const std::string advice = "Only counts differ: let every member compute the same counts";
  ExpectNothingSaid(Reducing({{{1, 2, 3, 4}}, {{2, 1, 5, 6}}}), advice);
}

// The list ends where the run was ended, so what follows is not known.
TEST(SequenceHint, AListThatWasCutMustAgreeForSomeTime) {
  const Calls whole = {{1, 2, 3, 4, 5, 6}}, cut = {{1, 3, 4}};
  ExpectSaid(Reducing({whole, cut}, true, TraceEnd::kAborted),
             "in train_step 0 rank 0 issues 1 operation that rank 1 does not: #1");
  ExpectSaid(Reducing({cut, whole}, true, TraceEnd::kAborted),
             "in train_step 0 rank 1 issues 1 operation that rank 0 does not: #1");
  ExpectNothingSaid(Reducing({whole, {{1, 3}}}, true, TraceEnd::kAborted));
  ExpectNothingSaid(Reducing({whole, {{1, 3, 9, 9, 9}}}, true, TraceEnd::kAborted));
}

TEST(SequenceHint, AnEntryCallThatEndedBeforeTheRunIsKnownWhole) {
  ExpectSaid(Reducing({{{8, 16, 24}, {}}, {{8, 24}, {}}}, true, TraceEnd::kAborted),
             "in train_step 0 rank 0 issues 1 operation that rank 1 does not: #1");
}

TEST(SequenceHint, OneThatIsIssuedTwiceHasNoPlaceInAListThatWasCut) {
  ExpectSaid(Reducing({{{1, 2, 3, 4, 5, 6}}, {{1, 2, 2, 3, 4, 5}}}, false, TraceEnd::kAborted),
             "rank 1 issues 1 operation more than rank 0");
}

TEST(SequenceHint, EqualSequencesWithOtherCountsAreToBeComputedAlike) {
  const std::string advice = "Only counts differ: let every member compute the same counts";
  ExpectNothingSaid(Reducing({{{8, 16, 24}, {8}}, {{8, 17, 25}, {8}}}), advice);
  ExpectNothingSaid(Reducing({{{1, 2, 3, 4, 5, 6, 7}}, {{1, 20, 3, 4, 5, 6, 7}}}), advice);
}

TEST(SequenceHint, ListsOfCountsNameWhatTheyAreComputedFrom) {
  std::vector<Trace> traces;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1}), comm = t.Stream("comm");
    CollectiveOptions options;
    for (const int64_t count : {512, 784}) {
      options.recv_counts = {rank == 0 ? count : 0, rank == 0 ? 0 : count};
      t.Collective(SPF_ALL_GATHER_V, dp, comm, 0, {}, options);
    }
    traces.push_back(t.Done());
  }
  const std::string message = MessageOf(traces);
  EXPECT_TRUE(message.ends_with(
      ". Only counts differ: let every member compute the same counts (owners, split sizes)"))
      << message;
}

}  // namespace
}  // namespace shardproof
