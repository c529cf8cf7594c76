// A layer-wise engine saves at any moment of its life, and any other engine goes on from there: are
// its weights, gradients and losses those of the run that nobody interrupted, bit for bit?
//
// Moments: after create and after each training step (with overlap, values are still to be
// gathered), each followed by an evaluation (they have been) and by a load. A layout is everything
// but the function that is trained: ranks, axes, who owns what, how values travel, the strategy.
// By default one layout saves and each moment is resumed by one of the others in turn;
// SHARDPROOF_RESUME_GRID=full has every layout save, and every layout resume at every moment.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "conformance/runner/scratch_folder.h"
#include "property_tests/engine_script.h"

namespace shardproof {
namespace {

constexpr int64_t kSteps = 4;
// 3 i: after i steps; 3 i + 1: and an evaluation; 3 i + 2: and a load.
constexpr int64_t kMoments = 3 * (kSteps + 1);

bool FullGrid() {
  const char* const grid = std::getenv("SHARDPROOF_RESUME_GRID");
  return grid != nullptr && std::string(grid) == "full";
}

// A call of a script: letter and digit, or the folder of a moment.
std::string Call(char letter, int64_t step) { return {letter, static_cast<char>('0' + step)}; }
std::string InFolder(char letter, int64_t moment) {
  return {letter, static_cast<char>('A' + moment)};
}
std::string Train(int64_t from, int64_t to) {
  std::string script;
  for (int64_t step = from; step < to; ++step) script += Call('t', step);
  return script;
}

// Saves at every moment.
std::string SaveScript() {
  std::string script;
  for (int64_t i = 0; i <= kSteps; ++i) {
    if (i > 0) script += Call('t', i - 1);
    script += InFolder('s', 3 * i) + Call('e', i) + InFolder('s', 3 * i + 1);
    script += InFolder('l', 3 * i) + InFolder('s', 3 * i + 2);
  }
  return script;
}

class ResumeTest : public testing::Test {
 protected:
  ~ResumeTest() override { std::cout << resumed_ << " runs were resumed\n"; }

  // function: the part of the id that all layouts share. Each trains the same samples in a step:
  // data-parallel size times microbatches is constant.
  void EveryMomentGoesOn(const std::string& function, const std::vector<std::string>& layouts) {
    const size_t savers = FullGrid() ? layouts.size() : 1;
    for (size_t from = 0; from < savers; ++from) {
      SaveAndCompare(layouts[from] + function);
      int64_t turn = 0;
      for (int64_t moment = 0; moment < kMoments; ++moment) {
        for (size_t i = 1; i <= (FullGrid() ? layouts.size() : 1); ++i, ++turn) {
          const size_t to = from + (FullGrid() ? i : static_cast<size_t>(moment) + 1);
          Resume(layouts[to % layouts.size()] + function, moment, turn);
        }
      }
    }
    EachStepInAnotherLayout(function, layouts);
  }

 private:
  ScriptResult Run(const std::string& id, const std::string& script) const {
    ScriptResult result = RunEngineScript(id, folder_, script);
    for (const std::string& error : result.errors) EXPECT_EQ(error, "") << id << " " << script;
    EXPECT_EQ(result.contradictions, std::vector<std::string>()) << id << " " << script;
    return result;
  }

  // Saving, evaluating and loading what was saved change nothing either.
  void SaveAndCompare(const std::string& id) {
    through_ = Run(id, Train(0, kSteps));
    through_.params[-1] = Run(id, "").weights;  // weights before the first step
    ASSERT_EQ(through_.params.size(), size_t{kSteps + 1}) << id;
    ASSERT_EQ(through_.grads.size(), size_t{kSteps}) << id;
    for (int64_t step = 0; step < kSteps; ++step) {
      EXPECT_NE(Difference(through_.params.at(step), through_.params.at(step - 1)), "") << id;
      EXPECT_FALSE(through_.grads.at(step).empty()) << id;
      EXPECT_FALSE(OfStep(through_.losses, step).empty()) << id;
    }
    const ScriptResult saved = Run(id, SaveScript());
    Compare(saved, 0, id + " " + SaveScript());
    through_.eval_losses = saved.eval_losses;
  }

  // Steps from first on.
  void Compare(const ScriptResult& seen, int64_t first, const std::string& what) const {
    for (int64_t step = first; step < kSteps; ++step) CompareStep(seen, step, what);
    EXPECT_EQ(Difference(seen.weights, through_.params.at(kSteps - 1)), "") << what;
  }
  void CompareStep(const ScriptResult& seen, int64_t step, const std::string& what) const {
    const std::string where = what + " step " + std::to_string(step);
    ASSERT_EQ(seen.params.count(step), 1u) << where;
    EXPECT_EQ(Difference(seen.params.at(step), through_.params.at(step)), "") << where;
    EXPECT_EQ(Difference(seen.grads.at(step), through_.grads.at(step)), "") << where;
    EXPECT_EQ(OfStep(seen.losses, step), OfStep(through_.losses, step)) << where;
  }

  // The engine that goes on may have lived before, and evaluates first or does not.
  void Resume(const std::string& id, int64_t moment, int64_t turn) {
    const int64_t first = moment / 3;
    const std::string before[] = {"", "t0", "e0", "r0", "t0e9"};
    std::string script = before[turn % 5] + InFolder('l', moment);
    const bool evaluates = turn % 2 == 1;
    if (evaluates) script += Call('e', first);
    script += Train(first, kSteps);
    const std::string what = id + " " + script;
    const ScriptResult resumed = Run(id, script);
    ASSERT_EQ(resumed.loaded.size(), 1u) << what;
    const Weights& loaded = resumed.loaded.begin()->second;
    EXPECT_EQ(Difference(loaded, through_.params.at(first - 1)), "") << what << " loaded";
    if (evaluates) {
      EXPECT_EQ(OfStep(resumed.eval_losses, first), OfStep(through_.eval_losses, first)) << what;
    }
    Compare(resumed, first, what);
    ++resumed_;
  }

  // DP, EP, axes and strategy all change between any two steps.
  void EachStepInAnotherLayout(const std::string& function,
                               const std::vector<std::string>& layouts) {
    for (size_t start = 0; start < (FullGrid() ? layouts.size() : 1); ++start) {
      for (int64_t step = 0; step < kSteps; ++step) {
        const size_t layout = (start + static_cast<size_t>(step)) % layouts.size();
        const std::string id = layouts[layout] + function;
        const std::string script =
            (step > 0 ? InFolder('l', step - 1) : "") + Call('t', step) + InFolder('s', step);
        CompareStep(Run(id, script), step, id + " " + script);
        ++resumed_;
      }
    }
  }

  const ScratchFolder scratch_;
  const std::string folder_ = scratch_.path();
  ScriptResult through_;  // what nobody interrupted; params[-1]: before the first step
  int resumed_ = 0;
};

// Names of parts of ids that are short to run.
const std::string kSmall = ".lr0p0625.vocab16.ffn8.seq2";

TEST_F(ResumeTest, AdamOverAnyNumberOfRanks) {
  EveryMomentGoesOn(
      ".adamw" + kSmall,
      {"w8.lw.k3.ogr.opg.bs300", "w4.lw.k6", "w3.lw.k8.ogr.opg.bs1.aligned",
       "w2.lw.k12.ogr.opg.bs300.bcast.gradbuf", "w1.lw.k24.ogr.opg", "w8.lw.twin.k3.ogr.padded",
       "w8.lw.k3.grid.ogr.opg.bs300", "w4.ddp.k6", "w8.zero1.k3", "w3.zero3.k8"});
}

TEST_F(ResumeTest, MuonOverAnyNumberOfRanks) {
  EveryMomentGoesOn(".muon.nesterov.wd0p0625" + kSmall,
                    {"w5.lw.k4.ogr.opg.bs300", "w10.lw.k2.aligned", "w4.lw.k5.ogr.opg.bs1.padded",
                     "w2.lw.k10.bcast", "w5.lw.k4.ogr.opg.bs300.aligned", "w10.ddp.k2", "w1.lw.k20",
                     "w2.lw.k10.ogr.opg.gradbuf", "w2.ddp.k10"});
}

TEST_F(ResumeTest, SgdWithOddShapesSharedWeightsAndBiases) {
  EveryMomentGoesOn(".odd.tied.bias.lr0p0625.seq2",
                    {"w4.lw.k3.ogr.opg.bs300", "w3.lw.k4.ogr.opg.aligned", "w6.lw.k2.bcast",
                     "w2.zero2.k6", "w1.ddp.k12"});
}

// Without experts etp is the size of an axis, and changes nothing.
TEST_F(ResumeTest, AxesThatReplicate) {
  EveryMomentGoesOn(".muon" + kSmall,
                    {"w8.lw.tp2.etp2.k2.ogr.opg.bs300", "w8.lw.cp2", "w8.lw.pp2.k2.aligned",
                     "w4.lw.tp4.etp4.k8.ogr.opg", "w5.lw.at1.k2.ogr.opg.padded", "w4.ddp.k2",
                     "w8.lw.tp2.k2.ogr.opg.bcast",
                     "w8.lw.tp2.etp2.order=dp-cp-ep-tp-pp.grid.k2.ogr.opg.bs300.gradbuf"});
}

// The second to fifth layouts change one thing: ep, the data-parallel size, etp, when gathers run.
TEST_F(ResumeTest, AdamOfExperts) {
  EveryMomentGoesOn(
      ".moe8.adamw" + kSmall,
      {"w8.lw.ep4.ogr.opg.bs300", "w8.lw.ep2.ogr.opg.bs300", "w4.lw.ep4.k2.ogr.opg.bs300",
       "w8.lw.tp2.etp2.ep4.k2.ogr.opg.bs300", "w8.lw.ep4.bs300", "w8.lw",
       "w4.lw.ep2.k2.ogr.opg.bcast.gradbuf", "w2.lw.k4.padded",
       "w8.lw.tp2.etp2.ep2.k2.ogr.opg.aligned", "w8.zero3.ep4", "w1.ddp.k8", "w4.zero1.ep2.k2"});
}

TEST_F(ResumeTest, MuonOfExperts) {
  EveryMomentGoesOn(".moe4.shared.mtp.muon" + kSmall,
                    {"w8.lw.twin.ep2.ogr.opg.bs300", "w4.lw.ep4.k2.ogr.aligned",
                     "w5.lw.at1.k2.ogr.opg.bs300.aligned", "w2.lw.ep2.k4.ogr.opg.bcast",
                     "w8.lw.tp2.etp2.ep4.k2.grid.padded", "w4.ddp.ep2.k2", "w1.lw.k8"});
}

// One expert a rank of ep, so ep stays as it is.
TEST_F(ResumeTest, ExpertsWithoutDispatch) {
  EveryMomentGoesOn(".ep2.experts.tied.adamw" + kSmall,
                    {"w8.lw.ogr.opg.bs300", "w4.lw.k2.ogr.opg.aligned", "w2.lw.k4.bcast",
                     "w8.zero1", "w4.zero3.k2"});
}

TEST_F(ResumeTest, FrozenParameters) {
  for (const char* function : {".frozen=embedding.tied.muon", ".frozen=norms.bias.adamw"}) {
    EveryMomentGoesOn(function + kSmall, {"w4.lw.ogr.opg.bs300", "w2.lw.k2.ogr.opg.aligned",
                                          "w1.lw.k4", "w4.ddp", "w3.lw.at1.k2.ogr.bcast"});
  }
}

TEST_F(ResumeTest, HalfPrecision) {
  for (const char* function : {".bf16.muon.prec=medium", ".bf16.wire16.acc16.adamw"}) {
    EveryMomentGoesOn(function + kSmall, {"w4.lw.ogr.opg.bs300.gradbuf", "w2.lw.k2.ogr.opg.aligned",
                                          "w1.lw.k4", "w4.ddp", "w2.lw.k2.padded"});
  }
}

// Modules that some steps or samples leave out, or that run twice.
TEST_F(ResumeTest, ModulesThatAreLeftOutOrRunTwice) {
  for (const char* function : {".unused=step.adamw", ".unused=rank.muon", ".reused.adamw"}) {
    EveryMomentGoesOn(function + kSmall, {"w4.lw.ogr.opg.bs1", "w2.lw.k2.ogr.opg.bs300.aligned",
                                          "w1.lw.k4.ogr.opg", "w4.lw.bcast"});
  }
}

}  // namespace
}  // namespace shardproof
