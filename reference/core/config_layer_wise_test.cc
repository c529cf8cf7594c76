#include "reference/core/config_for_test.h"

namespace reference {
namespace {

TEST(ConfigLayerWise, KnobsAreRead) {
  const Config usual = Read({{"strategy", "layer_wise"}});
  EXPECT_TRUE(usual.LayerWise());
  EXPECT_FALSE(usual.ShardsGrads() || usual.aligned_layout || usual.gather_into_grads);
  EXPECT_EQ(usual.transport, Transport::kAllGatherV);
  const Config set = Read({{"strategy", "layer_wise"},
                           {"layer_wise_transport", "broadcast"},
                           {"layer_wise_buffer", "grads"}});
  EXPECT_TRUE(set.gather_into_grads);
  EXPECT_EQ(set.transport, Transport::kBroadcast);
  EXPECT_TRUE(Read({{"strategy", "layer_wise"}, {"layer_wise_layout", "aligned"}}).aligned_layout);
}

// The knobs of a layer-wise engine and one more.
Texts LayerWise(Texts texts) {
  texts["strategy"] = "layer_wise";
  return texts;
}

TEST(ConfigLayerWise, ItsKnobsNeedIt) {
  for (const auto& [knob, value] : {std::pair{"layer_wise_layout", "aligned"},
                                    {"layer_wise_transport", "padded"},
                                    {"layer_wise_buffer", "grads"}}) {
    ExpectRejected({{knob, value}, {"strategy", "optim"}}, knob, "layer_wise");
  }
}

TEST(ConfigLayerWise, WhatSplitsParametersOrLeavesNothingToHideBehind) {
  ExpectRejected(LayerWise({{"num_optimizer_instances", "2"}}), "num_optimizer_instances", "2");
  ExpectRejected(LayerWise({{"nccl_ub", "1"}}), "nccl_ub", "layer_wise");
  ExpectRejected(LayerWise({{"overlap_param_gather", "1"}}), "overlap_param_gather",
                 "overlap_grad_reduce");
  EXPECT_NO_THROW(Read(LayerWise({{"overlap_param_gather", "1"}, {"overlap_grad_reduce", "1"}})));
  EXPECT_NO_THROW(CheckImplemented(Read(LayerWise({{"overlap_moe_expert_parallel_comm", "1"}}))));
}

TEST(ConfigLayerWise, AlignedBucketsGatherInPlace) {
  const Texts aligned = LayerWise({{"layer_wise_layout", "aligned"}});
  EXPECT_NO_THROW(Read(aligned));
  for (const auto& [knob, value] : {std::pair{"layer_wise_transport", "broadcast"},
                                    {"layer_wise_transport", "padded"},
                                    {"layer_wise_buffer", "grads"}}) {
    Texts texts = aligned;
    texts[knob] = value;
    ExpectRejected(texts, knob, value);
  }
}

TEST(ConfigLayerWise, ParametersMustFitIntoTheGradients) {
  ExpectRejected(LayerWise({{"layer_wise_buffer", "grads"}, {"layer_wise_transport", "padded"}}),
                 "layer_wise_buffer", "padded");
  Texts texts = LayerWise({{"layer_wise_buffer", "grads"}, {"main_grads_dtype", "bf16"}});
  ExpectRejected(texts, "layer_wise_buffer", "main_grads_dtype");
  texts["param_dtype"] = "bf16";
  EXPECT_NO_THROW(Read(texts));
}

}  // namespace
}  // namespace reference
