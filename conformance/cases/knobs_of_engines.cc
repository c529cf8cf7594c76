// knob_rows.h's rows about a step: what is communicated, and when.
#include "conformance/cases/knob_row.h"
#include "conformance/cases/knob_rows.h"

namespace shardproof::rows {

namespace {

Knob Schedule() {
  return Word(&InstanceSpec::schedule, "schedule",
              {{CommSchedule::kOneCommunicator, "onecomm"}, {CommSchedule::kOneQueue, "onequeue"}},
              {.name = "schedule",
               .meaning =
                   "who owns the order of collectives. communicators: each communicator its own; "
                   "kernels of several may wait for their peers at once. one_communicator: the "
                   "engine; it chains collectives and messages of all groups by streams and "
                   "events, so that of any two of a device one is over before the other can start "
                   "(NCCL's rule for communicators that are used in turn). one_queue: the host; "
                   "all streams of a device share one hardware queue "
                   "(CUDA_DEVICE_MAX_CONNECTIONS=1), what is issued first starts first, and no "
                   "timing may hang; on sim the case runs so. Refused: one_communicator with "
                   "create_all_gather_group = 1, one_queue with high_priority_a2a_comm_stream = 1 "
                   "under the overlap"})
      .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline});
}

Knob InitOf() {
  return Word(&InstanceSpec::init_device, "init", {{InitDevice::kMeta, "meta"}},
              {.name = "init_device",
               .meaning =
                   "where a new engine has its parameters from. host: create asks the host for "
                   "their initial values (`init`) and publishes them. meta: create makes room for "
                   "what a rank keeps, and asks for no value and publishes none. The first call "
                   "after it brings values: a load those of the checkpoint, and it asks for no "
                   "initial ones; any other call asks for the initial values before it does "
                   "anything else. All that follows from values (main weights, casts, what is "
                   "gathered and kept) is made then. `init` in create, or in such a load, is "
                   "refused. (PyTorch's meta device, Megatron-FSDP's init_model_with_meta_device)"})
      .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline});
}

}  // namespace

std::vector<Knob> StepKnobs() {
  return {
      Number(&InstanceSpec::microbatches, "k",
             {.name = "microbatches",
              .values = "integer >= 1",
              .meaning = "microbatches per rank and train_step",
              .told = Told::kAlways})
          .In(Space::kDense, {1, 2, 3})
          .In(Space::kSchedule, {2, 1, 3, 5})
          .In(Space::kLayerWise, {1, 2, 4})
          .In(Space::kPipeline, {4, 2, 3}),
      Number(&InstanceSpec::loss_chunks, "loss",
             {.name = "loss_chunks",
              .values = "1, n",
              .meaning =
                  "head and loss run for one n-th of the tokens of a microbatch at a time, forward "
                  "and backward before the next, so that logits of one chunk are in memory, and at "
                  "most those of one more. The "
                  "program ends in n pairs of nodes, which add to one loss, to the gradient of "
                  "what the head reads and to that of its weight; the rest of the backward runs "
                  "once. The head's gradients are reduced after the last chunk. (ChunkedCELoss of "
                  "torchtitan.) Refused under the overlap"})
          .In(Space::kDense, {1, 4})
          .In(Space::kLayerWise, {1, 2}),
      Flag(
          &InstanceSpec::overlap_grad_reduce, "ogr",
          {.name = "overlap_grad_reduce",
           .meaning =
               "reductions start as gradients become ready (implied by strategies that need it): a "
               "unit's when its backward has ended. Those of parameters outside units may wait for "
               "the end of the whole backward, so with units = none nothing need overlap"})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Flag(&InstanceSpec::overlap_param_gather, "opg",
           {.name = "overlap_param_gather",
            .meaning =
                "gathers are launched ahead (implied by strategies that need it). layer_wise: "
                "without it, parameters are gathered before train_step (and load) return; with it, "
                "bucket by bucket during the next call's forward, none before that call"})
          .In({Space::kDense, Space::kLayerWise, Space::kPipeline}),
      Schedule(),
      Flag(&InstanceSpec::average_in_collective, "avg",
           {.name = "average_in_collective",
            .meaning =
                "every collective that reduces gradients over several ranks averages (SPF_AVG)"})
          .In({Space::kDense, Space::kLayerWise}),
      Flag(&InstanceSpec::per_token_loss, "pertoken",
           {.name = "calculate_per_token_loss",
            .meaning = "the gradient is divided by the tokens of the step instead of by dp_cp * "
                       "microbatches"})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Derived({.name = "tokens_per_step",
               .values = "integer",
               .meaning = "set with calculate_per_token_loss: tokens of one train_step over all "
                          "ranks and microbatches"},
              [](const InstanceSpec& spec, int32_t) {
                return spec.per_token_loss ? std::to_string(TokensPerStep(spec)) : "";
              }),
  };
}

std::vector<Knob> DtypeKnobs() {
  return {
      Word(&InstanceSpec::param_dtype, "param", {{KnobDtype::kBf16, "bf16"}},
           {.name = "param_dtype",
            .meaning = "dtype in which nodes read parameters; main weights are fp32"})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Word(&InstanceSpec::grad_comm_dtype, "wire", {{KnobDtype::kBf16, "wire16"}},
           {.name = "grad_comm_dtype", .meaning = "dtype of gradients on the wire"})
          .In({Space::kDense, Space::kLayerWise}),
      Word(&InstanceSpec::main_grads_dtype, "acc", {{KnobDtype::kBf16, "acc16"}},
           {.name = "main_grads_dtype", .meaning = "dtype in which gradients are accumulated"})
          .In({Space::kDense, Space::kLayerWise}),
  };
}

std::vector<Knob> MemoryKnobs() {
  return {
      Number(&InstanceSpec::bucket_size, "bs",
             {.name = "bucket_size",
              .values = "0 (no cut), elements",
              .meaning = "parameters outside units are cut into buckets once they hold this many "
                         "elements; layer_wise has no units and cuts all that are trainable; "
                         "aligned buckets may take in more. A reduction carries one bucket at "
                         "most: without one of its parameters it has fewer elements than this"})
          .In(Space::kDense, {0, 300})
          // one bucket; one parameter each; several of each
          .In(Space::kLayerWise, {0, 1, 1000})
          .In(Space::kPipeline, {0, 1, 1000}),
      Number(&InstanceSpec::prefetch_limit_bytes, "pf",
             {.name = "prefetch_limit_bytes",
              .values = "one unit ahead; bytes",
              .meaning = "upper bound of bytes gathered ahead of need; 0: nothing is gathered "
                         "ahead. layer_wise: means nothing. Under the 1F1B schedule the default is "
                         "one bucket group ahead (a unit's dense parameters, or its experts; with "
                         "fine_grained_param_gather = 0 a unit)"})
          // 12000: a layer and the embedding, and not two layers (with bf16: two and not three)
          .In(Space::kDense, {-1, 0, 12000, 1 << 20}),
      Text(&InstanceSpec::units, "units",
           {.name = "units",
            .values = "TransformerLayer",
            .meaning =
                "comma-separated module types that are FSDP units; \"none\" for no units: sharded "
                "parameters then stay gathered from a microbatch's forward to its backward"})
          .In(Space::kDense, {"TransformerLayer", "", "TransformerLayer,Embedding"})
          .In(Space::kSchedule, {"TransformerLayer", "", "TransformerLayer,Embedding"})
          .In(Space::kPipeline, {"TransformerLayer", ""}),
      Flag(
          &InstanceSpec::recompute, "recompute",
          {.name = "recompute",
           .meaning =
               "forward of each TransformerLayer is run again in backward; its activations "
               "are not kept: backward reads what the second run has written, flagged "
               "SPF_COMPUTE_RECOMPUTE. What other layers read may stay. Refused under the overlap"})
          .In({Space::kDense}),
      Flag(&InstanceSpec::nccl_ub, "ub",
           {.name = "nccl_ub",
            .meaning =
                "user buffers: parameter gathers and gradient reductions over several ranks send "
                "from and receive into blocks of place SPF_REGISTRABLE that are registered with "
                "their group (`group_register`). Registered once and kept; what is given back is "
                "marked with SPF_K_DISCARD. Refused under the overlap: such memory persists, "
                "Megatron-FSDP keeps it as double buffers, and the overlap excludes those. Refused "
                "with layer_wise: what its owners send has no common size and offset"})
          .In({Space::kDense}),
      InitOf(),
  };
}

}  // namespace shardproof::rows
