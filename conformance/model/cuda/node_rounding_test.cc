// Are the operations between sums the host's, in the host's order? A quantiser hides most
// differences in the last bit, so there is none here. Sums are short: both sides add them up in the
// same order, but products of more than two terms.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "conformance/model/cuda/device_bench.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

ModelConfig Small(bool odd_sizes) {
  ModelConfig config;
  config.layers = 1;
  config.vocab = config.width = config.heads = config.sequence = 2;
  config.ffn = 1;
  config.biases = config.root_param = true;
  config.odd_sizes = odd_sizes;  // has a gain, and a width of seven
  config.quantised = false;
  return config;
}

bool MultipliesMore(const NodeBench& bench, const spf_node& node, spf_phase phase) {
  const NodeSpec& spec = bench.model().Graph({}).spec(node.id);
  if (spec.op != Op::kLinear && spec.op != Op::kLinearResidual) return false;
  const int32_t summed = phase == SPF_FWD ? spec.in[0] : spec.out[0];
  return phase != SPF_WGRAD && bench.tables().values[summed].row_elems > 2;
}

void Randomise(std::vector<Block>& blocks, std::mt19937& random, const spf_value* values) {
  std::normal_distribution<float> normal;
  for (size_t id = 0; id < blocks.size(); ++id) {
    if (values != nullptr && values[id].dtype != SPF_F32) continue;
    auto* x = reinterpret_cast<float*>(blocks[id].data());
    for (size_t i = 0; i < blocks[id].size() / sizeof(float); ++i) x[i] = normal(random);
  }
}

// Returns how many calls it compared.
int CompareAll(const NodeBench& host, const DeviceBench& device, Blocks& state) {
  const spf_program& program = host.program();
  int compared = 0;
  for (int32_t i = 0; i < program.n_nodes; ++i) {
    for (spf_phase phase : {SPF_FWD, SPF_DGRAD, SPF_WGRAD}) {
      const spf_node& node = program.nodes[i];
      if (MultipliesMore(host, node, phase)) continue;
      Blocks wanted = state, found = state;
      host.Run(wanted, node, phase);
      device.Run(found, node, phase);
      EXPECT_EQ(FirstDifference(host.tables(), SPF_F32, found, wanted), "")
          << node.name << " phase " << phase;
      compared += wanted == state ? 0 : 1;
    }
  }
  return compared;
}

TEST(NodeRoundingTest, IsTheHostsInEveryOperation) {
  for (bool odd_sizes : {false, true}) {
    const NodeBench host(Small(odd_sizes));
    const DeviceBench device(Small(odd_sizes));
    for (uint32_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE("odd sizes " + std::to_string(odd_sizes) + " seed " + std::to_string(seed));
      std::mt19937 random(seed);
      Blocks state = host.Start();
      host.RunSample(state, seed, 0);
      for (std::vector<Block>* blocks : {&state.param, &state.grad, &state.dact})
        Randomise(*blocks, random, nullptr);
      Randomise(state.act, random, host.tables().values);
      EXPECT_GE(CompareAll(host, device, state), 18);
    }
  }
}

}  // namespace
}  // namespace shardproof
