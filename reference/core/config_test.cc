#include "reference/core/config_for_test.h"

namespace reference {
namespace {

TEST(Config, DefaultsAreThoseOfTheKnobTable) {
  const Config config = Read({});
  EXPECT_EQ(config.strategy, ShardingStrategy::kNoShard);
  EXPECT_EQ(config.unit_types, (std::vector<std::string>{"TransformerLayer"}));
  EXPECT_FALSE(config.prefetch_limit_bytes);
  EXPECT_FALSE(config.dense_twins || config.expert_twins);
  EXPECT_EQ(config.adam_beta2, 0.75);
  EXPECT_EQ(config.microbatches, 2);
}

TEST(Config, StrategiesThatNeedOverlapImplyIt) {
  EXPECT_TRUE(Read({{"strategy", "optim_grads"}}).overlap_grad_reduce);
  EXPECT_FALSE(Read({{"strategy", "optim_grads"}}).overlap_param_gather);
  EXPECT_TRUE(Read({{"strategy", "optim_grads_params"}}).overlap_param_gather);
  EXPECT_FALSE(Read({{"strategy", "optim"}}).overlap_grad_reduce);
}

TEST(Config, WhatDependsOnTheNormImpliesIt) {
  EXPECT_TRUE(Read({{"clip_grad", "0.25"}}).grad_norm);
  EXPECT_TRUE(Read({{"grad_norm_skip_threshold", "4"}}).grad_norm);
  EXPECT_FALSE(Read({{"log_num_zeros_in_grad", "1"}}).grad_norm);
}

TEST(Config, OneCollectiveAtATimeLeavesTwinsNothing) {
  EXPECT_EQ(Read({}).schedule, CommSchedule::kCommunicators);
  EXPECT_EQ(Read({{"schedule", "one_communicator"}}).schedule, CommSchedule::kOneCommunicator);
  for (const char* of : {"all", "dense", "experts"}) {
    ExpectRejected({{"schedule", "one_communicator"},
                    {"create_all_gather_group", "1"},
                    {"all_gather_group_of", of}},
                   "schedule", "one_communicator");
  }
  EXPECT_EQ(Read({{"schedule", "one_queue"}, {"create_all_gather_group", "1"}}).schedule,
            CommSchedule::kOneQueue);
  ExpectRejected({{"schedule", "one_stream"}}, "schedule", "one_stream");
}

TEST(Config, OneQueueHasNoPriorities) {
  const Texts high{{"schedule", "one_queue"}, {"high_priority_a2a_comm_stream", "1"}};
  EXPECT_EQ(Read(high).schedule, CommSchedule::kOneQueue);  // nothing has the priority
  Texts overlap = high;
  overlap["overlap_moe_expert_parallel_comm"] = "1";
  ExpectRejected(overlap, "schedule", "one_queue");
  overlap["schedule"] = "one_communicator";
  EXPECT_EQ(Read(overlap).schedule, CommSchedule::kOneCommunicator);
}

TEST(Config, NoUnits) { EXPECT_TRUE(Read({{"units", "none"}}).unit_types.empty()); }

TEST(Config, SeveralUnitTypes) {
  EXPECT_EQ(Read({{"units", "Embedding,TransformerLayer"}}).unit_types,
            (std::vector<std::string>{"Embedding", "TransformerLayer"}));
}

TEST(Config, PrefetchLimitZeroIsNotTheDefault) {
  EXPECT_EQ(Read({{"prefetch_limit_bytes", "0"}}).prefetch_limit_bytes.value(), 0);
}

TEST(Config, ContractKnobsMustBeSet) {
  for (const char* missing : {"microbatches", "lr"}) {
    const auto all_but_one = [&](const char* name) -> const char* {
      const std::string knob = name;
      return (knob == "microbatches" || knob == "lr") && knob != missing ? "1" : nullptr;
    };
    try {
      ReadConfig(all_but_one);
      ADD_FAILURE() << missing;
    } catch (const Rejected& error) {
      EXPECT_NE(std::string(error.what()).find(missing), std::string::npos) << error.what();
    }
  }
}

TEST(ConfigRefusals, UnknownWords) {
  ExpectRejected({{"strategy", "zero9"}}, "strategy", "zero9");
  ExpectRejected({{"outer_strategy", "optim_grads"}}, "outer_strategy", "optim_grads");
  ExpectRejected({{"optimizer", "lion"}}, "optimizer", "lion");
  ExpectRejected({{"param_dtype", "fp8"}}, "param_dtype", "fp8");
  ExpectRejected({{"init_device", "cuda"}}, "init_device", "cuda");
  ExpectRejected({{"groups", "mpu"}}, "groups", "mpu");
  ExpectRejected({{"cuda_graph_impl", "local"}}, "cuda_graph_impl", "local");
  ExpectRejected({{"layer_wise_layout", "packed"}}, "layer_wise_layout", "packed");
  ExpectRejected({{"layer_wise_transport", "ring"}}, "layer_wise_transport", "ring");
  ExpectRejected({{"layer_wise_buffer", "params"}}, "layer_wise_buffer", "params");
}

TEST(ConfigRefusals, MalformedNumbers) {
  ExpectRejected({{"microbatches", "two"}}, "microbatches", "two");
  ExpectRejected({{"microbatches", "0"}}, "microbatches", "0");
  ExpectRejected({{"loss_chunks", "0"}}, "loss_chunks", "0");
  ExpectRejected({{"bucket_size", "-1"}}, "bucket_size", "-1");
  ExpectRejected({{"prefetch_limit_bytes", "-5"}}, "prefetch_limit_bytes", "-5");
  ExpectRejected({{"lr", "fast"}}, "lr", "fast");
  ExpectRejected({{"lr", "-1"}}, "lr", "-1");
  ExpectRejected({{"recompute", "2"}}, "recompute", "2");
  ExpectRejected({{"adam_beta1", "1"}}, "adam_beta1", "1");
  ExpectRejected({{"adam_beta2", "1"}}, "adam_beta2", "1");
  ExpectRejected({{"log_num_zeros_in_grad", "2"}}, "log_num_zeros_in_grad", "2");
  ExpectRejected({{"grad_norm_skip_threshold", "-1"}}, "grad_norm_skip_threshold", "-1");
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
  ExpectRejected({{"reshard_after_forward", "0"}, {"strategy", "optim_grads"}},
                 "reshard_after_forward", "0");
  ExpectRejected({{"reshard_after_forward", "-1"}}, "reshard_after_forward", "-1");
  ExpectRejected({{"backward_param_copies", "1"}, {"strategy", "optim_grads"}},
                 "backward_param_copies", "needs strategy = optim_grads_params");
  ExpectRejected({{"backward_param_copies", "1"},
                  {"strategy", "optim_grads_params"},
                  {"reshard_after_forward", "0"}},
                 "backward_param_copies", "needs reshard_after_forward = 1");
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
  ExpectRejected(Overlapped("loss_chunks", "2"), "loss_chunks", "2");
  ExpectRejected(Overlapped("recompute", "1"), "recompute", "1");
  ExpectRejected(Overlapped("recompute_modules", "norm,moe"), "recompute_modules", "norm,moe");
  ExpectRejected(Overlapped("recompute_modules", "mlp"), "recompute_modules", "mlp");
  ExpectRejected(Overlapped("moe_shared_expert_overlap", "1"), "moe_shared_expert_overlap", "1");
  ExpectRejected(Overlapped("fsdp_double_buffer", "1"), "fsdp_double_buffer", "1");
  ExpectRejected(Overlapped("nccl_ub", "1"), "nccl_ub", "1");
  ExpectRejected(Overlapped("reshard_after_forward", "2"), "reshard_after_forward", "2");
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
  for (const char* whole : {"layer_wise", "optim", "no_shard"}) {
    interleaved["strategy"] = whole;
    EXPECT_NO_THROW(CheckAxes(Read(interleaved), 2, 2)) << whole;
  }
  EXPECT_THROW(CheckAxes(Read(interleaved), 2, 1), Rejected) << "chunks without a pipeline";
  interleaved["microbatches"] = "3";
  EXPECT_THROW(CheckAxes(Read(interleaved), 2, 2), Rejected) << "no multiple of pp";
  EXPECT_THROW(
      CheckAxes(Read({{"virtual_pipeline_model_parallel_size", "2"}, {"recompute", "1"}}), 1, 2),
      Unsupported);
}

TEST(ConfigSchedule, StagesWithShardsTakeUnitsInTurn) {
  Texts stages{{"virtual_pipeline_model_parallel_size", "2"},
               {"strategy", "optim_grads_params"},
               {"microbatches", "2"}};
  EXPECT_NO_THROW(CheckAxes(Read(stages), 1, 2));
  for (const auto& [knob, value] : {std::pair{"units", "none"}, {"reshard_after_forward", "2"}}) {
    Texts with = stages;
    with[knob] = value;
    EXPECT_THROW(CheckAxes(Read(with), 1, 2), Unsupported) << knob;
  }
}

TEST(ConfigSchedule, WhatIsNotImplemented) {
  for (const auto& [knob, value] :
       {std::pair{"moe_shared_expert_overlap", "1"}, {"cuda_graph_impl", "full_iteration"}}) {
    EXPECT_THROW(CheckImplemented(Read({{knob, value}})), Unsupported) << knob;
  }
}

TEST(ConfigMuon, DefaultsAndValues) {
  const Config usual = Read({{"optimizer", "muon"}});
  EXPECT_EQ(usual.muon.momentum, 0.95);
  EXPECT_EQ(usual.muon.steps, 5);
  EXPECT_TRUE(usual.muon.split_qkv);
  EXPECT_TRUE(Warnings(usual).empty());
  const Config set = Read({{"optimizer", "muon"},
                           {"muon_momentum", "0.5"},
                           {"muon_nesterov", "1"},
                           {"muon_coefficient_type", "deepseekv4"},
                           {"muon_num_ns_steps", "10"},
                           {"muon_scale_mode", "shape_scaling"},
                           {"muon_extra_scale_factor", "0.25"},
                           {"muon_split_qkv", "0"},
                           {"muon_fp32_matmul_prec", "medium"},
                           {"muon_eps", "0.5"}});
  EXPECT_EQ(set.muon.momentum, 0.5);
  EXPECT_TRUE(set.muon.nesterov && set.muon.bf16_iteration && !set.muon.split_qkv);
  EXPECT_EQ(set.muon.coefficients, Coefficients::kDeepSeekV4);
  EXPECT_EQ(set.muon.steps, 10);
  EXPECT_EQ(set.muon.scale, MuonScale::kShapeScaling);
  EXPECT_EQ(set.muon.extra_scale, 0.25);
  EXPECT_EQ(set.muon.eps, 0.5);
}

TEST(ConfigMuon, TrapsAreRejectedWithTheReason) {
  const auto with = [](const std::string& knob, const std::string& value, const std::string& type) {
    return Texts{{"optimizer", "muon"}, {"muon_coefficient_type", type}, {knob, value}};
  };
  for (const char* steps : {"1", "6", "7", "8"})
    ExpectRejected(with("muon_num_ns_steps", steps, "quintic"), "muon_num_ns_steps", steps);
  EXPECT_NO_THROW(Read(with("muon_num_ns_steps", "10", "quintic")));
  EXPECT_NO_THROW(Read(with("muon_num_ns_steps", "6", "simple")));
  ExpectRejected(with("muon_num_ns_steps", "4", "cubic5"), "muon_num_ns_steps", "4");
  ExpectRejected(with("muon_num_ns_steps", "4", "aol"), "muon_coefficient_type", "sign");
  ExpectRejected(with("muon_num_ns_steps", "0", "simple"), "muon_num_ns_steps", "0");
  ExpectRejected(with("muon_num_ns_steps", "101", "simple"), "muon_num_ns_steps", "101");
  ExpectRejected(with("muon_momentum", "1", "simple"), "muon_momentum", "1");
  ExpectRejected(with("muon_scale_mode", "rms", "simple"), "muon_scale_mode", "rms");
  ExpectRejected(with("muon_fp32_matmul_prec", "low", "simple"), "muon_fp32_matmul_prec", "low");
  ExpectRejected(with("muon_tp_mode", "sharded", "simple"), "muon_tp_mode", "sharded");
}

TEST(ConfigMuon, ModesOfSplitMatrices) {
  EXPECT_EQ(Read({}).muon.tp_mode, MuonTpMode::kDuplicated);
  for (const auto& [word, mode] : {std::pair("duplicated", MuonTpMode::kDuplicated),
                                   {"distributed", MuonTpMode::kDistributed},
                                   {"blockwise", MuonTpMode::kBlockwise}})
    EXPECT_EQ(Read({{"muon_tp_mode", word}}).muon.tp_mode, mode);
}

TEST(ConfigMuon, TooFewStepsAreWarnedAbout) {
  Texts texts{
      {"optimizer", "muon"}, {"muon_coefficient_type", "simple"}, {"muon_num_ns_steps", "2"}};
  ASSERT_EQ(Warnings(Read(texts)).size(), 1u);
  EXPECT_NE(Warnings(Read(texts))[0].find("muon_num_ns_steps = 2"), std::string::npos);
  texts["optimizer"] = "sgd";
  EXPECT_TRUE(Warnings(Read(texts)).empty());
}

TEST(ConfigMuon, ShardedStrategiesAreNotImplemented) {
  EXPECT_NO_THROW(CheckImplemented(Read({{"optimizer", "muon"}})));
  for (const char* strategy : {"optim", "optim_grads", "optim_grads_params"}) {
    EXPECT_THROW(CheckImplemented(Read({{"optimizer", "muon"}, {"strategy", strategy}})),
                 Unsupported);
  }
}

TEST(ConfigRefusals, GridKnobsWithAnExplicitCollection) {
  ExpectRejected({{"tp", "2"}}, "tp", "explicit");
  ExpectRejected({{"rank_offset", "2"}}, "rank_offset", "explicit");
}

}  // namespace
}  // namespace reference
