// What other families make of gradients of parts of the sequence.
#include <gtest/gtest.h>

#include "conformance/checks/order/order.h"
#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/testing/mini_engine.h"

namespace shardproof {
namespace {

Case Parts(int32_t microbatches) {
  return MiniCase(4, [&](InstanceSpec& spec) {
    spec.tp = spec.etp = 2;
    spec.tensor_parallel = spec.sequence_parallel = true;
    spec.microbatches = microbatches;
    spec.script = "te";
  });
}

// The sum over tp is none of the data-parallel reductions: these are judged by what this part of
// the sequence contributes.
TEST(SequenceParallelFamilies, ReductionsAreJudgedWithoutTheOtherParts) {
  for (const int32_t sums : {0, 1}) {
    MiniFaults faults;
    faults.tp_parts = sums;
    const CheckResult result = CheckReduction(RunMini(Parts(2), faults).run);
    EXPECT_EQ(FoundIn(result), "") << sums;
    EXPECT_TRUE(result.judged.contains("FS-05"));
  }
  MiniFaults twice;
  twice.add_reduced_twice = true;
  EXPECT_NE(FoundIn(CheckReduction(RunMini(Parts(2), twice).run)).find("FS-05"), std::string::npos);
}

TEST(SequenceParallelFamilies, PartsMayBeSummedBeforeTheyAreReduced) {
  MiniFaults first;
  first.tp_parts_first = true;
  const CheckResult result = CheckReduction(RunMini(Parts(2), first).run);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.contains("FS-36"));
}

// Summed over tp before they are reduced, gradients of parts are judged as others are.
TEST(SequenceParallelFamilies, AReductionOfSummedPartsIsJudged) {
  MiniFaults faults;
  faults.tp_parts_first = faults.add_reduced_twice = true;
  EXPECT_NE(FoundIn(CheckReduction(RunMini(Parts(2), faults).run)).find("FS-05"),
            std::string::npos);
}

// With check_for_nan_in_grad a gradient is examined before it leaves the rank, over tp too.
TEST(SequenceParallelFamilies, PartsAreExaminedBeforeTheyAreSummed) {
  Case c = Parts(1);
  c.instances[0].check_for_nan = true;
  Derive(c);
  MiniFaults first, unlooked;
  first.tp_parts_first = true;
  unlooked.tp_parts_unlooked = true;
  EXPECT_EQ(FoundIn(CheckNanGuard(RunMini(c, first).run)), "");
  EXPECT_EQ(FoundIn(CheckNanGuard(RunMini(c, unlooked).run)), "FS-26");
}

}  // namespace
}  // namespace shardproof
