#include "reference/config.h"

#include <gtest/gtest.h>

#include <map>

namespace reference {
namespace {

using Texts = std::map<std::string, std::string>;

Config Read(Texts texts) {
  texts.try_emplace("microbatches", "2");
  texts.try_emplace("lr", "0.5");
  return ReadConfig([&](const char* name) -> const char* {
    const auto found = texts.find(name);
    return found == texts.end() ? nullptr : found->second.c_str();
  });
}

void ExpectRejected(const Texts& texts, const std::string& knob, const std::string& value) {
  try {
    Read(texts);
    ADD_FAILURE() << knob << " = " << value << " was accepted";
  } catch (const Rejected& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(knob), std::string::npos) << message;
    EXPECT_NE(message.find(value), std::string::npos) << message;
  }
}

TEST(Config, DefaultsAreThoseOfTheKnobTable) {
  const Config config = Read({});
  EXPECT_EQ(config.strategy, Strategy::kNoShard);
  EXPECT_EQ(config.unit_types, (std::vector<std::string>{"TransformerLayer"}));
  EXPECT_FALSE(config.prefetch_limit_bytes);
  EXPECT_FALSE(config.twins);
  EXPECT_EQ(config.adam_beta2, 0.75);
  EXPECT_EQ(config.microbatches, 2);
}

TEST(Config, StrategiesThatNeedOverlapImplyIt) {
  EXPECT_TRUE(Read({{"strategy", "optim_grads"}}).overlap_grad_reduce);
  EXPECT_FALSE(Read({{"strategy", "optim_grads"}}).overlap_param_gather);
  EXPECT_TRUE(Read({{"strategy", "optim_grads_params"}}).overlap_param_gather);
  EXPECT_FALSE(Read({{"strategy", "optim"}}).overlap_grad_reduce);
}

TEST(Config, ClippingImpliesTheNorm) { EXPECT_TRUE(Read({{"clip_grad", "0.25"}}).grad_norm); }

TEST(Config, NoUnits) { EXPECT_TRUE(Read({{"units", "none"}}).unit_types.empty()); }

TEST(Config, SeveralUnitTypes) {
  EXPECT_EQ(Read({{"units", "Embedding,TransformerLayer"}}).unit_types,
            (std::vector<std::string>{"Embedding", "TransformerLayer"}));
}

TEST(Config, PrefetchLimitZeroIsNotTheDefault) {
  EXPECT_EQ(Read({{"prefetch_limit_bytes", "0"}}).prefetch_limit_bytes.value(), 0);
}

TEST(Config, ContractKnobsMustBeSet) {
  EXPECT_THROW(ReadConfig([](const char*) -> const char* { return nullptr; }), Rejected);
}

TEST(ConfigRefusals, UnknownWords) {
  ExpectRejected({{"strategy", "zero9"}}, "strategy", "zero9");
  ExpectRejected({{"outer_strategy", "optim_grads"}}, "outer_strategy", "optim_grads");
  ExpectRejected({{"optimizer", "lion"}}, "optimizer", "lion");
  ExpectRejected({{"param_dtype", "fp8"}}, "param_dtype", "fp8");
  ExpectRejected({{"groups", "mpu"}}, "groups", "mpu");
}

TEST(ConfigRefusals, MalformedNumbers) {
  ExpectRejected({{"microbatches", "two"}}, "microbatches", "two");
  ExpectRejected({{"microbatches", "0"}}, "microbatches", "0");
  ExpectRejected({{"bucket_size", "-1"}}, "bucket_size", "-1");
  ExpectRejected({{"prefetch_limit_bytes", "-5"}}, "prefetch_limit_bytes", "-5");
  ExpectRejected({{"lr", "fast"}}, "lr", "fast");
  ExpectRejected({{"lr", "-1"}}, "lr", "-1");
  ExpectRejected({{"recompute", "2"}}, "recompute", "2");
  ExpectRejected({{"adam_beta1", "1"}}, "adam_beta1", "1");
  ExpectRejected({{"num_optimizer_instances", "0"}}, "num_optimizer_instances", "0");
  ExpectRejected({{"units", "A,,B"}}, "units", "A,,B");
}

TEST(ConfigRefusals, OuterShardingNeedsShardedParametersAndOuterRanks) {
  ExpectRejected(
      {{"outer_strategy", "optim"}, {"strategy", "optim"}, {"num_optimizer_instances", "2"}},
      "outer_strategy", "optim_grads_params, not optim");
  ExpectRejected({{"outer_strategy", "optim"}, {"strategy", "optim_grads_params"}},
                 "outer_strategy", "num_optimizer_instances = 1");
}

TEST(ConfigRefusals, AverageOfAPerTokenLoss) {
  ExpectRejected(
      {{"average_in_collective", "1"}, {"calculate_per_token_loss", "1"}, {"tokens_per_step", "8"}},
      "average_in_collective", "calculate_per_token_loss");
  ExpectRejected({{"calculate_per_token_loss", "1"}}, "calculate_per_token_loss",
                 "tokens_per_step");
}

TEST(ConfigRefusals, LossScalesThatRound) {
  EXPECT_EQ(Read({{"loss_scale", "0.25"}}).loss_scale, 0.25);
  EXPECT_EQ(Read({}).loss_scale, 1);
  ExpectRejected({{"loss_scale", "3"}}, "loss_scale", "3");
  ExpectRejected({{"loss_scale", "0"}}, "loss_scale", "0");
}

// What is legal with the overlapped schedule, and one change at a time that is not.
const Texts kOverlapped{{"overlap_moe_expert_parallel_comm", "1"},
                        {"delay_wgrad_compute", "1"},
                        {"ep_overlap_early_attn_memory_release", "1"},
                        {"high_priority_a2a_comm_stream", "1"},
                        {"recompute_modules", "norm,core_attn"},
                        {"cuda_graph_impl", "full_iteration"},
                        {"strategy", "optim_grads_params"}};

Texts Overlapped(const std::string& knob, const std::string& value) {
  Texts texts = kOverlapped;
  texts[knob] = value;
  return texts;
}

TEST(ConfigSchedule, LegalCombination) {
  const Config config = Read(kOverlapped);
  EXPECT_TRUE(config.overlap_moe && config.delay_wgrad && config.early_attn_release);
  EXPECT_EQ(config.recompute_modules, (std::set<std::string>{"norm", "core_attn"}));
  EXPECT_NO_THROW(CheckAxes(config, 2, 1));
}

TEST(ConfigSchedule, WhatTakesALayerAsOnePieceIsRejected) {
  ExpectRejected(Overlapped("recompute", "1"), "recompute", "1");
  ExpectRejected(Overlapped("recompute_modules", "norm,moe"), "recompute_modules", "norm,moe");
  ExpectRejected(Overlapped("recompute_modules", "mlp"), "recompute_modules", "mlp");
  ExpectRejected(Overlapped("moe_shared_expert_overlap", "1"), "moe_shared_expert_overlap", "1");
  ExpectRejected(Overlapped("fsdp_double_buffer", "1"), "fsdp_double_buffer", "1");
  ExpectRejected(Overlapped("cuda_graph_impl", "per_layer"), "cuda_graph_impl", "per_layer");
  ExpectRejected(Overlapped("units", "MoE"), "units", "MoE");
  Texts full = Overlapped("cuda_graph_impl", "per_layer");
  full["strategy"] = "no_shard";
  EXPECT_NO_THROW(Read(full)) << "legal where nothing is sharded";
}

TEST(ConfigSchedule, WhatBelongsToTheScheduleNeedsIt) {
  ExpectRejected({{"delay_wgrad_compute", "1"}}, "delay_wgrad_compute", "1");
  ExpectRejected({{"ep_overlap_early_attn_memory_release", "1"}},
                 "ep_overlap_early_attn_memory_release", "1");
  EXPECT_NO_THROW(Read({{"high_priority_a2a_comm_stream", "1"}}));
  EXPECT_NO_THROW(Read({{"recompute_modules", "moe"}}));
}

TEST(ConfigSchedule, AxesDecideToo) {
  EXPECT_THROW(CheckAxes(Read(kOverlapped), 1, 1), Rejected);
  EXPECT_THROW(CheckAxes(Read(kOverlapped), 2, 2), Rejected) << "one chunk";
  Texts interleaved = Overlapped("virtual_pipeline_model_parallel_size", "2");
  EXPECT_THROW(CheckAxes(Read(interleaved), 2, 2), Rejected) << "with sharded parameters";
  interleaved["strategy"] = "no_shard";
  EXPECT_NO_THROW(CheckAxes(Read(interleaved), 2, 2));
}

TEST(ConfigRefusals, GridKnobsWithAnExplicitCollection) {
  ExpectRejected({{"tp", "2"}}, "tp", "explicit");
  ExpectRejected({{"rank_offset", "2"}}, "rank_offset", "explicit");
}

}  // namespace
}  // namespace reference
