// Traces of a small engine whose vocabulary is split over tp, good and with one departure each.
#include <gtest/gtest.h>

#include "conformance/checks/tensor_parallel/tensor_parallel.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Vocabulary(bool in_parts = false) {
  return MiniCase(4, [&](InstanceSpec& spec) {
    spec.tp = spec.etp = 2;
    spec.tensor_parallel = spec.vocab_parallel = true;
    spec.sequence_parallel = in_parts;
    spec.microbatches = 2;
    spec.script = "te";
  });
}

CheckResult With(const MiniFaults& faults, bool in_parts = false) {
  return CheckTensorParallel(RunMini(Vocabulary(in_parts), faults).run);
}

bool Found(const CheckResult& result, const char* id) {
  return FoundIn(result).find(id) != std::string::npos;
}

TEST(VocabParallel, WhatMeetsInItsPlaceIsGood) {
  for (const bool in_parts : {false, true}) {
    const CheckResult result = With({}, in_parts);
    EXPECT_EQ(FoundIn(result), "") << in_parts;
    EXPECT_EQ(NotCheckableIn(result).size(), 0u) << in_parts;
    for (const char* id : {"TP-01", "TP-02", "TP-03", "TP-10", "TP-11"})
      EXPECT_TRUE(result.judged.contains(id)) << id;
    EXPECT_EQ(result.judged.contains("TP-08"), in_parts);
  }
}

// A whole vocabulary shows nothing of these.
TEST(VocabParallel, WithoutItNothingIsAsked) {
  Case c = Vocabulary();
  c.instances[0].vocab_parallel = false;
  Derive(c);
  MiniFaults faults;
  faults.tp_sums_forward = 0;
  const CheckResult result = CheckTensorParallel(RunMini(c, faults).run);
  EXPECT_FALSE(result.judged.contains("TP-10"));
  EXPECT_FALSE(result.judged.contains("TP-11"));
  EXPECT_FALSE(Found(result, "TP-10") || Found(result, "TP-11"));
}

TEST(VocabParallel, RowsAndExponentialsThatAreNotSummedOnceAreFound) {
  for (const bool in_parts : {false, true}) {
    for (const int32_t sums : {0, 2}) {
      MiniFaults faults;
      faults.tp_sums_forward = sums;
      const CheckResult result = With(faults, in_parts);
      EXPECT_TRUE(Found(result, "TP-10")) << sums << in_parts;
      EXPECT_TRUE(Found(result, "TP-11")) << sums << in_parts;
    }
  }
}

TEST(VocabParallel, MaximaOfTheOwnRangeAreFound) {
  MiniFaults faults;
  faults.tp_gathers = 0;
  faults.rank = 2;
  const CheckResult result = With(faults);
  EXPECT_EQ(FoundIn(result), "TP-11");
  EXPECT_EQ(result.findings.at(0).rank, 2);
  EXPECT_EQ(result.findings.at(0).seen, "the part of this rank");
}

TEST(VocabParallel, GradientsOfTheHeadsInputAreSummed) {
  MiniFaults faults;
  faults.tp_sums_backward = 0;
  EXPECT_EQ(FoundIn(With(faults)), "TP-02");
}

TEST(VocabParallel, WhatMeetsOverOtherRanksIsFound) {
  MiniFaults faults;
  faults.tp_group = "dp_cp";
  EXPECT_EQ(FoundIn(With(faults)), "TP-03");
}

}  // namespace
}  // namespace shardproof
