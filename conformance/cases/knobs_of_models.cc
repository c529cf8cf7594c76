// knob_rows.h's rows about the model. Engines see it in the tables.
#include "conformance/cases/knob_row.h"
#include "conformance/cases/knob_rows.h"

namespace shardproof::rows {

std::vector<Knob> ModelKnobs() {
  return {
      Number(&ModelConfig::layers, "layers",
             {.name = "layers", .meaning = "layers", .told = Told::kNever})
          .In(Space::kDense, {2, 3})
          .In(Space::kSchedule, {2, 1, 3})
          .In(Space::kLayerWise, {2, 3}),
      Number(&ModelConfig::vocab, "vocab",
             {.name = "vocab", .meaning = "size of the vocabulary", .told = Told::kNever}),
      Number(&ModelConfig::width, "width",
             {.name = "width", .meaning = "width of the residual stream", .told = Told::kNever}),
      Number(&ModelConfig::heads, "heads",
             {.name = "heads", .meaning = "attention heads", .told = Told::kNever}),
      Number(&ModelConfig::ffn, "ffn",
             {.name = "ffn", .meaning = "width inside an MLP", .told = Told::kNever}),
      Number(&ModelConfig::sequence, "seq",
             {.name = "sequence",
              .meaning = "tokens of a sample (with context_parallel: of a rank's part)",
              .told = Told::kNever}),
  };
}

std::vector<Knob> ModelOptionKnobs() {
  return {
      Flag(&ModelConfig::tied, "tied",
           {.name = "tied",
            .meaning = "head and embedding share their weight",
            .told = Told::kNever})
          .In({Space::kDense, Space::kLayerWise}),
      Flag(&ModelConfig::biases, "bias",
           {.name = "biases", .meaning = "linear modules have biases", .told = Told::kNever})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Flag(&ModelConfig::odd_sizes, "odd",
           {.name = "odd_sizes",
            .meaning = "sizes that no number of ranks divides",
            .told = Told::kNever})
          .In({Space::kDense, Space::kLayerWise}),
      Flag(&ModelConfig::root_param, "root",
           {.name = "root_param",
            .meaning = "the root module has a parameter of its own",
            .told = Told::kNever})
          .In({Space::kDense, Space::kSchedule, Space::kLayerWise, Space::kPipeline}),
      Flag(&ModelConfig::reused, "reused",
           {.name = "reused", .meaning = "a layer runs twice", .told = Told::kNever})
          .In({Space::kDense, Space::kLayerWise}),
      Text(&ModelConfig::frozen, "frozen",
           {.name = "frozen",
            .meaning = "what is not trained: embedding, layer (the first), middle, last (layers), "
                       "norms",
            .told = Told::kNever})
          .In(Space::kDense, {"", "embedding", "layer", "norms", "middle", "last"})
          .In(Space::kSchedule, {"", "embedding", "layer", "norms", "last"})
          .In(Space::kLayerWise, {"", "embedding", "layer", "norms", "last"})
          .In(Space::kPipeline, {"", "embedding", "middle", "norms"}),
      Text(&ModelConfig::unused, "unused",
           {.name = "unused",
            .meaning =
                "a module that is left out: in a step, on a rank (with context_parallel: in a "
                "microbatch)",
            .told = Told::kNever})
          .In(Space::kDense, {"", "step", "rank"})
          .In(Space::kLayerWise, {"", "step", "rank"}),
      Flag(&ModelConfig::experts, "experts",
           {.name = "experts",
            .meaning = "each ep rank has one expert, without routing",
            .told = Told::kNever})
          .In({Space::kDense}),
      Flag(&ModelConfig::quantised, "raw",
           {.name = "quantised",
            .meaning = "the model is quantised; raw: it is not",
            .told = Told::kNever}),
      Flag(&ModelConfig::nan_loss, "nanloss",
           {.name = "nan_loss",
            .meaning = "sample 1 of step 1 has a label that is no token: its loss and its gradient "
                       "are NaN",
            .told = Told::kNever}),
  };
}

std::vector<Knob> MoeKnobs() {
  return {
      Number(&MoeConfig::experts, "moe",
             {.name = "moe.experts",
              .meaning = "experts over all ep ranks; every ep of the space divides them",
              .told = Told::kNever})
          .In(Space::kSchedule, {8, 16}),
      Number(&MoeConfig::top_k, "top",
             {.name = "top_k", .meaning = "experts that a token chooses", .told = Told::kNever})
          .In(Space::kSchedule, {2, 1}),
      Text(&MoeConfig::layers, "moelayers",
           {.name = "moe.layers",
            .meaning = "layers that have experts: all, odd, even, first, last",
            .told = Told::kNever})
          .In(Space::kSchedule, {"all", "odd", "even", "first", "last"}),
      Text(&MoeConfig::score, "score", {{"presoftmax", "presoftmax"}, {"sigmoid", "sigmoid"}},
           {.name = "score",
            .meaning = "score of a choice; softmax is taken after the choice, presoftmax before it",
            .told = Told::kNever})
          .In(Space::kSchedule, {"softmax", "presoftmax", "sigmoid"}),
      Number(&MoeConfig::groups, "groups",
             {.name = "moe.groups", .meaning = "groups of experts", .told = Told::kNever}),
      Number(&MoeConfig::top_groups, "topgroups",
             {.name = "moe.top_groups",
              .meaning = "experts are chosen within the best of groups",
              .told = Told::kNever}),
      Flag(&MoeConfig::z_loss, "zloss",
           {.name = "z_loss", .meaning = "the router has a z-loss", .told = Told::kNever})
          .In({Space::kSchedule}),
      Flag(&MoeConfig::aux_loss, "aux",
           {.name = "aux_loss",
            .meaning = "the router has a load-balancing loss",
            .told = Told::kNever})
          .In({Space::kSchedule}),
      Flag(&MoeConfig::shared, "shared",
           {.name = "shared",
            .meaning = "a shared expert beside the routed ones",
            .told = Told::kNever})
          .In({Space::kSchedule}),
      Number(&MoeConfig::capacity_percent, "cap",
             {.name = "capacity",
              .meaning = "capacity of an expert in percent; 0: dropless",
              .told = Told::kNever}),
      Flag(&MoeConfig::pad, "pad",
           {.name = "pad",
            .meaning = "every expert gets exactly its capacity",
            .told = Told::kNever}),
      Text(&MoeConfig::skew, "skew",
           {.name = "skew",
            .meaning = "whom tokens choose: everybody the same expert (one), nobody one expert "
                       "(empty) or one rank's (rank)",
            .told = Told::kNever})
          .In(Space::kSchedule, {"", "one", "empty", "rank"}),
      Flag(&ModelConfig::mtp, "mtp",
           {.name = "mtp",
            .meaning = "a layer that predicts the token after the next",
            .told = Told::kNever})
          .In({Space::kSchedule}),
  };
}

}  // namespace shardproof::rows
