// askable.h's SizeProblem. An id may come from a file that somebody sent: no number of it makes an
// axis overflow, a model fill the memory or the oracle train for an hour.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "conformance/cases/askable.h"
#include "conformance/cases/bounds.h"

namespace shardproof {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;  // of the parameters of one instance
constexpr int64_t kMostWork = int64_t{1} << 36;  // elements times tokens of a step, all entry calls

// Smaller numbers than these are refused by rules of their own; an engine may be asked for some.
constexpr int64_t kLeast = -64;

std::string RangeProblem(const InstanceSpec& spec) {
  const ModelConfig& model = spec.model;
  const std::pair<const char*, std::pair<int64_t, int64_t>> rows[] = {
      {"tp", {spec.tp, 1024}},
      {"cp", {spec.cp, 1024}},
      {"ep", {spec.ep, 1024}},
      {"pp", {spec.pp, 1024}},
      {"etp", {spec.etp, 1024}},
      {"rank_offset", {spec.offset, 16384}},
      {"rank_span", {spec.span, 16384}},
      {"num_optimizer_instances", {spec.outer, 1024}},
      {"microbatches", {spec.microbatches, 4096}},
      {"model chunks", {spec.chunks, 1024}},
      {"loss_scale, as a power of two,", {spec.loss_scale_log2, 1024}},
      {"layers", {model.layers, 1024}},
      {"vocab", {model.vocab, 1 << 20}},
      {"width", {model.width, 1 << 16}},
      {"heads", {model.heads, 1 << 16}},
      {"ffn", {model.ffn, 1 << 18}},
      {"sequence", {model.sequence, 1 << 16}},
      {"experts", {model.moe.experts, 1024}},
      {"experts that a token chooses", {model.moe.top_k, 1024}},
      {"groups of experts", {model.moe.groups, 1024}},
      {"chosen groups of experts", {model.moe.top_groups, 1024}},
  };
  for (const auto& [name, row] : rows) {
    const auto& [value, most] = row;
    if (value < kLeast || value > most)
      return std::string(name) + " = " + std::to_string(value) + ": use " + std::to_string(kLeast) +
             " to " + std::to_string(most);
  }
  return "";
}

// Of all layers, experts counted each; roughly, in double so that nothing overflows.
double Elements(const ModelConfig& model) {
  const double width = std::max(1, model.width), ffn = std::max(1, model.ffn);
  const double copies = std::max(1, model.moe.experts);
  const double layer = 4 * width * width + 3 * width * ffn * copies;
  return 2 * width * std::max(1, model.vocab) + std::max(1, model.layers) * layer;
}

std::string WorkProblem(const InstanceSpec& spec) {
  const double elements = Elements(spec.model);
  if (elements > kMostElements)
    return "a model of about " + std::to_string(static_cast<int64_t>(elements)) +
           " elements: at most " + std::to_string(kMostElements);
  // Without numbers no oracle trains: each rank has its own tokens.
  const int32_t ranks = spec.span > kMostRanksWithNumbers ? 1 : std::max(1, spec.span);
  const double tokens =
      1.0 * ranks * std::max(1, spec.microbatches) * std::max(1, spec.model.sequence);
  const double work = elements * tokens * static_cast<double>(spec.script.size());
  if (work <= kMostWork) return "";
  return std::to_string(spec.script.size()) + " entry calls of " +
         std::to_string(static_cast<int64_t>(tokens)) + " tokens with a model of about " +
         std::to_string(static_cast<int64_t>(elements)) + " elements: the product is above " +
         std::to_string(kMostWork);
}

}  // namespace

std::string SizeProblem(const InstanceSpec& spec) {
  const std::string problem = RangeProblem(spec);
  return problem.empty() ? WorkProblem(spec) : problem;
}

}  // namespace shardproof
