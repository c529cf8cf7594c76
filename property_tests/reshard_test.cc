// Does a checkpoint of the reference load into an engine with another number of ranks, other axes
// or another strategy, and does training go on from there as if nothing had happened?
#include <gtest/gtest.h>

#include <filesystem>

#include "conformance/runner/scratch_folder.h"
#include "property_tests/engine_script.h"

namespace shardproof {
namespace {

using Losses = decltype(ScriptResult::losses);

class ReshardTest : public testing::Test {
 protected:
  ScriptResult Run(const std::string& id, const std::string& script) const {
    ScriptResult result = RunEngineScript(id, folder_, script);
    for (const std::string& error : result.errors) EXPECT_EQ(error, "") << id << " " << script;
    EXPECT_EQ(result.contradictions, std::vector<std::string>()) << id << " " << script;
    EXPECT_FALSE(result.weights.empty()) << id << " " << script;
    return result;
  }

  // Every layout saves before each of three steps, and every other one goes on from there. From and
  // to differ by one place of the list: all saves; else only the one in the middle.
  void EveryPairGoesOn(const std::vector<std::string>& layouts) const {
    std::vector<ScriptResult> through;
    for (size_t from = 0; from < layouts.size(); ++from) {
      through.push_back(Run(layouts[from], "s0t0s1t1s2t2"));
      const ScriptResult& whole = through.back();
      EXPECT_EQ(whole.weights, through.front().weights) << layouts[from];
      EXPECT_EQ(whole.losses, through.front().losses) << layouts[from];
      for (size_t to = 0; to < layouts.size(); ++to) {
        const bool all = to == (from + 1) % layouts.size();
        for (const char* rest : {"l0t0t1t2", "l1t1t2", "l2t2"}) {
          if (!all && rest[1] != '1') continue;
          const ScriptResult resumed = Run(layouts[to], rest);
          EXPECT_EQ(resumed.weights, whole.weights) << layouts[from] << " to " << layouts[to];
          EXPECT_EQ(resumed.losses, From(whole.losses, rest[1] - '0'))
              << layouts[from] << " to " << layouts[to];
        }
      }
    }
    ASSERT_FALSE(through.empty());
    EXPECT_FALSE(through.front().losses.empty());
  }

  static Losses From(const Losses& losses, int64_t step) {
    return {losses.lower_bound({step, 0}), losses.end()};
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
};

// Each list trains the same samples in a step: data-parallel size times microbatches is constant.

TEST_F(ReshardTest, DataParallelSizesAndStrategies) {
  EveryPairGoesOn({"w8.zero3.k3.grid.adamw", "w4.zero1.k6.grid.adamw", "w3.zero3.k8.adamw",
                   "w2.ddp.k12.grid.adamw", "w1.ddp.k24.adamw"});
}

TEST_F(ReshardTest, HybridSharding) {
  EveryPairGoesOn({"w4.zero3.n2.hfsdp.k2.grid.adamw", "w8.zero3.n2.grid.adamw",
                   "w4.zero2.n2.k2.adamw", "w2.zero3.units=none.bs64.k4.adamw"});
}

TEST_F(ReshardTest, AxesThatReplicate) {
  EveryPairGoesOn({"w8.zero3.tp2.etp2.k2.grid.adamw", "w8.zero1.cp2.adamw",
                   "w4.zero2.tp2.etp2.k4.adamw", "w4.zero3.pp2.k4.adamw"});
}

TEST_F(ReshardTest, OddShapesSharedWeightsFrozenOnes) {
  EveryPairGoesOn({"w3.zero3.k2.grid.odd.tied.bias.adamw", "w2.zero2.k3.grid.odd.tied.bias.adamw",
                   "w6.zero1.odd.tied.bias.adamw"});
  EveryPairGoesOn({"w4.zero3.frozen=embedding.adamw", "w2.zero1.k2.frozen=embedding.adamw"});
}

TEST_F(ReshardTest, HalfPrecisionModelWeights) {
  EveryPairGoesOn({"w4.zero3.bf16.adamw", "w2.zero2.k2.bf16.adamw", "w1.ddp.k4.bf16.adamw"});
}

TEST_F(ReshardTest, ExpertParallelSizes) {
  EveryPairGoesOn({"w8.zero3.ep4.moe8.adamw", "w4.zero3.ep2.k2.moe8.adamw",
                   "w2.zero1.k4.moe8.adamw", "w4.zero2.ep4.k2.moe8.grid.adamw",
                   "w1.ddp.k8.moe8.adamw", "w4.ddp.ep2.k2.moe8.adamw"});
}

TEST_F(ReshardTest, ExpertParallelWithOtherAxesAndTheSchedule) {
  EveryPairGoesOn({"w8.zero3.tp2.etp2.ep2.k2.moe4.grid.adamw", "w4.zero3.ep2.k2.moe4.1f1b.adamw",
                   "w8.zero2.cp2.ep4.moe4.adamw", "w4.zero3.ep4.k2.moe4.1f1b.dw.adamw",
                   "w8.zero3.n2.ep2.moe4.adamw"});
}

TEST_F(ReshardTest, Muon) {
  EveryPairGoesOn({"w4.ddp.muon", "w2.ddp.k2.grid.muon", "w1.ddp.k4.muon"});
}

TEST_F(ReshardTest, PipelineStages) {
  EveryPairGoesOn({"w2.ddp.pp2.vpp2.layers4.k4.adamw", "w4.ddp.layers4.adamw",
                   "w4.ddp.pp2.vpp2.layers4.k2.adamw"});
}

// The optimizer's state stays behind.
TEST_F(ReshardTest, WeightsLoadIntoAnEngineWithoutAdam) {
  const ScriptResult saved = Run("w2.zero3.grid.adamw", "t0t1s0");
  EXPECT_EQ(Run("w2.zero3.grid", "l0").weights, saved.weights);
}

// The checkpoint before stays until the new one stands, and only one set of shards remains.
TEST_F(ReshardTest, SavingAgainIntoTheFolder) {
  Run("w4.zero3.adamw", "t0s0t1s0");
  const ScriptResult last = Run("w2.zero1.k2.adamw", "l0t2s0");
  EXPECT_EQ(Run("w3.zero3.adamw", "l0").weights, last.weights);
  int shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/0"))
    shards += entry.path().extension() == ".safetensors" ? 1 : 0;
  EXPECT_EQ(shards, 2);
}

void Damage(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
}

// What one rank finds is an error on all, in the same words, and nothing has changed.
TEST_F(ReshardTest, DamageIsNamedOnEveryRankAndNothingIsLoaded) {
  Run("w4.zero3.adamw", "t0s0");
  const ScriptResult fresh = Run("w4.zero3.adamw", "");
  Damage(folder_ + "/0/shard-1-2.safetensors");
  const ScriptResult refused = RunEngineScript("w4.zero3.adamw", folder_, "l0");
  for (const std::string& error : refused.errors) {
    EXPECT_EQ(error, refused.errors.front());
    EXPECT_NE(error.find("/0/shard-1-2.safetensors, tensor "), std::string::npos) << error;
    EXPECT_NE(error.find("cut off"), std::string::npos) << error;
  }
  EXPECT_EQ(refused.weights, fresh.weights);
}

TEST_F(ReshardTest, ACheckpointOfAnotherModelIsNamedOnEveryRank) {
  Run("w2.zero3", "s0");
  for (const auto& [id, what] : {std::pair{"w2.zero3.width32", "belongs to another model"},
                                 std::pair{"w2.zero3.layers3", "has no such tensor"},
                                 std::pair{"w2.zero3.adamw", "exp_avg"}}) {
    const ScriptResult refused = RunEngineScript(id, folder_, "l0");
    for (const std::string& error : refused.errors)
      EXPECT_NE(error.find(what), std::string::npos) << id << ": " << error;
  }
  const ScriptResult nowhere = RunEngineScript("w2.zero3", folder_, "l7");
  for (const std::string& error : nowhere.errors)
    EXPECT_NE(error.find("/7: has no checkpoint.json"), std::string::npos) << error;
}

}  // namespace
}  // namespace shardproof
