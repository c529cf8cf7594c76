#include "reference/groups/collection.h"

#include <algorithm>

namespace reference {
namespace {

void RequireMembers(const Communicator& given, const RankList& expected, const std::string& why) {
  if (given.members == expected) return;
  throw GroupError("group " + given.name + " must have the members " + Listed(expected) +
                   " in this order, " + why + "; given: " + Listed(given.members));
}

// Inner groups are contiguous chunks of the full group, outer groups the same position of every
// chunk.
void VerifyHybrid(const Communicator& full, const Communicator& inner, const Communicator& outer,
                  int32_t n) {
  const HybridSplit split = SplitHybrid({full.members}, n, full.name);
  const int32_t me = full.members[static_cast<size_t>(full.rank)];
  RequireMembers(inner, ListOf(split.inner, me), "this rank's chunk of " + full.name);
  RequireMembers(outer, ListOf(split.outer, me),
                 "this rank's position in every chunk of " + full.name);
}

// Runs of the group over which dense parameters are sharded.
Communicator PickPart(const GroupCollection& collection, const Communicator& reduce, int32_t n) {
  const RankLists runs = SplitForBackward({reduce.members}, n, reduce.name);
  const Communicator& part = collection.Require("dp_cp_reshard");
  const int32_t me = reduce.members[static_cast<size_t>(reduce.rank)];
  RequireMembers(part, ListOf(runs, me), "this rank's run of " + reduce.name);
  return part;
}

DataParallelGroups Pick(const GroupCollection& collection, const std::string& name,
                        const GroupDemand& demand, bool twin) {
  DataParallelGroups groups;
  const Communicator& full = collection.Require(name);
  groups.total = full.size();
  groups.reduce = full;
  if (demand.optimizer_instances > 1) {
    groups.reduce = collection.Require("intra_" + name);
    groups.outer = collection.Require("inter_" + name);
    VerifyHybrid(full, groups.reduce, groups.outer, demand.optimizer_instances);
  }
  groups.gather = groups.reduce;
  if (twin) {
    groups.gather = collection.Require(name + "_ag");
    RequireMembers(groups.gather, groups.reduce.members,
                   "those of " + groups.reduce.name + ", which reduces the same buffers");
  }
  return groups;
}

}  // namespace

Communicator Describe(const spf::Host& host, const std::string& name, spf_group group) {
  if (group == nullptr) return {name, nullptr, 0, {}};
  return {name, group, host.RankIn(group), host.Members(group)};
}

std::string Listed(const RankList& ranks) {
  std::string text;
  for (int32_t rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return "[" + text + "]";
}

const std::vector<std::string>& GroupCollection::Names() {
  static const std::vector<std::string> names = SplitAxes(
      "dp_cp-dp-cp-tp-pp-ep-expt_dp-expt_tp-intra_dp_cp-inter_dp_cp-intra_expt_dp-inter_expt_dp-"
      "dp_cp_ag-expt_dp_ag-dp_cp_reshard");
  return names;
}

void GroupCollection::Set(Communicator communicator) {
  if (Get(communicator.name))
    throw GroupError("group " + communicator.name + " was provided or created before");
  if (communicator) groups_[communicator.name] = std::move(communicator);
}

const Communicator& GroupCollection::Get(const std::string& name) const {
  static const Communicator absent;
  if (std::ranges::count(Names(), name) == 0) throw GroupError("unknown group name " + name);
  const auto found = groups_.find(name);
  return found == groups_.end() ? absent : found->second;
}

const Communicator& GroupCollection::Require(const std::string& name) const {
  const Communicator& found = Get(name);
  if (!found) throw GroupError("group " + name + " is needed and was not provided to this rank");
  return found;
}

EngineGroups PickGroups(const GroupCollection& collection, const GroupDemand& demand) {
  EngineGroups groups;
  groups.dp_cp = collection.Require("dp_cp");
  groups.dense = Pick(collection, "dp_cp", demand, demand.dense_twins);
  if (demand.reshard_after_forward > 1)
    groups.dense.part = PickPart(collection, groups.dense.reduce, demand.reshard_after_forward);
  if (demand.experts) {
    groups.expert = Pick(collection, "expt_dp", demand, demand.expert_twins);
    groups.ep = collection.Require("ep");
  }
  if (demand.pipeline) groups.pp = collection.Require("pp");
  if (demand.split_params) {
    groups.tp = collection.Require("tp");
    if (demand.experts) groups.expert_tp = collection.Require("expt_tp");
  }
  if (demand.split_samples) groups.cp = collection.Require("cp");
  return groups;
}

GroupCollection AskForGroups(spf::Host& host, const GroupDemand& demand) {
  GroupCollection collection;
  auto ask = [&](const std::string& name) {
    collection.Set(Describe(host, name, host.Group(name.c_str())));
  };
  auto ask_family = [&](const std::string& name, bool twin) {
    ask(name);
    if (demand.optimizer_instances > 1) ask("intra_" + name), ask("inter_" + name);
    if (twin) ask(name + "_ag");
  };
  ask_family("dp_cp", demand.dense_twins);
  if (demand.reshard_after_forward > 1) ask("dp_cp_reshard");
  if (demand.experts) ask_family("expt_dp", demand.expert_twins), ask("ep");
  if (demand.pipeline) ask("pp");
  if (demand.split_params) {
    ask("tp");
    if (demand.experts) ask("expt_tp");
  }
  if (demand.split_samples) ask("cp");
  return collection;
}

GroupCollection CreateGroups(spf::Host& host, const std::vector<GroupFamily>& families,
                             std::vector<spf_group>& created) {
  spf_group world = host.Group("world");
  const RankList world_members = host.Members(world);
  const int32_t me = world_members[static_cast<size_t>(host.RankIn(world))];
  GroupCollection collection;
  for (const GroupFamily& family : families) {
    spf_group group = host.CreateGroup(world, family.name.c_str(), ListOf(family.lists, me));
    if (group == nullptr) continue;
    created.push_back(group);
    collection.Set(Describe(host, family.name, group));
  }
  return collection;
}

}  // namespace reference
