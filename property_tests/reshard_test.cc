// Does a checkpoint of the reference load into an engine with another number of ranks or another
// strategy, and does training go on from there as if nothing had happened?
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "conformance/cases/case.h"
#include "conformance/fabric/sim/sim.h"
#include "conformance/host/host.h"
#include "reference/plugin.h"

namespace shardproof {
namespace {

// By parameter and element.
using Weights = std::map<std::string, std::map<int64_t, double>>;

// What a rank published for parameters in its last entry call that published any.
void AddLastWeights(const Trace& trace, const spf_model& model, Weights& weights) {
  int32_t last = -1;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kPublish && event.result == SPF_RESULT_PARAM) last = event.call;
  }
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kPublish || event.result != SPF_RESULT_PARAM) continue;
    if (event.call != last) continue;
    for (int64_t i = 0; i < event.count; ++i) {
      const double value = trace.values[static_cast<size_t>(event.values + i)];
      const auto [at, added] =
          weights[model.params[event.id].name].try_emplace(event.offset + i, value);
      EXPECT_EQ(at->second, value) << "two owners differ, rank " << trace.rank;
    }
  }
}

// One rank of the reference engine: t0, t1, ... train that step; s saves, l loads.
class EngineOnRank {
 public:
  EngineOnRank(const Case& c, const Model& model, Fabric& fabric, std::string folder)
      : recorder_(fabric.rank(), c.world, Id(c), RecordLevel::kBytes),
        host_(ConfigOf(c, model, fabric), fabric, recorder_),
        folder_(std::move(folder)) {}

  Trace Run(const std::string& script) {
    const spf_plugin* plugin = reference::ReferencePlugin(SPF_ABI_MAJOR);
    spf_engine* engine = nullptr;
    Call("create", -1, [&] { return plugin->create(host_.table(), &engine); });
    for (size_t i = 0; i < script.size() && engine != nullptr; ++i) {
      if (script[i] == 's') Call("save", -1, [&] { return plugin->save(engine, folder_.c_str()); });
      if (script[i] == 'l') Call("load", -1, [&] { return plugin->load(engine, folder_.c_str()); });
      if (script[i] != 't') continue;
      const int64_t step = script[++i] - '0';
      Call("train_step", step, [&] { return plugin->train_step(engine, step); });
    }
    Call("destroy", -1, [&] { return plugin->destroy(engine), SPF_OK; });
    return recorder_.Finish(TraceEnd::kComplete, "");
  }

 private:
  static HostConfig ConfigOf(const Case& c, const Model& model, const Fabric& fabric) {
    HostConfig config;
    config.knobs = Knobs(c.instances[0]);
    config.model = &model;
    config.data_ranks = c.world;
    config.data_rank = fabric.rank();
    std::vector<int32_t> world;
    for (int32_t rank = 0; rank < c.world; ++rank) world.push_back(rank);
    config.groups.push_back({"world", "i0/world", world});
    return config;
  }
  template <class F>
  void Call(const char* what, int64_t step, F&& call) {
    host_.BeginCall(what, step);
    const spf_status status = call();
    host_.EndCall(status);
    EXPECT_EQ(status, SPF_OK) << what << ": " << host_.explanation();
  }

  Recorder recorder_;
  Host host_;
  std::string folder_;
};

class ReshardTest : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  ReshardTest() : folder_(testing::TempDir() + "reshard") { std::filesystem::remove_all(folder_); }

  Weights Train(const std::string& id, const std::string& script) {
    const Case c = ParseId(id);
    const Model model(c.instances[0].model, TokensPerStep(c.instances[0]));
    std::vector<Trace> traces(static_cast<size_t>(c.world));
    const SimResult result = RunSim(c.world, SimOptions(), [&](Fabric& fabric) {
      Trace trace = EngineOnRank(c, model, fabric, folder_).Run(script);
      EXPECT_EQ(fabric.Drain(), SPF_OK);
      traces[static_cast<size_t>(fabric.rank())] = std::move(trace);
    });
    EXPECT_FALSE(result.deadlock);
    Weights weights;
    for (const Trace& trace : traces) AddLastWeights(trace, model.Tables(0), weights);
    return weights;
  }
  std::string folder_;
};

TEST_P(ReshardTest, LoadedWeightsAreTheSavedOnes) {
  const auto [from, to] = GetParam();
  const Weights saved = Train(from, "t0t1s");
  ASSERT_FALSE(saved.empty());
  EXPECT_EQ(Train(to, "l"), saved);
}

INSTANTIATE_TEST_SUITE_P(
    OtherSizesAndStrategies, ReshardTest,
    testing::Values(std::pair{"w2.zero3.grid.adamw", "w3.zero3.grid.adamw"},
                    std::pair{"w3.zero3.grid.adamw", "w2.zero3.grid.adamw"},
                    std::pair{"w4.zero3.n2.hfsdp.grid.adamw", "w3.zero1.grid.adamw"},
                    std::pair{"w2.ddp.grid.adamw", "w4.zero2.n2.grid.adamw"},
                    std::pair{"w4.zero1.grid", "w1.ddp.grid"},
                    std::pair{"w3.zero3.grid.odd.tied.bias", "w5.zero3.grid.odd.tied.bias"},
                    std::pair{"w2.zero3.grid.adamw", "w2.zero3.grid"}));

// Weights and optimizer state: training goes on bit for bit where the same ranks save and load.
class ResumeTest : public ReshardTest {};

TEST_P(ResumeTest, TheStepAfterALoadIsTheStepAfterTheSave) {
  const auto [from, to] = GetParam();
  const Weights through = Train(from, "t0t1st2");
  ASSERT_FALSE(through.empty());
  EXPECT_EQ(Train(to, "lt2"), through);
}

INSTANTIATE_TEST_SUITE_P(
    OtherStrategies, ResumeTest,
    testing::Values(std::pair{"w4.zero3.grid.adamw", "w4.zero3.n2.hfsdp.grid.adamw"},
                    std::pair{"w4.zero1.grid.adamw", "w4.ddp.grid.adamw"},
                    std::pair{"w4.zero3.n2.grid.adamw", "w4.zero2.grid.adamw"}));

}  // namespace
}  // namespace shardproof
