// What goes wrong in the suite while a rank runs on a fiber is a failure of the suite, in words:
// neither a crash nor the engine's fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "conformance/fabric/in_device_work.h"
#include "conformance/runner/judge_on_sim.h"

namespace {

// Of the allocations of this program: the next so many succeed, one fails, the rest succeed. -1: no
// one fails.
int64_t allocations_left = -1;

}  // namespace

void* operator new(size_t size) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// What asks so has another way: it counts for nothing.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace shardproof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SuiteFailureTest : public ::testing::Test {
 protected:
  SuiteFailureTest() { options_.rank.folder = ::testing::TempDir() + "/suite_failure_test"; }
  const Plugin plugin_{"builtin:reference"};
  SimRunOptions options_;
};

// Device work of the rank still waits when the exception leaves the rank's stack.
TEST_F(SuiteFailureTest, AnExceptionOutsideOfHostCalls) {
  const Case c = ParseId("w2.zero3");
  for (const TimingPolicy policy :
       {TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kRandom, TimingPolicy::kPct,
        TimingPolicy::kLazyCompute}) {
    for (const bool at_begin : {true, false}) {
      SCOPED_TRACE(std::string(TimingPolicyName(policy)) + (at_begin ? ", begin" : ", end"));
      options_.policy = policy;
      int calls = 0;
      options_.rank.on_call = [&](std::string_view call, int64_t step, bool begins) {
        if (call == "train_step" && step == 1 && begins == at_begin && ++calls == 1)
          throw std::bad_alloc();
      };
      const Verdict verdict = JudgeOnSim(c, RunHere(plugin_), options_);
      EXPECT_EQ(verdict.outcome, Outcome::kSuiteError);
      EXPECT_THAT(verdict.reason,
                  AllOf(HasSubstr("in the suite's code on rank "), HasSubstr("std::bad_alloc")));
    }
  }
}

// How a run ends when one allocation fails.
struct End {
  std::string of;  // "the suite's", "an engine's", or "nobody's": it ended well
  std::string why;
  int64_t made = 0;  // allocations, if none failed
};

// Allocations of a run, in host calls, on other ranks' stacks, in the simulation: whatever fails,
// the run ends, and says who failed. Those of the engine are its own failure.
TEST_F(SuiteFailureTest, AnyAllocation) {
  const Case c = ParseId("w2.ddp");
  const Models models = MakeModels(c);
  const auto run = [&](int64_t allocations) {
    allocations_left = allocations;
    End end;
    try {
      const RunData data = RunOnSim(c, models, plugin_, options_);
      end.made = allocations - std::exchange(allocations_left, -1);
      end.of = "nobody's";
      for (const EngineOutcome& outcome : data.run.outcomes) {
        if (outcome.kind == EngineOutcome::Kind::kOk) continue;
        end.of = "an engine's";
      }
    } catch (const std::exception& error) {
      allocations_left = -1;
      end = {"the suite's", error.what()};
    }
    return end;
  };
  std::map<std::string, int> ends;
  for (const TimingPolicy policy : {TimingPolicy::kLazyComm, TimingPolicy::kPct}) {
    options_.policy = policy;
    const int64_t all = run(int64_t{1} << 40).made;
    ASSERT_GT(all, 1000);
    constexpr int64_t kRuns = 120;
    for (int64_t i = 1; i < kRuns; ++i) {
      const int64_t at = all * i / kRuns + i % 7;
      if (at >= all) continue;
      const End end = run(at);
      SCOPED_TRACE(std::string(TimingPolicyName(policy)) + ", allocation " + std::to_string(at));
      EXPECT_NE(end.of, "nobody's");
      EXPECT_EQ(end.of == "the suite's", end.why.find(kInTheSuite) == 0) << end.why;
      ++ends[end.of];
    }
  }
  EXPECT_GT(ends["the suite's"], 20);
  EXPECT_GT(ends["an engine's"], 10);
}

}  // namespace
}  // namespace shardproof
