// Which engines, of which sizes, are measured on a link?
#include <stdexcept>

#include "conformance/runner/measure/link/link_overlap.h"

namespace shardproof {
namespace {

struct Sizes {
  int32_t layers, vocab, width, heads, ffn, sequence;
};

Case Sized(int ranks, const std::string& rest, const Sizes& sizes, int steps) {
  Case c = ParseId("w" + std::to_string(ranks) + "." + rest);
  InstanceSpec& spec = c.instances.front();
  ModelConfig& model = spec.model;  // set here: ids are held to the bounds of the quantised model
  model.quantised = false;
  model.layers = sizes.layers;
  model.vocab = sizes.vocab;
  model.width = sizes.width;
  model.heads = sizes.heads;
  model.ffn = sizes.ffn;
  model.sequence = sizes.sequence;
  spec.script = std::string(static_cast<size_t>(steps + 1), 't');
  return c;
}

}  // namespace

std::vector<OverlapEngine> OverlapEngines(int ranks, const OverlapOptions& options) {
  // Embedding, head and each layer have the same number of elements, so that each has as much to
  // hide behind as the next.
  const Sizes dense = options.tiny ? Sizes{2, 32, 16, 2, 24, 8} : Sizes{8, 1248, 96, 2, 288, 4};
  const Sizes experts = options.tiny ? Sizes{2, 32, 16, 2, 8, 8} : Sizes{12, 32, 32, 2, 16, 128};
  // Over all ranks, so that tokens go over the link; to all experts, so that many bytes do for what
  // attention takes, and every rank has as many. All units are gathered ahead: by default one
  // bucket group is, and tokens of the other microbatch may delay it.
  const std::string moe = "zero3.ep" + std::to_string(ranks) + ".pf1000000.k8.moe8.top8.sigmoid";
  const auto engine = [&](const std::string& name, const std::string& baseline,
                          const std::string& with, const Sizes& sizes) {
    return OverlapEngine{name, Sized(ranks, baseline, sizes, options.steps),
                         Sized(ranks, with, sizes, options.steps)};
  };
  const std::vector<OverlapEngine> all = {
      engine("FSDP", "zero3.pf0.adamw", "zero3.ogr.opg.adamw", dense),
      engine("FSDP with a twin", "zero3.twin.pf0.adamw", "zero3.twin.ogr.opg.adamw", dense),
      engine("1F1B, tokens of experts", moe, moe + ".1f1b.dw", experts),
      engine("layer-wise Adam", "lw.bs100000.adamw", "lw.bs100000.ogr.opg.adamw", dense),
      engine("layer-wise Muon", "lw.bs100000.muon", "lw.bs100000.ogr.opg.muon", dense)};
  std::vector<OverlapEngine> chosen;
  std::string names;
  for (const OverlapEngine& one : all) {
    names += "\n  " + one.name;
    if (one.name.find(options.engine) != std::string::npos) chosen.push_back(one);
  }
  if (chosen.empty())
    throw std::invalid_argument("--engine " + options.engine + " is in no name of" + names);
  return chosen;
}

}  // namespace shardproof
