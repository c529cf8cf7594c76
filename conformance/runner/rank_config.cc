#include "conformance/runner/rank_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardproof {
namespace {

// The explicit collection as this rank sees it.
std::vector<HostConfig::NamedGroup> GroupsOf(const Case& c, size_t instance, int32_t rank,
                                             const CaseFamilies& families) {
  const InstanceSpec& spec = c.instances[instance];
  const std::string prefix = "i" + std::to_string(instance) + "/";
  std::vector<HostConfig::NamedGroup> groups;
  std::vector<int32_t> world;
  const int32_t first = spec.grid ? 0 : spec.offset, n = spec.grid ? c.world : spec.span;
  for (int32_t r = 0; r < n; ++r) world.push_back(first + r);
  groups.push_back({"world", prefix + "world", world});
  if (spec.grid) return groups;
  for (size_t f = 0; f < families.Of(instance).size(); ++f) {
    const GroupFamily& family = families.Of(instance)[f];
    const RankList* const list = families.Index(instance)[f].List(rank);
    if (list == nullptr) continue;
    const std::string number = std::to_string(list - family.lists.data());
    groups.push_back({family.name, prefix + family.name + "[" + number + "]", *list});
  }
  return groups;
}

struct Place {
  int32_t index = -1, size = 1;
};
Place PlaceIn(const CaseFamilies& families, size_t instance, std::string_view name, int32_t rank) {
  for (size_t f = 0; f < families.Of(instance).size(); ++f) {
    if (families.Of(instance)[f].name != name) continue;
    const FamilyIndex& index = families.Index(instance)[f];
    const RankList* const list = index.List(rank);
    return {index.Index(rank), list == nullptr ? 1 : static_cast<int32_t>(list->size())};
  }
  return {};
}

}  // namespace

CaseFamilies::CaseFamilies(const Case& c) {
  for (const InstanceSpec& spec : c.instances) {
    const bool grouped = c.illegal.empty() || !spec.grid;
    families_.push_back(grouped ? GroupFamilies(spec, c.world) : std::vector<GroupFamily>());
  }
  for (const std::vector<GroupFamily>& families : families_)
    index_.emplace_back(families.begin(), families.end());
}

HostConfig HostConfigOf(const Case& c, size_t instance, int32_t rank, const Model& model,
                        const CaseFamilies& families) {
  const InstanceSpec& spec = c.instances[instance];
  HostConfig config;
  config.instance = static_cast<int>(instance);
  config.knobs = Knobs(spec);
  config.model = &model;
  config.microbatches = std::max(1, spec.microbatches);
  config.device_memory_bytes =
      static_cast<uint64_t>(std::max<int64_t>(0, spec.device_memory_bytes));
  if (c.illegal.empty()) {
    const Place data = PlaceIn(families, instance, "dp_cp", rank);
    config.data_rank = data.index;
    config.data_ranks = data.index < 0 ? DpCpSize(spec) : data.size;
    const bool experts = spec.model.experts || spec.model.moe.experts > 0;
    config.model_rank.ep = experts ? std::max(0, PlaceIn(families, instance, "ep", rank).index) : 0;
    if (spec.model.tp > 1)
      config.model_rank.tp = std::max(0, PlaceIn(families, instance, "tp", rank).index);
    if (spec.model.cp > 1)
      config.model_rank.cp = std::max(0, PlaceIn(families, instance, "cp", rank).index);
    if (spec.model.pp > 1) {  // else the ranks of "pp" are replicas
      config.model_rank.pp = std::max(0, PlaceIn(families, instance, "pp", rank).index);
      config.loss_scale = std::ldexp(1.0, spec.loss_scale_log2);
    }
  }
  config.groups = GroupsOf(c, instance, rank, families);
  return config;
}

bool TakesPart(const InstanceSpec& spec, int32_t rank) {
  return spec.grid || (rank >= spec.offset && rank < spec.offset + spec.span);
}

}  // namespace shardproof
