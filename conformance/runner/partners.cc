#include "conformance/runner/partners.h"

#include <exception>
#include <utility>

namespace shardproof {

namespace {

// Adds the relation if the changed case is one that an engine could be asked and that differs.
void Add(std::vector<Partner>& partners, const Case& c, const std::string& requirement, bool sequences,
         const std::string& why, void (*change)(InstanceSpec& spec)) {
  Partner partner;
  partner.spec = c;
  change(partner.spec.instances.front());
  if (partner.spec == c) return;
  try {
    Derive(partner.spec);
  } catch (const std::exception&) {
    return;  // sizes that the exactness bound does not allow
  }
  if (!partner.spec.illegal.empty()) return;
  if (!(partner.spec.instances.front().model == c.instances.front().model)) return;  // another function
  partner.requirement = requirement;
  partner.sequences = sequences;
  partner.why = why;
  partners.push_back(std::move(partner));
}

}  // namespace

std::vector<Partner> PartnersOf(const Case& c) {
  std::vector<Partner> partners;
  if (!c.illegal.empty() || c.instances.size() != 1) return partners;
  Partner schedule;
  schedule.spec = c;
  schedule.new_schedule = true;
  schedule.requirement = "GE-32";
  schedule.sequences = true;
  schedule.why = "under another schedule";
  partners.push_back(std::move(schedule));
  if (c.instances.front().twin == "given") {
    Add(partners, c, "PG-08", true, "without twins", [](InstanceSpec& spec) { spec.twin = "none"; });
  }
  if (c.instances.front().grid) {
    Add(partners, c, "PG-12", false, "with an explicit collection", [](InstanceSpec& spec) { spec.grid = false; });
  }
  if (c.instances.front().prefetch_limit_bytes >= 0) {
    Add(partners, c, "FS-40", false, "without a prefetch limit",
        [](InstanceSpec& spec) { spec.prefetch_limit_bytes = -1; });
  }
  if (c.instances.front().strategy == "optim_grads_params") {
    Add(partners, c, "FS-41", false, "with strategy optim_grads", [](InstanceSpec& spec) {
      spec.strategy = "optim_grads";
      spec.outer_strategy = "no_shard";
    });
  }
  if (c.instances.front().strategy == "optim_grads") {
    Add(partners, c, "FS-18", false, "with one reduction of the sum (strategy optim)",
        [](InstanceSpec& spec) { spec.strategy = "optim"; });
  }
  if (c.instances.front().recompute) {
    Add(partners, c, "FS-41", false, "without recompute", [](InstanceSpec& spec) { spec.recompute = false; });
  }
  return partners;
}

}  // namespace shardproof
