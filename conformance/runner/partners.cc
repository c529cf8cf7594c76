#include "conformance/runner/partners.h"

#include <exception>
#include <utility>

namespace shardproof {

namespace {

// Adds the relation if the changed case is one that an engine could be asked and that differs.
// Whether it did.
bool Add(std::vector<Partner>& partners, const Case& c, const std::string& requirement,
         bool sequences, const std::string& why, void (*change)(InstanceSpec& spec)) {
  Partner partner;
  partner.spec = c;
  change(partner.spec.instances.front());
  if (partner.spec == c) return false;
  try {
    Derive(partner.spec);
  } catch (const std::exception&) {
    return false;  // sizes that the exactness bound does not allow
  }
  if (!partner.spec.illegal.empty()) return false;
  if (!(partner.spec.instances.front().model == c.instances.front().model))
    return false;  // another function
  partner.requirement = requirement;
  partner.sequences = sequences;
  partner.why = why;
  partners.push_back(std::move(partner));
  return true;
}

// The schedule hides all-to-alls and changes nothing else; neither do its variants, nor a scale
// that is taken out.
void AddSchedules(std::vector<Partner>& partners, const Case& c) {
  const InstanceSpec& spec = c.instances.front();
  if (spec.overlap_moe) {
    const bool added =
        Add(partners, c, "EP-30", false, "one microbatch after the other", [](InstanceSpec& other) {
          other.overlap_moe = other.delay_wgrad = other.early_release = other.high_priority = false;
        });
    if (added) partners.back().always = true;
  }
  if (spec.delay_wgrad) {
    Add(partners, c, "EP-31", false, "with weight gradients in place",
        [](InstanceSpec& other) { other.delay_wgrad = false; });
  }
  if (spec.early_release) {
    Add(partners, c, "EP-31", false, "without the early release",
        [](InstanceSpec& other) { other.early_release = false; });
  }
  if (!spec.recompute_modules.empty()) {
    Add(partners, c, "FS-41", false, "without recompute_modules",
        [](InstanceSpec& other) { other.recompute_modules.clear(); });
  }
  if (spec.loss_scale_log2 != 0) {
    Add(partners, c, "EP-32", false, "without a loss scale",
        [](InstanceSpec& other) { other.loss_scale_log2 = 0; });
  }
}

// When parameters are gathered, how their values travel and who owns them changes no result.
void AddLayerWise(std::vector<Partner>& partners, const Case& c) {
  if (c.instances.front().strategy != ShardingStrategy::kLayerWise) return;
  const bool added =
      Add(partners, c, "LW-20", false, "with parameters gathered before the step returns",
          [](InstanceSpec& other) { other.overlap_param_gather = false; });
  if (added) partners.back().always = true;
  Add(partners, c, "FS-41", false, "with strategy no_shard", [](InstanceSpec& other) {
    other.strategy = ShardingStrategy::kNoShard;
    other.layer_wise = {};
  });
  Add(partners, c, "LW-20", false, "with another transport", [](InstanceSpec& other) {
    LayerWiseSpec& options = other.layer_wise;
    const bool to_padded = options.transport == LayerWiseTransport::kBroadcast &&
                           options.buffer == LayerWiseBuffer::kOwn;
    options.transport = options.transport == LayerWiseTransport::kAllGatherV
                            ? LayerWiseTransport::kBroadcast
                        : to_padded ? LayerWiseTransport::kPadded
                                    : LayerWiseTransport::kAllGatherV;
  });
  Add(partners, c, "LW-20", false, "with the other buffer", [](InstanceSpec& other) {
    other.layer_wise.buffer = other.layer_wise.buffer == LayerWiseBuffer::kOwn
                                  ? LayerWiseBuffer::kGrads
                                  : LayerWiseBuffer::kOwn;
  });
  Add(partners, c, "LW-20", false, "with the other layout", [](InstanceSpec& other) {
    const bool aligned = other.layer_wise.layout == LayerWiseLayout::kAligned;
    other.layer_wise = {};
    if (!aligned) other.layer_wise.layout = LayerWiseLayout::kAligned;
  });
  Add(partners, c, "LW-09", false, "with other buckets",
      [](InstanceSpec& other) { other.bucket_size = other.bucket_size == 0 ? 300 : 0; });
}

}  // namespace

std::vector<Partner> PartnersOf(const Case& c) {
  std::vector<Partner> partners;
  if (!c.illegal.empty() || c.instances.size() != 1 || MustFail(c.instances.front()))
    return partners;
  Partner timing;
  timing.spec = c;
  timing.new_timing = true;
  timing.requirement = "GE-32";
  timing.sequences = true;
  timing.why = "run again, under another timing";
  partners.push_back(std::move(timing));
  if (c.instances.front().twin != GatherTwin::kNone) {
    Add(partners, c, "PG-08", true, "without twins",
        [](InstanceSpec& spec) { spec.twin = GatherTwin::kNone; });
  }
  if (c.instances.front().grid) {
    Add(partners, c, "PG-12", false, "with an explicit collection",
        [](InstanceSpec& spec) { spec.grid = false; });
  }
  if (c.instances.front().prefetch_limit_bytes >= 0) {
    Add(partners, c, "FS-40", false, "without a prefetch limit",
        [](InstanceSpec& spec) { spec.prefetch_limit_bytes = -1; });
  }
  if (c.instances.front().strategy == ShardingStrategy::kOptimGradsParams) {
    Add(partners, c, "FS-41", false, "with strategy optim_grads", [](InstanceSpec& spec) {
      spec.strategy = ShardingStrategy::kOptimGrads;
      spec.outer_strategy = OuterStrategy::kNoShard;
    });
  }
  if (c.instances.front().strategy == ShardingStrategy::kOptimGrads) {
    Add(partners, c, "FS-18", false, "with one reduction of the sum (strategy optim)",
        [](InstanceSpec& spec) { spec.strategy = ShardingStrategy::kOptim; });
  }
  if (c.instances.front().recompute) {
    Add(partners, c, "FS-41", false, "without recompute",
        [](InstanceSpec& spec) { spec.recompute = false; });
  }
  const std::string& script = c.instances.front().script;
  if (script.find('e') != std::string::npos && script.find('t') != std::string::npos) {
    const bool added = Add(partners, c, "FS-13", false, "without its evaluations",
                           [](InstanceSpec& spec) { std::erase(spec.script, 'e'); });
    if (added) partners.back().always = true;
  }
  AddSchedules(partners, c);
  AddLayerWise(partners, c);
  return partners;
}

std::vector<Partner> PartnersToRun(const Case& c) {
  std::vector<Partner> chosen, others;
  for (Partner& partner : PartnersOf(c))
    (partner.always ? chosen : others).push_back(std::move(partner));
  if (others.empty()) return chosen;
  uint64_t h = 0xCBF29CE484222325u;
  for (const char letter : Id(c)) h = (h ^ static_cast<uint8_t>(letter)) * 0x100000001B3u;
  chosen.push_back(std::move(others[(h >> 40) % others.size()]));
  return chosen;
}

}  // namespace shardproof
