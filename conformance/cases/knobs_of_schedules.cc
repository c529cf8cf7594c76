// knob_rows.h's rows about schedules of experts and pipelines.
#include <cmath>

#include "conformance/cases/knob_row.h"
#include "conformance/cases/knob_rows.h"

namespace shardproof::rows {

namespace {

std::string LossScale(const InstanceSpec& spec, int32_t) {
  const double scale =
      spec.wrong_loss_scale != 0 ? spec.wrong_loss_scale : std::ldexp(1.0, spec.loss_scale_log2);
  return scale == 1 ? "" : RealText(scale);
}

}  // namespace

Knob FineGrained() {
  return Number(
             &InstanceSpec::fine_grained_gather, "fine",
             {.name = "fine_grained_param_gather",
              .values = "1, 0",
              .meaning =
                  "under the overlap, with sharded parameters. 1: of a unit dense parameters and "
                  "experts are gathered each when one of its operations needs them. 0: all of a "
                  "unit is gathered before its first operation. Without the overlap it means "
                  "nothing. (Megatron-FSDP's enable_fine_grained_param_gather)"})
      .In(Space::kSchedule, {1, 0});
}

std::vector<Knob> ScheduleKnobs() {
  return {
      Number(&InstanceSpec::chunks, "vpp",
             {.name = "virtual_pipeline_model_parallel_size",
              .values = "1, n",
              .meaning =
                  "model chunks per rank of the group `pp` (interleaved schedule): stage v = chunk "
                  "* pp + pp rank. 1: ranks of `pp` hold the same whole model. With more, "
                  "microbatches are a multiple of pp, and the overlap is refused with optim_grads "
                  "and optim_grads_params"}),
      Flag(&InstanceSpec::overlap_moe, "1f1b",
           {.name = "overlap_moe_expert_parallel_comm",
            .meaning =
                "1F1B: forward of a microbatch and backward of the one before are issued layer by "
                "layer in turn, all-to-alls on a stream of their own, so that each hides behind "
                "the other's compute; in an interleaved pipeline each forward pass of a chunk "
                "after warm-up, which is one pass longer than without the knob, beside a backward "
                "pass. Refused with ep = 1, in a pipeline without model chunks, and "
                "with optim_grads_params and other units than TransformerLayer"})
          .In({Space::kSchedule}),
      Flag(&InstanceSpec::delay_wgrad, "dw",
           {.name = "delay_wgrad_compute",
            .meaning = "under the overlap: weight gradients of linear modules are computed apart "
                       "from input gradients, later. Refused without the overlap"})
          .In({Space::kSchedule}),
      Flag(&InstanceSpec::early_release, "er",
           {.name = "ep_overlap_early_attn_memory_release",
            .meaning = "under the overlap: backward of what stands before the dispatch is issued "
                       "before the other microbatch's experts instead of after its combine. "
                       "Refused without the overlap"})
          .In({Space::kSchedule}),
      Flag(&InstanceSpec::high_priority, "hp",
           {.name = "high_priority_a2a_comm_stream",
            .meaning =
                "streams of all-to-alls of activations have a higher priority (a lower number, as "
                "in CUDA) than those of compute; without the overlap it means nothing"})
          .In({Space::kSchedule, Space::kPipeline}),
      FineGrained(),
  };
}

std::vector<Knob> ScheduleOptionKnobs() {
  return {
      Number(
          &InstanceSpec::loss_scale_log2, "ls",
          {.name = "loss_scale",
           .values = "1, power of two",
           .meaning =
               "the engine multiplies the loss by it (`scale` of loss and router nodes) and takes "
               "it out of gradients again before anything is published, clipped or applied"})
          .In(Space::kSchedule, {0, 3})
          .In(Space::kLayerWise, {0, 3})
          .In(Space::kPipeline, {0, 3})
          .Says(LossScale),
      Real(&InstanceSpec::wrong_loss_scale, "badscale",
           {.name = "wrong_loss_scale",
            .meaning = "a loss_scale that is no power of two (illegal)",
            .told = Told::kNever}),
      Text(
          &InstanceSpec::recompute_modules, "recompute",
          {.name = "recompute_modules",
           .values = "none; comma list of norm, core_attn, moe",
           .meaning =
               "only these parts of a TransformerLayer are run again in backward and their outputs "
               "not kept, as with recompute: both norms, the attention core, the whole mixture of "
               "experts. moe is refused under the overlap"}),
      Flag(&InstanceSpec::shared_expert_overlap, "sharedoverlap",
           {.name = "moe_shared_expert_overlap",
            .meaning = "another feature that the overlap excludes: set only to be refused"}),
      Flag(&InstanceSpec::double_buffer, "doublebuffer",
           {.name = "fsdp_double_buffer",
            .meaning =
                "with optim_grads_params and optim_grads, of units that are alike: gathered "
                "parameters, the gradients that nodes add to and the gradients that are sent have "
                "two buffers each, made once and used in turn (below). With any other strategy and "
                "with units = none it means nothing. Refused under the overlap with sharding, and "
                "with reshard_after_forward = 0. (Megatron-FSDP's fsdp_double_buffer)"})
          .In({Space::kDense}),
      Flag(&InstanceSpec::backward_copies, "copies",
           {.name = "backward_param_copies",
            .meaning =
                "with optim_grads_params, parameters of units have two copies in param_dtype, each "
                "with shards, gathers and memory of its own: forward, also when it is run again, "
                "reads the one and backward the other (below). With units = none it means nothing. "
                "Refused with any other strategy, and unless reshard_after_forward is 1. "
                "(Megatron-FSDP's transpose_weight_buffer, as MXFP8 keeps weights by row and by "
                "column)"})
          .In({Space::kDense}),
      Word(&InstanceSpec::cuda_graph, "graph", {},
           {.name = "cuda_graph_impl",
            .values = "none, full_iteration, per_layer",
            .meaning = "what is captured as a graph; the suite looks at results only. per_layer is "
                       "refused under the overlap with sharding"}),
  };
}

}  // namespace shardproof::rows
