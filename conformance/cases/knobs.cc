// case.h's Knobs, read off the knob table, and what steps are divided by.
#include <algorithm>

#include "conformance/cases/knob.h"

namespace shardproof {

std::map<std::string, std::string> Knobs(const InstanceSpec& spec, int32_t world) {
  const InstanceSpec usual;
  std::map<std::string, std::string> told;
  for (const Knob& knob : KnobTable()) {
    if (knob.told == Told::kNever || (knob.told == Told::kWithGrid && !spec.grid)) continue;
    if (knob.says != nullptr) {
      if (std::string value = knob.says(spec, world); !value.empty()) told[knob.name] = value;
    } else if (knob.text != nullptr) {
      const std::string value = knob.text(spec);
      if (knob.told == Told::kAlways || value != knob.text(usual)) told[knob.name] = value;
    }
  }
  return told;
}

int64_t TokensPerStep(const InstanceSpec& spec) {
  return int64_t{DpCpSize(spec)} * std::max(1, spec.microbatches) *
         std::max(1, spec.model.sequence);
}

int64_t GradDivisor(const InstanceSpec& spec) {
  return spec.per_token_loss ? TokensPerStep(spec)
                             : int64_t{DpCpSize(spec)} * std::max(1, spec.microbatches);
}

}  // namespace shardproof
