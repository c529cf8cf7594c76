#include "conformance/checks/cause/order_by_cause.h"

#include <gtest/gtest.h>

#include "conformance/checks/cause/kind_of_mistake.h"
#include "conformance/requirements/registry.h"
#include "conformance/trace/trace_builder.h"

namespace shardproof {
namespace {

// Two ranks, each: two streams, kernels 0 and 1 on the first, one collective, kernels 2 and 3.
struct World {
  std::vector<Trace> traces;
  int64_t kernel[4] = {};  // events, the same on both ranks
  int64_t collective = -1, gradient = -1, publish = -1, other = -1;
};

World TwoRanks() {
  World world;
  for (int rank = 0; rank < 2; ++rank) {
    TraceBuilder t(rank, 2);
    const int dp = t.Group("dp", {0, 1}), compute = t.Stream("compute"), comm = t.Stream("comm");
    t.CallBegin("create");
    const int block = t.Alloc(compute, 64), other = t.Alloc(compute, 64);
    const auto launch = [&](int stream, int of, int64_t* event) {
      *event = t.size();
      t.Launch(stream, SPF_K_FILL, {Writes(of, 0, 64)});
    };
    launch(compute, block, &world.kernel[0]);
    launch(compute, other, &world.kernel[1]);
    world.collective = t.size();
    t.Collective(SPF_ALL_REDUCE, dp, compute, 16, {Updates(block, 0, 64)});
    launch(compute, block, &world.kernel[2]);
    launch(comm, other, &world.kernel[3]);
    const auto publish = [&](int result, int param, int64_t* event) {
      *event = t.size();
      t.Publish(compute, result, param, 0, 16, SPF_F32, 0, Reads(block, 0, 64));
    };
    publish(SPF_RESULT_GRAD, 0, &world.gradient);
    publish(SPF_RESULT_PARAM, 0, &world.publish);
    publish(SPF_RESULT_PARAM, 1, &world.other);
    t.CallEnd("create");
    world.traces.push_back(t.Done());
  }
  return world;
}

Finding Made(const char* requirement, int rank, int64_t event, int64_t begins = -1) {
  Finding finding;
  finding.requirement = requirement;
  finding.rank = rank;
  finding.event = event;
  finding.begins = begins;
  finding.seen = std::string("by ") + requirement;
  finding.message = finding.seen;
  return finding;
}

// "GE-05 FS-15<GE-05": requirements in order, each with what it follows from.
std::string Ordered(const World& world, std::vector<Finding> findings) {
  CheckResult result;
  result.findings = std::move(findings);
  OrderByCause(graph::Lowered(world.traces), result);
  std::string text;
  for (const Finding& finding : result.findings) {
    text += (text.empty() ? "" : " ") + finding.requirement;
    if (finding.follows >= 0) text += "<" + result.findings[size_t(finding.follows)].requirement;
  }
  return text;
}

TEST(KindOfMistake, EveryRequirementIsInTheTable) {
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    EXPECT_TRUE(cause::TraitsInTable(row.id))
        << row.id << ": give it a place in cause/kind_of_mistake.cc";
  }
  EXPECT_FALSE(cause::TraitsInTable("GE-99"));
  EXPECT_FALSE(cause::TraitsInTable("GE-0"));
}

TEST(OrderByCause, ARaceComesBeforeWhatItSpoils) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-15", 0, w.kernel[2]), Made("FS-05", 0, w.kernel[3]),
                        Made("GE-05", 0, w.kernel[2], w.kernel[0])}),
            "GE-05 FS-05<GE-05 FS-15<GE-05");
}

TEST(OrderByCause, WhatComesBeforeARaceIsNotItsConsequence) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-15", 0, w.kernel[0]), Made("GE-05", 0, w.kernel[2], w.kernel[1])}),
            "GE-05 FS-15");
  // A race begins with the first of its two accesses.
  EXPECT_EQ(Ordered(w, {Made("FS-15", 0, w.kernel[1]), Made("GE-05", 0, w.kernel[2], w.kernel[0])}),
            "GE-05 FS-15<GE-05");
}

TEST(OrderByCause, AWrongNumberComesBeforeTheLoadThatBringsItBack) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-23", 0, w.publish), Made("FS-17", 0, w.gradient)}),
            "FS-17 FS-23<FS-17");
  // Another parameter, or a number that is no parameter's, says nothing of it.
  EXPECT_EQ(Ordered(w, {Made("FS-23", 0, w.other), Made("FS-17", 0, w.gradient)}), "FS-23 FS-17");
  EXPECT_EQ(Ordered(w, {Made("FS-23", 0, w.publish), Made("FS-25", 0, w.kernel[2])}),
            "FS-23 FS-25");
  // Nor does a number that is wrong later.
  EXPECT_EQ(Ordered(w, {Made("FS-23", 0, w.gradient), Made("FS-24", 0, w.publish)}),
            "FS-23 FS-24<FS-23");
  // Weights that are read are compared with what was published.
  EXPECT_EQ(Ordered(w, {Made("FS-23", 0, w.kernel[2]), Made("FS-17", 0, w.gradient)}),
            "FS-23 FS-17<FS-23");
}

TEST(OrderByCause, OrderHoldsOverRanks) {
  const World w = TwoRanks();
  // Rank 1's first kernel is over before rank 0's work behind the all-reduce begins.
  EXPECT_EQ(Ordered(w, {Made("FS-15", 1, w.kernel[0]), Made("GE-05", 0, w.kernel[2], w.kernel[2])}),
            "GE-05 FS-15");
  EXPECT_EQ(Ordered(w, {Made("FS-15", 1, w.kernel[2]), Made("GE-05", 0, w.kernel[2], w.kernel[0])}),
            "GE-05 FS-15<GE-05");
}

TEST(OrderByCause, ARaceDoesNotExplainWhatBytesDoNotShow) {
  const World w = TwoRanks();
  const Finding race = Made("GE-05", 0, w.kernel[1], w.kernel[0]);
  EXPECT_EQ(Ordered(w, {Made("FS-04", 0, w.kernel[3]), race}), "GE-05 FS-04");
  EXPECT_EQ(Ordered(w, {Made("FS-33", 0, w.kernel[3]), race}), "GE-05 FS-33");
}

// Of bytes that a race spoils nobody knows which elements they are.
TEST(OrderByCause, PaddingAndUnreducedGradientsOfSpoiledBytesFollowFromTheRace) {
  const World w = TwoRanks();
  const Finding race = Made("GE-05", 0, w.collective, w.kernel[0]);
  EXPECT_EQ(Ordered(w, {Made("BU-04", 0, w.collective), race}), "GE-05 BU-04<GE-05");
  EXPECT_EQ(Ordered(w, {Made("BU-01", 1, w.kernel[2]), race}), "GE-05 BU-01<GE-05");
  EXPECT_EQ(Ordered(w, {Made("BU-02", 0, w.kernel[2]), race}), "GE-05 BU-02") << "of blocks alone";
  EXPECT_EQ(
      Ordered(w, {Made("BU-04", 0, w.collective), Made("GE-05", 0, w.kernel[3], w.kernel[2])}),
      "GE-05 BU-04")
      << "before the race";
}

TEST(OrderByCause, RacesOfOneMissingWaitAreOne) {
  const World w = TwoRanks();
  const Finding across = Made("GE-05", 0, w.kernel[3], w.kernel[2]);
  EXPECT_EQ(Ordered(w, {across, Made("GE-11", 0, w.kernel[3], w.kernel[0])}), "GE-05 GE-11<GE-05")
      << "the same streams";
  EXPECT_EQ(Ordered(w, {across, Made("GE-11", 0, w.kernel[2], w.kernel[0])}), "GE-11 GE-05<GE-11")
      << "the same block";
  EXPECT_EQ(Ordered(w, {Made("GE-05", 0, w.kernel[3], w.kernel[1]),
                        Made("GE-11", 0, w.kernel[2], w.kernel[0])}),
            "GE-11 GE-05")
      << "neither";
}

// Work on a block that was freed, on another stream than the free: it also races with the free.
TEST(OrderByCause, ARaceOfWorkOnNoBlockFollowsFromThat) {
  const World w = TwoRanks();
  const Finding none = Made("GE-18", 0, w.kernel[3]);
  EXPECT_EQ(Ordered(w, {Made("GE-11", 0, w.kernel[3], w.kernel[2]), none}), "GE-18 GE-11<GE-18");
  EXPECT_EQ(Ordered(w, {Made("GE-11", 0, w.kernel[2], w.kernel[0]), none}), "GE-11 GE-18")
      << "of other work";
  EXPECT_EQ(Ordered(w, {Made("GE-11", 1, w.kernel[3], w.kernel[2]), none}), "GE-11 GE-18")
      << "on another rank";
}

TEST(OrderByCause, KindsComeInOrderAndOneKindInOrderOfTime) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-33", 0, w.kernel[0]), Made("FS-38", 0, w.kernel[3]),
                        Made("FS-04", 0, w.kernel[2]), Made("GE-18", 0, w.kernel[3])}),
            "GE-18 FS-04 FS-38 FS-33<GE-18");
}

TEST(OrderByCause, EverythingFollowsARefusalButWhatComesBefore) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("EP-01", 0, w.kernel[2]), Made("FS-31", 0, w.kernel[3]),
                        Made("GE-25", 0, w.collective), Made("EP-02", 0, w.kernel[0])}),
            "GE-25 EP-02 EP-01<GE-25 FS-31<GE-25");
}

TEST(OrderByCause, ARefusalBehindAMismatchFollowsFromIt) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("GE-25", 0, w.kernel[2]), Made("GE-01", 1, w.collective)}),
            "GE-01 GE-25<GE-01");
  EXPECT_EQ(Ordered(w, {Made("GE-25", 0, w.kernel[0]), Made("GE-01", 0, w.collective)}),
            "GE-25 GE-01<GE-25");
  Finding waits = Made("GE-01", 1, w.collective);
  waits.ended = 0;
  EXPECT_EQ(Ordered(w, {waits, Made("GE-25", 0, w.kernel[2])}), "GE-25 GE-01<GE-25");
}

TEST(OrderByCause, AHangFollowsFromItsCycle) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("GE-27", 0, -1), Made("GE-03", 1, w.collective)}),
            "GE-03 GE-27<GE-03");
}

TEST(OrderByCause, ACitedFindingStandsBehindItsOriginal) {
  const World w = TwoRanks();
  Finding cited = Made("FS-17", 0, w.kernel[2]);
  const Finding original = cited;
  cited.requirement = "EP-22";
  cited.message += " (FS-17, with expert parallelism)";
  EXPECT_EQ(Ordered(w, {original, cited}), "FS-17 EP-22<FS-17");
  EXPECT_EQ(Ordered(w, {Made("GE-05", 0, w.kernel[2], w.kernel[0]), original, cited}),
            "GE-05 FS-17<GE-05 EP-22<GE-05");
}

TEST(OrderByCause, ReadsFollowAStructureThatCameBefore) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-14", 0, w.kernel[2]), Made("FS-29", 0, w.collective)}),
            "FS-29 FS-14<FS-29");
  EXPECT_EQ(Ordered(w, {Made("FS-14", 0, w.kernel[0]), Made("FS-29", 0, w.collective)}),
            "FS-14 FS-29<FS-14");
}

TEST(OrderByCause, GathersTooManyExplainNoWrongNumbers) {
  const World w = TwoRanks();
  const Finding wrong = Made("FS-24", 0, w.kernel[3]);
  EXPECT_EQ(Ordered(w, {wrong, Made("FS-35", 0, w.collective)}), "FS-35 FS-24");
  EXPECT_EQ(Ordered(w, {wrong, Made("FS-37", 0, w.collective)}), "FS-37 FS-24<FS-37");
}

TEST(OrderByCause, WorkOnAWrongStreamExplainsItsRaces) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("EP-05", 0, w.kernel[3]), Made("GE-05", 0, w.kernel[3], w.kernel[1])}),
            "EP-05 GE-05<EP-05");
}

TEST(OrderByCause, FindingsWithoutARankOrAnEventAreKept) {
  const World w = TwoRanks();
  EXPECT_EQ(Ordered(w, {Made("FS-28", -1, -1), Made("GE-01", -1, -1), Made("FS-34", 7, 4711)}),
            "GE-01 FS-34<GE-01 FS-28<GE-01");
  World none;
  EXPECT_EQ(Ordered(none, {Made("GE-37", -1, -1)}), "GE-37");
}

}  // namespace
}  // namespace shardproof
