// moe_compute_test: what may an engine pass to the nodes of experts, routers and losses?
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/abi/spf.hpp"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/host/host.h"

namespace shardproof {
namespace {

ModelConfig Experts(int32_t ep) {
  ModelConfig config;
  config.ep = ep;
  config.moe.experts = 4;
  config.moe.aux_loss = true;
  config.moe.skew = "rank";  // nobody chooses the second half
  config.mtp = true;
  return config;
}

// One rank of a model with experts, inside train_step 0, with memory for everything that nodes may
// name.
class Bench {
 public:
  Bench(Fabric& fabric, const ModelConfig& config, ModelRank rank)
      : model_(config, 64),
        rank_(rank),
        recorder_(0, 1, "moe", RecordLevel::kDigests),
        host_(ConfigOf(), fabric, recorder_),
        h(host_.table()) {
    host_.BeginCall("train_step", 0);
    stream = h.Stream("main");
    const spf_model& tables = h.model();
    for (int32_t i = 0; i < tables.n_params; ++i) {
      param.push_back(Zeros(tables.params[i].numel, tables.params[i].dtype));
      grad.push_back(Zeros(tables.params[i].numel, SPF_F32));
    }
    for (int32_t i = 0; i < tables.n_values; ++i) {
      const spf_value& value = tables.values[i];
      act.push_back(Zeros(value.max_rows * value.row_elems, value.dtype));
      dact.push_back(Zeros(value.max_rows * value.row_elems, value.dtype));
      rows.push_back((value.flags & SPF_VALUE_DYNAMIC) != 0 ? 0 : -1);
    }
  }
  const spf_node& Node(std::string_view name_ends_with) {
    const spf_program& program = h.Program(0, 0);
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      if (std::string_view(program.nodes[i].name).ends_with(name_ends_with))
        return program.nodes[i];
    }
    throw std::runtime_error("no node " + std::string(name_ends_with));
  }
  spf_status Run(const spf_node& node, int32_t phase, double scale = 0) {
    spf_compute c{};
    c.size = sizeof c;
    c.node = node.id;
    c.phase = phase;
    c.scale = scale;
    c.param = param.data();
    c.grad = grad.data();
    c.act = act.data();
    c.dact = dact.data();
    c.rows = no_rows ? nullptr : rows.data();
    return h.raw()->compute(h.raw(), stream, &c);
  }
  // Everything forward but what the engine moves itself.
  void Forward() {
    const spf_program& program = h.Program(0, 0);
    for (int32_t i = 0; i < program.n_nodes; ++i) {
      const spf_node& node = program.nodes[i];
      if (node.kind == SPF_NODE_EXCHANGE || node.uses[SPF_FWD].n == 0) continue;
      EXPECT_EQ(Run(node, SPF_FWD), SPF_OK) << Error();
    }
  }
  // The first dynamic value that a phase of the node uses.
  int32_t DynamicOf(const spf_node& node, int32_t phase) {
    for (int32_t i = 0; i < node.uses[phase].n; ++i) {
      const spf_use& use = node.uses[phase].use[i];
      const bool value = use.table == SPF_IN_ACT || use.table == SPF_IN_DACT;
      if (value && (h.model().values[use.id].flags & SPF_VALUE_DYNAMIC) != 0) return use.id;
    }
    return -1;
  }
  std::string Error() { return h.raw()->last_error(h.raw()); }
  bool Says(const std::string& part) { return Error().find(part) != std::string::npos; }

 private:
  HostConfig ConfigOf() {
    HostConfig config;
    config.model = &model_;
    config.model_rank = rank_;
    config.groups = {{"world", "world", {0}}};
    return config;
  }
  spf_addr Zeros(int64_t elements, int32_t dtype) {
    const auto count = static_cast<uint64_t>(elements);
    const spf_addr at = h.Alloc(stream, count * DtypeBytes(dtype), spf::For(SPF_FOR_SCRATCH));
    h.Launch(stream, SPF_K_FILL, {{at, count, dtype, SPF_WRITE}}, {0});
    return at;
  }
  Model model_;
  ModelRank rank_;
  Recorder recorder_;
  Host host_;

 public:
  spf::Host h;
  spf_stream stream = nullptr;
  std::vector<spf_addr> param, grad, act, dact;
  std::vector<int64_t> rows;
  bool no_rows = false;
};

void OnBench(const ModelConfig& config, ModelRank rank, const std::function<void(Bench&)>& body) {
  const SimResult result = RunSim(1, SimOptions{}, [&](Fabric& fabric) {
    Bench bench(fabric, config, rank);
    body(bench);
    EXPECT_EQ(bench.h.raw()->stream_sync(bench.h.raw(), bench.stream), SPF_OK);
  });
  for (const std::string& error : result.errors) EXPECT_EQ(error, "");
}

// Address 0 and no rows: nodes run, and weight gradients of experts without tokens stay as they
// are.
TEST(MoeCompute, NoRowsNeedNoMemory) {
  OnBench(Experts(2), ModelRank(1), [](Bench& bench) {
    for (size_t i = 0; i < bench.rows.size(); ++i) {
      if (bench.rows[i] == 0) bench.act[i] = bench.dact[i] = 0;
    }
    for (const char* name : {"moe.experts.fc1", "moe.experts.act", "moe.experts.fc2"}) {
      EXPECT_EQ(bench.Run(bench.Node(name), SPF_FWD), SPF_OK) << bench.Error();
    }
    for (const char* name : {"moe.experts.fc2", "moe.experts.act", "moe.experts.fc1"}) {
      for (const int32_t phase : {SPF_DGRAD, SPF_WGRAD}) {
        const spf_node& node = bench.Node(name);
        if (node.uses[phase].n == 0) continue;
        EXPECT_EQ(bench.Run(node, phase), SPF_OK) << bench.Error();
      }
    }
  });
}

TEST(MoeCompute, RowsAreCheckedAndTheValueIsNamed) {
  OnBench(Experts(2), ModelRank(0), [](Bench& bench) {
    const spf_node& node = bench.Node("moe.experts.fc1");
    const int32_t value = bench.DynamicOf(node, SPF_FWD);
    ASSERT_GE(value, 0);
    const spf_value& row = bench.h.model().values[value];
    const std::string name = "rows[" + std::to_string(value) + "] (" + row.name + ")";
    for (const int64_t wrong : {int64_t{-1}, row.max_rows + 1}) {
      At(bench.rows, value) = wrong;
      EXPECT_EQ(bench.Run(node, SPF_FWD), SPF_REFUSED);
      EXPECT_TRUE(bench.Says(name + " is " + std::to_string(wrong) + ", allowed 0.." +
                             std::to_string(row.max_rows)))
          << bench.Error();
    }
    bench.no_rows = true;
    EXPECT_EQ(bench.Run(node, SPF_FWD), SPF_REFUSED);
    EXPECT_TRUE(bench.Says("table rows is NULL, the node uses " + name)) << bench.Error();
    bench.no_rows = false;
    At(bench.rows, value) = 1;  // one row needs memory
    At(bench.act, value) = 0;
    EXPECT_EQ(bench.Run(node, SPF_FWD), SPF_REFUSED);
    EXPECT_TRUE(bench.Says("was never set")) << bench.Error();
  });
}

TEST(MoeCompute, ExchangesAreNotComputed) {
  OnBench(Experts(2), ModelRank(0), [](Bench& bench) {
    EXPECT_EQ(bench.Run(bench.Node("moe.dispatch"), SPF_FWD), SPF_REFUSED);
    EXPECT_TRUE(bench.Says("is an EXCHANGE node: move its value with communicate"))
        << bench.Error();
  });
}

TEST(MoeCompute, BothLossesHaveOneScaleAndRoutersTheirOwn) {
  OnBench(Experts(1), ModelRank(0), [](Bench& bench) {
    bench.Forward();
    const spf_node &next = bench.Node("loss.mtp"), &loss = bench.Node("loss"),
                   &router = bench.Node("moe.router");
    EXPECT_EQ(bench.Run(next, SPF_BWD, 3), SPF_REFUSED);
    EXPECT_TRUE(bench.Says("is no power of two")) << bench.Error();
    EXPECT_EQ(bench.Run(next, SPF_BWD, 4), SPF_OK) << bench.Error();
    EXPECT_EQ(bench.Run(loss, SPF_BWD, 0), SPF_REFUSED);  // 0 is 1
    EXPECT_TRUE(bench.Says("scale 1") && bench.Says("loss.mtp was given 4") &&
                bench.Says("all its losses have one"))
        << bench.Error();
    EXPECT_EQ(bench.Run(loss, SPF_BWD, 4), SPF_OK) << bench.Error();
    EXPECT_EQ(bench.Run(router, SPF_DGRAD, 0.3), SPF_REFUSED);
    EXPECT_TRUE(bench.Says("is no power of two")) << bench.Error();
    // Wrong, and seen in the gradients.
    EXPECT_EQ(bench.Run(router, SPF_DGRAD, 2), SPF_OK) << bench.Error();
  });
}

}  // namespace
}  // namespace shardproof
