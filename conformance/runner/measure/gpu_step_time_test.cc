// The whole program with a tiny model on a machine without a GPU: its figures mean nothing, its
// path and arithmetic do.
#include "conformance/runner/measure/gpu_step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/host/cpu_executor.h"
#include "conformance/runner/measure/spread.h"
#include "conformance/runner/measure/tape.h"
#include "conformance/runner/nccl/process_fabric_for_test.h"

namespace shardproof {
namespace {

using ::testing::Each;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Median, OfOddAndEvenNumbers) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(SpreadOf, HasTheEnds) {
  const Spread spread = SpreadOf({3, 1, 8});
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.least, 1);
  EXPECT_EQ(spread.most, 8);
}

TEST(StepTimeTable, EachFigureIsOfItsOwnRound) {
  StepTimeRound one;
  one.alone = {{10.2, 10.2, 90}, {10, 10, 10}};
  one.alone_recorded = {{10.3}, {10}};
  one.apart = {{40}, {20}};
  one.overlapped = {{25}, {20}};
  StepTimeRound two = one;
  two.alone.steps = {10.1};
  two.overlapped = {{30}, {22}};
  const std::string table = StepTimeTable({}, {one, two, one});
  EXPECT_THAT(table, HasSubstr("median of 3 rounds"));
  const auto row = [&](const std::string& name, const std::string& figures) {
    const size_t at = table.find(name);
    ASSERT_NE(at, std::string::npos) << name << "\n" << table;
    const std::string line = table.substr(at, table.find('\n', at) - at);
    EXPECT_THAT(line, HasSubstr(figures));
  };
  row("1 rank: bare kernels", "10.000 ms  (10.000 to 10.000)");
  row("1 rank: step of the engine", "10.200 ms  (10.100 to 10.200)");
  row("1 rank: engine's overhead over bare kernels", "2.000 %   (1.000 to 2.000)");
  row("1 rank: recording at level order adds", "0.980 %   (0.980 to 1.980)");
  row("2 ranks: bare kernels (compute only)", "20.000 ms  (20.000 to 22.000)");
  row("2 ranks: step without overlap", "40.000 ms");
  row("2 ranks: step with overlap", "25.000 ms  (25.000 to 30.000)");
  row("2 ranks: exposed communication without overlap", "20.000 ms  (20.000 to 20.000)");
  row("2 ranks: exposed communication with overlap", "5.000 ms  (5.000 to 8.000)");
  row("2 ranks: step with overlap / without", "0.625 x   (0.625 to 0.750)");
}

TEST(StepTimeCase, HasHalfABillionParameters) {
  const Case c = StepTimeCase({}, 2, true);
  const ModelConfig& m = c.instances[0].model;
  EXPECT_FALSE(m.quantised);
  EXPECT_EQ(c.world, 2);
  EXPECT_TRUE(c.instances[0].overlap_grad_reduce);
  EXPECT_FALSE(StepTimeCase({}, 2, false).instances[0].overlap_param_gather);
  EXPECT_EQ(StepTimeCase({}, 2, false).instances[0].prefetch_limit_bytes, 0);
  // Attention 4 w w, SwiGLU 3 w ffn, embedding and head.
  const int64_t w = m.width, params = m.layers * (4 * w * w + 3 * w * m.ffn) + 2 * w * m.vocab;
  EXPECT_GE(params, 500'000'000);
}

TEST(Tape, PlaysWhatWasRecordedAndNothingElse) {
  TapeExecutor tape(std::make_shared<CpuExecutor>());
  std::vector<std::byte> a(4, std::byte{1}), b(4, std::byte{2});
  tape.Copy(0, b.data(), a.data(), 4);  // not recorded
  tape.Record(true);
  tape.Fill(0, a.data(), 7, 4);
  {
    const std::vector<std::byte> gone(2, std::byte{9});
    tape.Write(1, b.data(), gone.data(), 2);
  }
  tape.Record(false);
  EXPECT_EQ(tape.length(), 2u);
  std::fill(a.begin(), a.end(), std::byte{0});
  std::fill(b.begin(), b.end(), std::byte{0});
  tape.Play(0);
  EXPECT_EQ(a, std::vector<std::byte>(4, std::byte{7}));
  EXPECT_EQ(b, (std::vector<std::byte>{std::byte{9}, std::byte{9}, std::byte{0}, std::byte{0}}));
}

TEST(RunStepTimes, ATinyModelOnTwoRanks) {
  StepTimeOptions options;
  options.tiny = true;
  options.rounds = 2;
  options.steps = 3;
  options.warmup = 1;
  const Plugin plugin("builtin:reference");
  std::vector<std::string> facts;
  const std::vector<StepTimeRound> rounds =
      RunStepTimes(options, ProcessKitForTest(), plugin, &facts);
  ASSERT_THAT(rounds, SizeIs(2));
  for (const StepTimeRound& round : rounds) {
    for (const VariantTimes& times :
         {round.alone, round.alone_recorded, round.apart, round.overlapped}) {
      EXPECT_THAT(times.steps, SizeIs(3));
      EXPECT_THAT(times.bare, SizeIs(3));
      EXPECT_THAT(times.steps, Each(Gt(0)));
      EXPECT_THAT(times.bare, Each(Gt(0)));
    }
  }
  EXPECT_THAT(facts, ::testing::Not(::testing::IsEmpty()));
  EXPECT_GT(ParameterCount(StepTimeCase(options, 1, true)), 1000);
}

TEST(RunStepTimes, ARankThatDiesIsNamed) {
  StepTimeOptions options;
  options.tiny = true;
  const ProcessHooks hooks = {nullptr, [](int rank, int nth_case) {
                                if (rank == 1 && nth_case == 0) raise(SIGKILL);
                              }};
  const Plugin plugin("builtin:reference");
  std::vector<std::string> facts;
  try {
    RunStepTimes(options, ProcessKitForTest(hooks), plugin, &facts);
    ADD_FAILURE() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0: "));
    EXPECT_THAT(error.what(), HasSubstr("the death of rank 1 (ended by SIGKILL (Killed))"));
  }
}

}  // namespace
}  // namespace shardproof
