// Between which passes of which microbatches does a unit stand?
#include "conformance/checks/base/windows.h"

#include <gtest/gtest.h>

namespace shardproof {
namespace {

// Reads at events 0, 1, ...: forward of a microbatch, its backward, forward that is run again.
struct Reads {
  void Add(int32_t microbatch, uint8_t phase, bool again = false) {
    Event event;
    event.kind = EventKind::kCompute;
    event.microbatch = microbatch;
    event.phase = phase;
    event.flag = again;
    window.reads.push_back(static_cast<int64_t>(trace.events.size()));
    trace.events.push_back(event);
  }
  Trace trace;
  Window window;
};

TEST(Windows, AUnitIsBetweenPassesUntilTheLastMicrobatchComesBack) {
  Reads reads;
  reads.Add(0, SPF_FWD);
  reads.Add(1, SPF_FWD);
  reads.Add(0, SPF_BWD);
  reads.Add(2, SPF_FWD);
  reads.Add(1, SPF_BWD);
  EXPECT_FALSE(reads.window.BetweenPasses(reads.trace, 0)) << "nothing came before";
  EXPECT_TRUE(reads.window.BetweenPasses(reads.trace, 1)) << "the backward of 0 is to come";
  EXPECT_TRUE(reads.window.BetweenPasses(reads.trace, 2)) << "that of 1, too";
  EXPECT_FALSE(reads.window.BetweenPasses(reads.trace, 4)) << "2 never comes back here";
}

TEST(Windows, AForwardThatIsRunAgainBelongsToBackward) {
  Reads reads;
  reads.Add(0, SPF_FWD);
  reads.Add(1, SPF_BWD);
  reads.Add(0, SPF_FWD, true);
  EXPECT_TRUE(reads.window.BetweenPasses(reads.trace, 1));
  EXPECT_EQ(reads.window.FirstInBackward(reads.trace), 1);
}

}  // namespace
}  // namespace shardproof
