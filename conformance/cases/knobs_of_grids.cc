// knob_rows.h's rows about strategies and grids of ranks.
#include "conformance/cases/knob_row.h"
#include "conformance/cases/knob_rows.h"

namespace shardproof::rows {

std::string SaysTwin(const InstanceSpec& spec, int32_t) {
  return spec.twin == GatherTwin::kNone ? "" : "1";
}

// No token: twin=dense and twin=experts say it.
Knob TwinsOf() {
  Knob knob;
  knob.name = "all_gather_group_of";
  knob.values = "all, dense, experts";
  knob.meaning =
      "with create_all_gather_group = 1: the parameters that have a twin; the others are gathered "
      "on the communicator that reduces them";
  knob.text = [](const InstanceSpec& spec) -> std::string {
    if (spec.twin == GatherTwin::kDenseOnly) return "dense";
    return spec.twin == GatherTwin::kExpertsOnly ? "experts" : "all";
  };
  return knob;
}

Knob AfterForward() {
  return Number(
             &InstanceSpec::reshard_after_forward, "reshard",
             {.name = "reshard_after_forward",
              .values = "1, 0, n",
              .meaning =
                  "of a unit's parameters, with strategy = optim_grads_params, in train_step. 1: "
                  "after its forward they are released. 0: they stay gathered until its backward "
                  "has ended, in a pipeline while a microbatch is between the two, and no longer. "
                  "n from 2: after "
                  "its forward each rank keeps one n-th of what is "
                  "dense, and backward gathers it over `dp_cp_reshard` only: runs of n "
                  "consecutive ranks of the group that reduces it; experts are released as with "
                  "1. n divides that group and is less. Refused under the overlap, and with any "
                  "other strategy. (PyTorch FSDP2's reshard_after_forward)"})
      .In(Space::kDense, {1, 0, 2})
      .In(Space::kPipeline, {1, 0});
}

Knob Groups() {
  return Flag(&InstanceSpec::grid, "grid",
              {.name = "groups",
               .values = "explicit, grid",
               .meaning = "explicit: `group(name)` answers; grid: only \"world\" is given and the "
                          "engine builds its groups with group_create from the knobs that are set "
                          "with it only"})
      .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline})
      .Says([](const InstanceSpec& spec, int32_t) { return spec.grid ? "grid" : ""; });
}

std::vector<Knob> StrategyKnobs() {
  return {
      Word(&InstanceSpec::strategy, "strategy",
           {{ShardingStrategy::kNoShard, "ddp"},
            {ShardingStrategy::kOptim, "zero1"},
            {ShardingStrategy::kOptimGrads, "zero2"},
            {ShardingStrategy::kOptimGradsParams, "zero3"},
            {ShardingStrategy::kLayerWise, "lw"}},
           {.name = "strategy",
            .meaning = "what is sharded: nothing, optimizer state, + gradients, + parameters; "
                       "layer_wise: whole parameters are dealt to ranks, which keep main weights "
                       "and optimizer state of what they own, step only that and publish only "
                       "that; model weights are whole on every rank"},
           Written::kAlways)
          .In(Space::kDense, {ShardingStrategy::kNoShard, ShardingStrategy::kOptim,
                              ShardingStrategy::kOptimGrads, ShardingStrategy::kOptimGradsParams})
          .In(Space::kSchedule, {ShardingStrategy::kOptimGradsParams, ShardingStrategy::kOptimGrads,
                                 ShardingStrategy::kOptim, ShardingStrategy::kNoShard}),
      Text(&InstanceSpec::name, "name",
           {.name = "name", .meaning = "name of the instance", .told = Told::kNever}),
      Number(
          &InstanceSpec::outer, "n",
          {.name = "num_optimizer_instances",
           .values = "1, n",
           .meaning = "outer data-parallel size; divides dp_cp and expt_dp. What is sharded is "
                      "whole in each instance: gradients and parameters travel between the ranks "
                      "of one (intra_dp_cp, intra_expt_dp), and across instances between ranks "
                      "with the same place in each (inter_dp_cp, inter_expt_dp), parameters only "
                      "with outer_strategy = optim. With no_shard it means nothing"})
          .In(Space::kDense, {1, 2, 4})
          .In(Space::kSchedule, {1, 2})
          .In(Space::kPipeline, {1, 2}),
      Word(&InstanceSpec::outer_strategy, "outer", {{OuterStrategy::kOptim, "hfsdp"}},
           {.name = "outer_strategy",
            .meaning = "HSDP: outer ranks replicate the shard, or shard it further (needs "
                       "optim_grads_params): each steps a part of it and gets the others' parts "
                       "from other instances before the next forward"})
          .In({Space::kDense, Space::kSchedule, Space::kPipeline}),
      Word(&InstanceSpec::twin, "twin", {{GatherTwin::kGiven, "twin"}},
           {.name = "create_all_gather_group",
            .values = "0, 1",
            .meaning =
                "twins: parameter gathers run on `dp_cp_ag` / `expt_dp_ag`, a second communicator "
                "with the same ordered members as the group that reduces the same buffer"})
          .In(Space::kDense, {GatherTwin::kNone, GatherTwin::kGiven})
          .In(Space::kSchedule, {GatherTwin::kNone, GatherTwin::kGiven, GatherTwin::kDenseOnly,
                                 GatherTwin::kExpertsOnly})
          .In(Space::kLayerWise, {GatherTwin::kNone, GatherTwin::kGiven})
          .In(Space::kPipeline, {GatherTwin::kNone, GatherTwin::kGiven})
          .Says(SaysTwin),
      TwinsOf(),
      AfterForward(),
      Groups(),
  };
}

template <typename Size>
auto Axis(Size InstanceSpec::*size, const char* name) {
  return Number(size, name,
                {.name = name,
                 .values = "1, n",
                 .meaning = "axis size (set with groups = grid only)",
                 .told = Told::kWithGrid});
}

Knob TensorParallel() {
  return Flag(
             &InstanceSpec::tensor_parallel, "split",
             {.name = "tensor_parallel",
              .meaning =
                  "attention and dense MLPs are split over the group `tp`: each of its ranks "
                  "holds a shard of qkv and fc1 (by output) and of proj and fc2 (by input), and "
                  "the model has nodes of kind SPF_NODE_ALL_REDUCE. Everything else is the same "
                  "on all ranks of `tp` (but see sequence_parallel and vocab_parallel), and so are "
                  "its gradients: they are not summed over `tp`. 0: ranks of `tp` hold the same "
                  "whole model"})
      .In({Space::kDense, Space::kSchedule, Space::kLayerWise});
}

Knob SequenceParallel() {
  return Flag(&InstanceSpec::sequence_parallel, "sp",
              {.name = "sequence_parallel",
               .meaning =
                   "with tensor_parallel: each rank of `tp` holds its part of the sequence between "
                   "the split layers. The model has nodes of kind SPF_NODE_ALL_GATHER before them "
                   "and SPF_NODE_REDUCE_SCATTER behind them in place of SPF_NODE_ALL_REDUCE. "
                   "Gradients of parameters flagged SPF_PARAM_SEQUENCE_PARALLEL (norms, biases "
                   "behind the sums, routers, shared experts; positions with vocab_parallel) are "
                   "summed over `tp` before they are used; embedding and head have whole gradients "
                   "on each rank (but see vocab_parallel). A rank routes the tokens of its part to "
                   "experts that are whole: with routed experts etp is 1, so "
                   "that groups of experts have ranks of `tp` in them. (Megatron-LM's "
                   "sequence_parallel)"})
      .In({Space::kDense, Space::kLayerWise});
}

Knob VocabParallel() {
  return Flag(&InstanceSpec::vocab_parallel, "splitvocab",
              {.name = "vocab_parallel",
               .meaning =
                   "with tensor_parallel: embedding and head are split over `tp` by rows, too, so "
                   "that a rank has a range of the vocabulary. The model sums what ranks have "
                   "looked up (SPF_NODE_ALL_REDUCE, with sequence_parallel "
                   "SPF_NODE_REDUCE_SCATTER) and the gradient of the head's input; each rank has "
                   "the logits of its range, whose maxima are gathered (SPF_NODE_ALL_GATHER, "
                   "forward alone) and whose sums of exponentials, with the label's logit, are "
                   "summed before the loss. Refused without tensor_parallel. (Megatron-LM's "
                   "VocabParallelEmbedding and vocab_parallel_cross_entropy; torchtitan's loss "
                   "parallel)"})
      .In({Space::kDense, Space::kLayerWise});
}

Knob ContextParallel() {
  return Flag(&InstanceSpec::context_parallel, "ctx",
              {.name = "context_parallel",
               .meaning =
                   "the samples of the ranks of `cp` are the parts, in their order, of one "
                   "sequence. "
                   "The model has nodes of kind SPF_NODE_ALL_GATHER_CP, by which attention gets "
                   "keys "
                   "and values of all of it, and gives back their gradients. All else is as with "
                   "samples of their own: each rank has the gradient of its tokens, summed over "
                   "`dp_cp`. 0: `cp` is a factor of `dp_cp` alone. (Megatron-LM's context_parallel_"
                   "size with cp_comm_type = all_gather; its parts are not contiguous, these are)"})
      .In({Space::kDense, Space::kLayerWise});
}

std::vector<Knob> AxisKnobs() {
  return {
      Axis(&InstanceSpec::tp, "tp")
          .In(Space::kDense, {1, 2})
          .In(Space::kSchedule, {1, 2})
          .In(Space::kLayerWise, {1, 2}),
      Axis(&InstanceSpec::cp, "cp")
          .In(Space::kDense, {1, 2})
          .In(Space::kSchedule, {1, 2})
          .In(Space::kLayerWise, {1, 2}),
      Axis(&InstanceSpec::ep, "ep")
          .In(Space::kDense, {1, 2, 4})
          .In(Space::kLayerWise, {1, 2, 4})
          .In(Space::kPipeline, {1, 2, 4}),
      Axis(&InstanceSpec::pp, "pp").In(Space::kDense, {1, 2}).In(Space::kLayerWise, {1, 2}),
      Axis(&InstanceSpec::etp, "etp"),
      TensorParallel(),
      SequenceParallel(),
      VocabParallel(),
      ContextParallel(),
  };
}

std::vector<Knob> PlaceKnobs() {
  return {
      Text(&InstanceSpec::order, "order",
           {.name = "order",
            .values = "tp-cp-ep-dp-pp",
            .meaning = "axis order, leftmost has the smallest stride (grid only)",
            .told = Told::kWithGrid})
          .In(Space::kDense, {"tp-cp-ep-dp-pp", "tp-pp-cp-ep-dp", "dp-cp-ep-tp-pp",
                              "pp-dp-ep-cp-tp", "cp-tp-dp-ep-pp", "tp-dp"})
          .In(Space::kLayerWise, {"tp-cp-ep-dp-pp", "dp-cp-ep-tp-pp"}),
      Number(&InstanceSpec::offset, "at",
             {.name = "rank_offset",
              .values = "0, n",
              .meaning = "the first rank of the world that the grid covers (grid only); ranks "
                         "before it join no group and idle",
              .told = Told::kWithGrid}),
      Number(&InstanceSpec::span, "span",
             {.name = "rank_span",
              .values = "world size, n",
              .meaning = "the grid covers ranks [rank_offset, rank_offset + rank_span) of the "
                         "world (grid only); ranks after it join no group and idle",
              .told = Told::kWithGrid})
          .Says([](const InstanceSpec& spec, int32_t world) {
            return spec.span == world ? "" : std::to_string(spec.span);
          }),
  };
}

}  // namespace shardproof::rows
