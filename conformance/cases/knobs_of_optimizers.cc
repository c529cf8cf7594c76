// knob_rows.h's rows about optimizers: the update and what is published of it.
#include "conformance/cases/knob_row.h"
#include "conformance/cases/knob_rows.h"
#include "conformance/model/network.h"

namespace shardproof::rows {

std::vector<Knob> OptimizerKnobs() {
  return {
      Word(&InstanceSpec::optimizer, "optimizer",
           {{Optimizer::kAdamw, "adamw"}, {Optimizer::kMuon, "muon"}},
           {.name = "optimizer",
            .meaning = "muon: matrices inside layers are orthogonalised (below), everything else "
                       "is stepped by adamw"})
          .In(Space::kDense, {Optimizer::kSgd, Optimizer::kAdamw})
          .In(Space::kSchedule, {Optimizer::kSgd, Optimizer::kAdamw}),
      Derived({.name = "adam_beta1, adam_beta2, adam_eps",
               .values = "0.5, 0.75, 0.0078125",
               .meaning = "of adamw; no case sets them"}),
      Real(&InstanceSpec::lr, "lr",
           {.name = "lr", .values = "real", .meaning = "learning rate", .told = Told::kAlways}),
      Real(&InstanceSpec::weight_decay, "wd",
           {.name = "weight_decay",
            .values = "0, real",
            .meaning = "sgd: coupled (x = g + wd w); adamw: decoupled"})
          .In(Space::kDense, {0.0, 0.0625})
          .In(Space::kLayerWise, {0.0, 0.0625}),
      Real(&InstanceSpec::clip_grad, "clip",
           {.name = "clip_grad",
            .values = "0 (off), real",
            .meaning = "maximal global 2-norm; scale = min(1, clip_grad / (norm + 1e-6)). A "
                       "negative one is illegal"})
          .In(Space::kDense, {0.0, 0.5, 1048576.0})
          .In(Space::kLayerWise, {0.0, 0.5, 1048576.0})
          .In(Space::kPipeline, {0.0, 0.5}),
  };
}

std::vector<Knob> WatchKnobs() {
  return {
      Flag(&InstanceSpec::grad_norm, "norm",
           {.name = "grad_norm",
            .meaning = "at least one rank publishes GRAD_NORM every step (implied by clip_grad and "
                       "grad_norm_skip_threshold)"})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Flag(&InstanceSpec::zero_count, "zeros",
           {.name = "log_num_zeros_in_grad",
            .meaning = "at least one rank publishes ZERO_COUNT every step: logical elements of the "
                       "gradient, before clipping, that are zero"})
          .In({Space::kLayerWise, Space::kPipeline}),
      Real(&InstanceSpec::skip_norm, "skip",
           {.name = "grad_norm_skip_threshold",
            .values = "0 (off), real",
            .meaning =
                "a step whose global norm is above it, or no number, changes no weight, no "
                "optimizer state and no step count of adamw, on any rank, and publishes no PARAM"})
          .In(Space::kLayerWise, {0.0, 1048576.0})
          .In(Space::kPipeline, {0.0, 1048576.0}),
      Flag(&InstanceSpec::check_for_nan, "nan",
           {.name = "check_for_nan_in_grad",
            .meaning = "a step whose gradients are not finite is an error on the rank that has "
                       "them, before anything is sent"})
          .In({Space::kDense, Space::kLayerWise, Space::kPipeline}),
      Number(&InstanceSpec::device_memory_bytes, "mem",
             {.name = "device_memory_bytes",
              .values = "0 (no limit), bytes",
              .meaning = "mem_alloc of device memory answers SPF_NO_MEMORY beyond it"}),
      Text(&InstanceSpec::script, "do",
           {.name = "script",
            .meaning = "entry calls: t train_step, e eval_step, s save, l load the latest, r "
                       "destroy and create again",
            .told = Told::kNever})
          .In(Space::kDense, {"ttt", "tettt", "tsttlt", "tsrlt", "etrte"})
          .In(Space::kSchedule, {"ttt", "tetet", "tsrlt"})
          // At least three steps, and between them what values that are still to be gathered may
          // meet: the model is evaluated, saved, loaded into, created again.
          .In(Space::kLayerWise, {"tett", "tsttlt", "tsrlett", "etrtet"})
          .In(Space::kPipeline, {"tet", "ttslt", "tsrlet", "etrtt"}),
  };
}

namespace {

Knob MuonOfShards() {
  return Word(&MuonSpec::tp_mode, "tpmode", {},
              {.name = "muon_tp_mode",
               .meaning = "a matrix whose rows or columns are split over tensor-parallel ranks "
                          "(below). distributed is asked of two ranks: more add up in an order of "
                          "their own",
               .only = For::kMuon})
      .In({Space::kLayerWise});
}

Knob Heads() {
  return Derived(
      {.name = "num_attention_heads",
       .values = "integer",
       .meaning = "set with optimizer = muon and tensor_parallel: heads of attention, over "
                  "all ranks of `tp`. Rows of Q, K and V are as many groups, each a third "
                  "Q, K and V; where it is not set, one group"},
      [](const InstanceSpec& spec, int32_t) {
        return spec.optimizer == Optimizer::kMuon && spec.tensor_parallel
                   ? std::to_string(DimsOf(spec.model).heads)
                   : "";
      });
}

}  // namespace

std::vector<Knob> MuonKnobs() {
  return {
      Real(&MuonSpec::momentum, "mom",
           {.name = "muon_momentum",
            .values = "0.95; 0 to below 1",
            .meaning = "beta of the average of gradients",
            .only = For::kMuon}),
      Flag(&MuonSpec::nesterov, "nesterov",
           {.name = "muon_nesterov",
            .meaning = "the update looks ahead: the gradient is mixed in once more",
            .only = For::kMuon}),
      Word(&MuonSpec::coefficients, "coef", {},
           {.name = "muon_coefficient_type",
            .values = "quintic, simple, polar_express, cans, deepseekv4, cubic5",
            .meaning = "coefficients of Newton-Schulz steps (below). aol is refused: after the "
                       "Frobenius norm it flips the signs of singular values",
            .only = For::kMuon}),
      Number(&MuonSpec::ns_steps, "ns",
             {.name = "muon_num_ns_steps",
              .values = "5; 1 to 100",
              .meaning = "steps. quintic: a multiple of 5, cubic5: 5, anything else is refused: "
                         "parts of such a list are not near orthogonal",
              .only = For::kMuon}),
      Word(&MuonSpec::scale_mode, "scale", {},
           {.name = "muon_scale_mode",
            .meaning = "of M rows and N columns: sqrt(max(M, N)), sqrt(M / N), sqrt(max(1, M / N))",
            .only = For::kMuon}),
      Real(&MuonSpec::extra_scale, "extra",
           {.name = "muon_extra_scale_factor",
            .values = "1, real",
            .meaning = "times that",
            .only = For::kMuon}),
      Flag(&MuonSpec::split_qkv, "wholeqkv",
           {.name = "muon_split_qkv",
            .meaning = "the weight of a module named `...attention.qkv`: a third of the rows each "
                       "(of each head, with num_attention_heads) is Q, K and V, orthogonalised "
                       "and scaled by itself",
            .only = For::kMuon}),
      Word(&MuonSpec::precision, "prec", {},
           {.name = "muon_fp32_matmul_prec",
            .meaning = "dtype of X, Y, A and B below: fp32, or bf16",
            .only = For::kMuon}),
      Real(&MuonSpec::eps, "nseps",
           {.name = "muon_eps",
            .values = "0.0078125, real",
            .meaning = "added to the norm, so that a gradient of a wrong scale is seen",
            .only = For::kMuon}),
      MuonOfShards(),
      Heads(),
  };
}

std::vector<Knob> LayerWiseKnobs() {
  return {
      Word(&LayerWiseSpec::layout, "layout", {{LayerWiseLayout::kAligned, "aligned"}},
           {.name = "layer_wise_layout",
            .meaning =
                "dealt: gradients are all-reduced, and owners send their parameters in pieces of "
                "any size, padded alike to at most 256 bytes. aligned: buckets are equal shards, "
                "no parameter "
                "crosses an edge, "
                "padding has limits (KNOBS.md, Padding of aligned shards); gradients are "
                "reduce-scattered, weights all-gathered in place. Only with layer_wise, as the "
                "next two",
            .only = For::kLayerWise})
          .In({Space::kLayerWise, Space::kPipeline}),
      Word(&LayerWiseSpec::transport, "transport",
           {{LayerWiseTransport::kBroadcast, "bcast"}, {LayerWiseTransport::kPadded, "padded"}},
           {.name = "layer_wise_transport",
            .meaning = "dealt: how a bucket's values travel: one gather of unequal counts; one "
                       "broadcast per rank that owns something; one gather of equal counts, the "
                       "largest. aligned has none of these",
            .only = For::kLayerWise})
          .In({Space::kLayerWise, Space::kPipeline}),
      Word(&LayerWiseSpec::buffer, "buffer", {{LayerWiseBuffer::kGrads, "gradbuf"}},
           {.name = "layer_wise_buffer",
            .meaning = "dealt: where they arrive before they are copied into the model weights: in "
                       "a buffer of their own, given back each step, or in the storage of the "
                       "bucket's gradients, which is zero again before the first gradient. grads "
                       "is refused with padded, whose pieces do not fit there, and if an element "
                       "of the gradients is smaller than one of the parameters",
            .only = For::kLayerWise})
          .In({Space::kLayerWise, Space::kPipeline}),
      Derived({.name = "plugin_args",
               .values = "text after `lib:PATH:`",
               .meaning = "the engine's own"}),
  };
}

}  // namespace shardproof::rows
