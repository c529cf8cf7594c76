// The chain of parameter gathers, call by call: what starts when, and what is an error.
// property_tests/gather_chain_property_test.cc has it in any order.
#include "reference/plan/gather_chain.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace reference {
namespace {

// Records calls as text: L1 W0 P0.
class Recorder : public GatherPort {
 public:
  void Launch(int32_t p) override { text += "L" + std::to_string(p) + " "; }
  void Wait(int32_t p) override { text += "W" + std::to_string(p) + " "; }
  void Publish(int32_t p) override { text += "P" + std::to_string(p) + " "; }
  std::string text;
};

TEST(GatherChainTest, TheNextStartsBeforeValuesAreCopied) {
  Recorder recorder;
  GatherChain chain(3, recorder);
  chain.Need(0);
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 ");
  chain.Need(0);
  chain.Need(2);
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 L2 P1 W2 P2 ");
}

// Need and the end of a forward: the same calls.
TEST(GatherChainTest, WhoeverEndsAGatherItEndsTheSame) {
  Recorder needed, forced;
  GatherChain by_need(2, needed), by_force(2, forced);
  for (GatherChain* chain : {&by_need, &by_force}) chain->Need(0);
  by_need.Need(1);
  by_force.PublishAll();
  EXPECT_EQ(needed.text, "L0 W0 L1 P0 W1 P1 ");
  EXPECT_EQ(forced.text, needed.text);
}

TEST(GatherChainTest, WhatIsTheSameEverywhereIsNotGathered) {
  Recorder recorder;
  GatherChain chain(2, recorder, false);
  chain.Need(1);
  chain.PublishAll();
  EXPECT_EQ(recorder.text, "");
}

TEST(GatherChainTest, AChainWithoutBucketsDoesNothing) {
  Recorder recorder;
  GatherChain chain(0, recorder);
  chain.PublishAll();
  EXPECT_EQ(recorder.text, "");
  EXPECT_THROW(chain.Need(0), std::out_of_range);
}

}  // namespace
}  // namespace reference
