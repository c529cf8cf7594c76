#include "conformance/cases/support/reshard_parts.h"

#include <algorithm>
#include <array>
#include <exception>
#include <numeric>

namespace shardproof {
namespace {

// The case with so many samples and tokens in a step.
Case Leg(Case c, int64_t samples, const char* script, int32_t sequence) {
  InstanceSpec& spec = c.instances.front();
  spec.microbatches = static_cast<int32_t>(samples / DpCpSize(spec));
  spec.script = script;
  spec.model.sequence = sequence;
  return c;
}

}  // namespace

bool MayChangeBetweenLegs(const std::string& factor) {
  static constexpr std::array kNames = {"world",
                                        "place",
                                        "tp",
                                        "cp",
                                        "pp",
                                        "ep",
                                        "order",
                                        "num_optimizer_instances",
                                        "strategy",
                                        "outer_strategy",
                                        "groups",
                                        "create_all_gather_group",
                                        "units",
                                        "bucket_size",
                                        "nccl_ub",
                                        "init_device",
                                        "overlap_moe_expert_parallel_comm",
                                        "microbatches",
                                        "layer_wise_layout",
                                        "layer_wise_transport",
                                        "layer_wise_buffer"};
  return std::find(kNames.begin(), kNames.end(), factor) != kNames.end();
}

bool Follows(const std::string& factor) { return factor == "order" || factor == "microbatches"; }

bool IsTrained(const std::string& factor) {
  static constexpr std::array kNames = {"optimizer",
                                        "param_dtype",
                                        "main_grads_dtype",
                                        "tied",
                                        "biases",
                                        "odd_sizes",
                                        "frozen",
                                        "root_param",
                                        "experts",
                                        "moe.experts",
                                        "shared",
                                        "layers",
                                        "reused",
                                        "unused",
                                        "moe.layers",
                                        "mtp",
                                        "weight_decay",
                                        "tensor_parallel",
                                        "sequence_parallel",
                                        "vocab_parallel",
                                        "context_parallel"};
  return std::find(kNames.begin(), kNames.end(), factor) != kNames.end();
}

std::optional<Case> ThereAndBack(const Case& one, const Case& other, bool any_microbatches,
                                 size_t number) {
  static constexpr std::array<std::array<const char*, 3>, 3> kScripts = {
      {{"tts", "lts", "lt"}, {"ts", "lets", "ltt"}, {"tsts", "lstts", "let"}}};
  const auto& scripts = kScripts[number % kScripts.size()];
  const int64_t of_one = DpCpSize(one.instances.front());
  const int64_t of_other = DpCpSize(other.instances.front());
  if (of_one != of_other && !any_microbatches) return std::nullopt;
  const int64_t samples = std::lcm(of_one, of_other);
  for (const int32_t sequence : {8, 4, 2, 1}) {
    Case c = Leg(one, samples, scripts[2], sequence);
    c.before = {Leg(one, samples, scripts[0], sequence), Leg(other, samples, scripts[1], sequence)};
    try {
      Derive(c);
      if (c.illegal.empty()) return c;
    } catch (const std::exception&) {  // too many tokens to be exact, or another model after all
    }
  }
  return std::nullopt;
}

}  // namespace shardproof
