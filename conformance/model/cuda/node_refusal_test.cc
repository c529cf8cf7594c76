// What does RunNode refuse, and does DeviceBench see what kernels must not do?
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "conformance/cuda/for_each.h"
#include "conformance/cuda/immediate_queue.h"
#include "conformance/model/cuda/device_bench.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/node.h"
#include "conformance/model/probe.h"

namespace shardproof {
namespace {

NodeArgs FirstNode(double scale = 1) {
  NodeArgs args;
  args.phase = SPF_DGRAD;
  args.scale = scale;
  return args;
}

TEST(RunNodeTest, RefusesAScaleThatIsNoPowerOfTwo) {
  const Model model(ModelConfig{}, 8);
  ImmediateQueue queue;
  for (double scale : {0.0, 3.0, -1.0, std::ldexp(1.0, 41), std::ldexp(1.0, -41), std::nan("")}) {
    EXPECT_THROW(RunNode(queue, model, FirstNode(scale), {}), std::invalid_argument) << scale;
  }
  for (double scale : {1.0, std::ldexp(1.0, 40), std::ldexp(1.0, -40)}) {
    EXPECT_NO_THROW(RunNode(queue, model, FirstNode(scale), {})) << scale;
  }
}

TEST(RunNodeTest, RefusesAProbe) {
  const Model model(ModelConfig{}, 8);
  ImmediateQueue queue;
  Probe probe;
  NodeArgs args = FirstNode();
  args.probe = &probe;
  EXPECT_THROW(RunNode(queue, model, args, {}), std::logic_error);
}

TEST(RunNodeTest, RefusesAnExchange) {
  ModelConfig config;
  config.moe.experts = 4;
  const NodeBench bench(config);
  const spf_program& program = bench.program();
  int32_t exchanges = 0;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    if (program.nodes[i].kind != SPF_NODE_EXCHANGE) continue;
    NodeArgs args;
    args.node = program.nodes[i].id;
    ImmediateQueue queue;
    EXPECT_THROW(RunNode(queue, bench.model(), args, {}), std::logic_error);
    ++exchanges;
  }
  EXPECT_GT(exchanges, 0);
}

TEST(RunNodeTest, RefusesARankThatTheModelDoesNotHave) {
  const Model model(ModelConfig{}, 8);
  ImmediateQueue queue;
  EXPECT_THROW(RunNode(queue, model, FirstNode(), {1, 0}), std::out_of_range);
}

TEST(LateQueueTest, DoesNothingBeforeItIsTold) {
  LateQueue queue;
  int done = 0;
  int* counter = &done;
  ForEach(queue, "count", 3, [=] SHARDPROOF_KERNEL(int64_t) { ++*counter; });
  EXPECT_EQ(done, 0);
  queue.Flush();
  EXPECT_EQ(done, 3);
}

TEST(LateQueueTest, SeesMemoryWrittenPastItsEnd) {
  LateQueue queue;
  {
    const Scratch<float> scratch(queue, 4);
    float* x = scratch.get();
    ForEach(queue, "write", 5, [=] SHARDPROOF_KERNEL(int64_t i) { x[i] = 1; });
  }
  EXPECT_THROW(queue.Flush(), std::logic_error);
}

TEST(LateQueueTest, SeesMemoryWrittenAfterItsReturn) {
  LateQueue queue;
  float* x = nullptr;
  {
    const Scratch<float> scratch(queue, 4);
    x = scratch.get();
  }
  ForEach(queue, "write", 4, [=] SHARDPROOF_KERNEL(int64_t i) { x[i] = 1; });
  EXPECT_THROW(queue.Flush(), std::logic_error);
}

TEST(LateQueueTest, SeesMemoryThatIsKept) {
  LateQueue queue;
  queue.Take(4);
  EXPECT_THROW(queue.Flush(), std::logic_error);
}

TEST(LateQueueTest, PoisonsMemoryBeforeItsFirstUse) {
  LateQueue queue;
  float found = 0;
  float* to = &found;
  {
    const Scratch<float> scratch(queue, 1);
    const float* x = scratch.get();
    ForEach(queue, "read", 1, [=] SHARDPROOF_KERNEL(int64_t) { *to = *x; });
  }
  queue.Flush();
  EXPECT_TRUE(std::isnan(found));
}

TEST(FirstDifferenceTest, NamesWhatDiffersInOneBit) {
  const NodeBench bench(ModelConfig{});
  Blocks wanted = bench.Start(), found = wanted;
  EXPECT_EQ(FirstDifference(bench.tables(), SPF_F32, found, wanted), "");
  found.dact.back().back() ^= std::byte{1};
  EXPECT_NE(FirstDifference(bench.tables(), SPF_F32, found, wanted), "");
}

TEST(FirstDistanceTest, NamesWhatIsFurtherAway) {
  const NodeBench bench(ModelConfig{});
  Blocks wanted = bench.Start();
  wanted.Floats(SPF_IN_GRAD, 0)[0] = 1;
  Blocks found = wanted;
  found.Floats(SPF_IN_GRAD, 0)[0] = 1.0005f;
  EXPECT_EQ(FirstDistance(bench.tables(), found, wanted, 1e-3f), "");
  found.Floats(SPF_IN_GRAD, 0)[0] = 1.002f;
  EXPECT_NE(FirstDistance(bench.tables(), found, wanted, 1e-3f), "");
  found.Floats(SPF_IN_GRAD, 0)[0] = std::nanf("");
  EXPECT_NE(FirstDistance(bench.tables(), found, wanted, 1e-3f), "");
}

}  // namespace
}  // namespace shardproof
