// Do device kernels give the bits of the model on the host: every node, every phase?
#include "conformance/model/cuda/node.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "conformance/model/cuda/device_bench.h"
#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

constexpr spf_phase kPhases[] = {SPF_FWD, SPF_BWD, SPF_DGRAD, SPF_WGRAD};

// Parts of a sequence, over tp and cp, and ranges of a vocabulary.
void AddDivided(std::vector<ModelConfig>& configs) {
  ModelConfig parts;  // rows that do not begin at the first token
  parts.tensor_parallel = parts.sequence_parallel = true;
  parts.tp = 4;
  parts.biases = parts.root_param = parts.odd_sizes = true;
  configs.push_back(parts);
  ModelConfig vocabulary = parts;  // its second range
  vocabulary.vocab_parallel = true;
  vocabulary.vocab_multiple = 4;
  configs.push_back(vocabulary);
  ModelConfig context;  // keys and values of more tokens than the rank has, of whole heads and not
  context.context_parallel = context.root_param = context.odd_sizes = true;
  context.cp = 3;
  context.sequence = 6;
  configs.push_back(context);
  context.tensor_parallel = context.sequence_parallel = context.bf16_params = true;
  context.tp = 2;
  configs.push_back(context);
}

// Those of all kinds of nodes, and dense ones of more shapes.
std::vector<ModelConfig> Configs() {
  std::vector<ModelConfig> configs = VariedConfigs();
  ModelConfig small;  // one token, one of everything
  small.layers = small.heads = small.ffn = small.sequence = small.width = 1;
  small.vocab = 2;
  configs.push_back(small);
  ModelConfig bf16;
  bf16.biases = bf16.odd_sizes = bf16.root_param = bf16.bf16_params = true;
  bf16.heads = 4;
  bf16.d_odd = 5;
  configs.push_back(bf16);
  ModelConfig narrow = bf16;
  narrow.bf16_params = false;
  narrow.narrow = narrow.reused = true;
  narrow.sequence = 5;
  narrow.d_odd = 3;
  configs.push_back(narrow);
  ModelConfig narrow_tied;
  narrow_tied.narrow = narrow_tied.tied = narrow_tied.bf16_params = narrow_tied.biases = true;
  configs.push_back(narrow_tied);
  ModelConfig stages;
  stages.layers = 4;
  stages.pp = stages.chunks = 2;
  stages.biases = stages.root_param = true;
  stages.frozen = "layer";
  configs.push_back(stages);
  ModelConfig wide;  // more columns, tokens and rows than reduce.h has parts
  wide.layers = 1;
  wide.width = 36;
  wide.heads = 3;
  wide.ffn = 33;
  wide.vocab = 40;
  wide.sequence = 35;
  wide.biases = wide.odd_sizes = true;
  configs.push_back(wide);
  AddDivided(configs);
  ModelConfig chunks;  // the head's rows do not begin at the first one; the loss is added to
  chunks.loss_chunks = 4;
  chunks.biases = chunks.odd_sizes = true;
  configs.push_back(chunks);
  chunks.odd_sizes = false;
  chunks.tied = chunks.narrow = true;
  configs.push_back(chunks);
  return configs;
}

std::vector<ModelRank> RanksOf(const ModelConfig& config) {
  std::vector<ModelRank> ranks;
  for (int32_t pp = 0; pp < config.pp; ++pp) {
    for (int32_t ep = 0; ep < config.ep; ++ep) {
      for (int32_t tp = 0; tp < config.tp; ++tp) {
        for (int32_t cp = 0; cp < config.cp; ++cp) ranks.emplace_back(ep, pp, tp, cp);
      }
    }
  }
  return ranks;
}

int64_t TokensOf(const ModelConfig& config) {
  return std::max<int64_t>(config.narrow ? 8 : 32, config.sequence);
}

struct Call {
  double scale = 1;
  int32_t grad_dtype = SPF_F32;
  int64_t step = 0, sample = 0;
  float louder = 1;  // parameters are that much larger than initial ones
};

void Multiply(std::vector<Block>& params, bool bf16, float factor) {
  for (Block& block : params) {
    auto* bits = reinterpret_cast<uint16_t*>(block.data());
    auto* floats = reinterpret_cast<float*>(block.data());
    for (size_t i = 0; bf16 && i < block.size() / sizeof(uint16_t); ++i)
      bits[i] = ToBf16(FromBf16(bits[i]) * factor);
    for (size_t i = 0; !bf16 && i < block.size() / sizeof(float); ++i)
      floats[i] = floats[i] * factor;
  }
}

// A host and a device with the same model, and what a sample leaves behind on the host.
struct Pair {
  Pair(const ModelConfig& config, ModelRank rank)
      : host(config, TokensOf(config), rank), device(config, TokensOf(config), rank) {}

  Blocks StateAfter(const Call& call) const {
    Blocks state = host.Start();
    Multiply(state.param, host.model().config().bf16_params, call.louder);
    host.RunSample(state, call.step, call.sample, false, call.scale, call.grad_dtype);
    return state;
  }
  void ExpectSame(const Blocks& state, const spf_node& node, spf_phase phase,
                  const Call& call) const {
    SCOPED_TRACE(std::string(node.name) + " phase " + std::to_string(phase));
    Blocks wanted = state, found = state;
    host.Run(wanted, node, phase, call.scale, call.grad_dtype, call.step, call.sample);
    device.Run(found, node, phase, call.scale, call.grad_dtype, call.step, call.sample);
    EXPECT_EQ(FirstDifference(host.tables(), call.grad_dtype, found, wanted), "");
  }
  template <class Visit>
  void ForEachNode(const Call& call, Visit visit) const {
    const spf_program& program = host.program(call.step, call.sample);
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[i];
      if (node.kind == SPF_NODE_EXCHANGE) continue;
      for (spf_phase phase : kPhases) visit(node, phase);
    }
  }

  NodeBench host;
  DeviceBench device;
};

class DeviceNodeTest : public testing::TestWithParam<size_t> {
 protected:
  ModelConfig Config() const { return Configs()[GetParam()]; }

  void CheckAll(const Call& call) const {
    for (ModelRank rank : RanksOf(Config())) {
      const Pair pair(Config(), rank);
      const Blocks state = pair.StateAfter(call);
      pair.ForEachNode(call, [&](const spf_node& node, spf_phase phase) {
        pair.ExpectSame(state, node, phase, call);
      });
    }
  }
};

TEST_P(DeviceNodeTest, GivesTheHostsBits) { CheckAll({}); }
TEST_P(DeviceNodeTest, GivesThemInOddStepsOfOddSamples) { CheckAll({.step = 1, .sample = 1}); }
TEST_P(DeviceNodeTest, GivesThemWithALossScale) { CheckAll({.scale = 0.125}); }
TEST_P(DeviceNodeTest, GivesThemWithGradientsInBf16) { CheckAll({.grad_dtype = SPF_BF16}); }
TEST_P(DeviceNodeTest, GivesThemWithALossScaleAndGradientsInBf16) {
  CheckAll({.scale = 0.125, .grad_dtype = SPF_BF16, .step = 1});
}
TEST_P(DeviceNodeTest, GivesThemWhereValuesAreClamped) { CheckAll({.louder = 8}); }
TEST_P(DeviceNodeTest, GivesThemWhereMostIsClamped) { CheckAll({.scale = 4, .louder = 64}); }

// All that the phase does not read is filled: 0xFF makes NaNs, so that a read shows; 0x11 small
// numbers, so that adding does.
void FillUnread(Blocks& state, const spf_uses& uses, int fill) {
  for (int32_t table = SPF_IN_PARAM; table <= SPF_IN_DACT; ++table) {
    for (size_t id = 0; id < state.Table(table).size(); ++id) {
      bool read = false;
      for (int32_t u = 0; u < uses.n; ++u) {
        const spf_use& use = uses.use[u];
        read |= use.table == table && static_cast<size_t>(use.id) == id && use.access != SPF_WRITE;
      }
      Block& block = state.Table(table)[id];
      if (!read) std::memset(block.data(), fill, block.size());
    }
  }
}

TEST_P(DeviceNodeTest, ReadsAndWritesWhatItDeclares) {
  const Call call;
  for (ModelRank rank : RanksOf(Config())) {
    const Pair pair(Config(), rank);
    const Blocks state = pair.StateAfter(call);
    pair.ForEachNode(call, [&](const spf_node& node, spf_phase phase) {
      for (int fill : {0xFF, 0x11}) {
        Blocks filled = state;
        FillUnread(filled, node.uses[phase], fill);
        pair.ExpectSame(filled, node, phase, call);
      }
    });
  }
}

// Stale memory in each input in turn gives what it gives on the host, and harms nothing else.
TEST_P(DeviceNodeTest, PassesPoisonOnAsTheHostDoes) {
  const Call call;
  for (ModelRank rank : RanksOf(Config())) {
    const Pair pair(Config(), rank);
    const Blocks state = pair.StateAfter(call);
    pair.ForEachNode(call, [&](const spf_node& node, spf_phase phase) {
      for (int32_t u = 0; u < node.uses[phase].n; ++u) {
        const spf_use& use = node.uses[phase].use[u];
        if (use.access == SPF_WRITE) continue;
        SCOPED_TRACE("poison in table " + std::to_string(use.table) + " id " +
                     std::to_string(use.id));
        Blocks poisoned = state;
        Block& block = poisoned.Table(use.table)[static_cast<size_t>(use.id)];
        std::memset(block.data(), 0xFF, block.size());
        pair.ExpectSame(poisoned, node, phase, call);
      }
    });
  }
}

TEST_P(DeviceNodeTest, IsCloseToTheHostWithoutQuantisers) {
  ModelConfig config = Config();
  config.quantised = false;
  const Call call;
  for (ModelRank rank : RanksOf(config)) {
    const Pair pair(config, rank);
    const Blocks state = pair.StateAfter(call);
    pair.ForEachNode(call, [&](const spf_node& node, spf_phase phase) {
      SCOPED_TRACE(std::string(node.name) + " phase " + std::to_string(phase));
      Blocks wanted = state, found = state;
      pair.host.Run(wanted, node, phase);
      pair.device.Run(found, node, phase);
      EXPECT_EQ(FirstDistance(pair.host.tables(), found, wanted, 1e-3f), "");
    });
  }
}

// Forward and backward of several samples, one after the other.
TEST_P(DeviceNodeTest, TrainsAsTheHostDoes) {
  const ModelConfig config = Config();
  if (config.pp > 1) return;  // a stage's input comes from another one
  for (ModelRank rank : RanksOf(config)) {
    const Pair pair(config, rank);
    Blocks wanted = pair.host.Start(), found = wanted;
    for (int64_t sample = 0; sample < 3; ++sample) {
      pair.host.RunSample(wanted, 0, sample, sample == 1, 4);
      pair.device.RunSample(found, 0, sample, sample == 1, 4);
      EXPECT_EQ(FirstDifference(pair.host.tables(), SPF_F32, found, wanted), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, DeviceNodeTest, testing::Range<size_t>(0, Configs().size()));

}  // namespace
}  // namespace shardproof
