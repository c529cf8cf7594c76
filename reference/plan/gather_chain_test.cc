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

// Start and finish, finish alone, and a forced end of what travels: the same calls.
TEST(GatherChainTest, WhoeverEndsAGatherItEndsTheSame) {
  Recorder needed, forced, freed;
  GatherChain by_need(2, needed), by_force(2, forced), by_free(2, freed);
  for (GatherChain* chain : {&by_need, &by_force, &by_free}) chain->Need(0);
  by_need.Need(1);
  by_force.PublishAll();
  by_free.FreeBuffers();
  EXPECT_EQ(needed.text, "L0 W0 L1 P0 W1 P1 ");
  EXPECT_EQ(forced.text, needed.text);
  EXPECT_EQ(freed.text, needed.text);
}

TEST(GatherChainTest, FreeingStartsNothingAndTheRestComesLater) {
  Recorder recorder;
  GatherChain chain(3, recorder);
  chain.FreeBuffers();
  EXPECT_EQ(recorder.text, "");
  chain.Need(0);
  chain.FreeBuffers();
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 P1 ");
  chain.PublishAll();
  EXPECT_EQ(recorder.text, "L0 W0 L1 P0 W1 P1 L2 W2 P2 ");
}

TEST(GatherChainTest, AStepWhileSomethingIsStaleIsAnError) {
  Recorder recorder;
  GatherChain chain(2, recorder);
  EXPECT_THROW(chain.Rearm(), std::logic_error);
  chain.Need(0);
  EXPECT_THROW(chain.Rearm(), std::logic_error);
  EXPECT_THROW(chain.MarkPublished(), std::logic_error) << "bucket 1 travels";
  chain.PublishAll();
  EXPECT_NO_THROW(chain.Rearm());
}

TEST(GatherChainTest, AChainWithoutBucketsDoesNothing) {
  Recorder recorder;
  GatherChain chain(0, recorder);
  chain.PublishAll();
  chain.Rearm();
  chain.FreeBuffers();
  chain.MarkPublished();
  EXPECT_EQ(recorder.text, "");
  EXPECT_THROW(chain.Need(0), std::out_of_range);
}

}  // namespace
}  // namespace reference
