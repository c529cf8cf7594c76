// Parameters that a step leaves as they were: older bytes of them are current, and by SGD nobody
// need step them.
#include "conformance/checks/layer_wise/versions.h"

#include <gtest/gtest.h>

#include "conformance/checks/layer_wise/layer_wise.h"
#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/mini_layer_wise.h"

namespace shardproof {
namespace {

using Edit = std::function<void(InstanceSpec&)>;

void Sgd(InstanceSpec& spec) { spec.optimizer = Optimizer::kSgd; }

// In the second train_step, call 2, the last parameter is not stepped. stays: its published value
// does not change.
LayerWiseRun Made(const Edit& edit, bool stays) {
  LayerWiseFaults faults;
  faults.leave_out = true;
  faults.value_stays = stays;
  return RunLayerWise(LayerWiseCase(4, edit), faults);
}
std::string Found(const LayerWiseRun& made) { return FoundIn(CheckLayerWise(made.run)); }

TEST(Versions, ASameValueIsNoOtherVersion) {
  const LayerWiseRun made = Made(Sgd, true);
  const Analysis a(made.run);
  const layer_wise::Versions versions(a);
  const int32_t last = a.Facts(0).Param(0, a.Facts(0).n_params(0) - 1).key;
  const int32_t first = a.Facts(0).Param(0, 0).key;
  EXPECT_TRUE(versions.Unchanged(0, last, 2));
  EXPECT_FALSE(versions.Unchanged(0, last, 1));
  EXPECT_FALSE(versions.Unchanged(0, first, 2));
  EXPECT_TRUE(versions.Same(0, last, 1, 2));
  EXPECT_FALSE(versions.Same(0, last, 2, 1)) << "of the future";
  EXPECT_FALSE(versions.Same(0, last, 1, 3));
  EXPECT_FALSE(versions.Same(0, first, 1, 2));
  EXPECT_TRUE(versions.Same(0, first, 2, 2));
}

TEST(Versions, PlainSgdMayLeaveOutWhatDoesNotChange) {
  const auto overlap = [](InstanceSpec& spec) {
    Sgd(spec);
    spec.overlap_param_gather = spec.overlap_grad_reduce = true;
  };
  const auto aligned = [](InstanceSpec& spec) {
    Sgd(spec);
    spec.layer_wise.layout = LayerWiseLayout::kAligned;
  };
  for (const Edit& edit : {Edit(Sgd), Edit(overlap), Edit(aligned)})
    EXPECT_EQ(Found(Made(edit, true)), "");
}

TEST(Versions, WhatChangesIsSteppedAndReadAfterwards) {
  EXPECT_EQ(Found(Made(Sgd, false)), "LW-10 LW-11 LW-34 LW-35");
}

TEST(Versions, DecayAndStateLeaveNothingOut) {
  const auto decay = [](InstanceSpec& spec) {
    Sgd(spec);
    spec.weight_decay = 0.0625;
  };
  EXPECT_EQ(Found(Made(decay, true)), "LW-34");
  EXPECT_EQ(Found(Made([](InstanceSpec&) {}, true)), "LW-34") << "AdamW";
}

TEST(Versions, WithoutValuesAnythingMayHaveStayed) {
  for (const Edit& edit : {Edit(Sgd), Edit([](InstanceSpec&) {})}) {
    LayerWiseRun made = Made(edit, false);
    for (Trace& trace : made.run.traces) {
      for (Event& event : trace.events) event.values = -1;
    }
    const bool sgd = made.spec->instances[0].optimizer == Optimizer::kSgd;
    EXPECT_EQ(Found(made), sgd ? "" : "LW-10 LW-11 LW-34 LW-35");
  }
}

}  // namespace
}  // namespace shardproof
