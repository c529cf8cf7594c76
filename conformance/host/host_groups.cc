// Process groups: the explicit collection, and groups that the engine creates.
#include <algorithm>

#include "conformance/common/at.h"
#include "conformance/host/host_internal.h"

namespace shardproof {

namespace {
std::string Listed(const std::vector<int32_t>& ranks) {
  std::string text = "[";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? " " : "") + std::to_string(ranks[i]);
  return text + "]";
}
}  // namespace

Host::GroupHandle& Host::Group(spf_group group, const char* what) {
  RefuseUnless(
      group != nullptr,
      std::string(what) + " is NULL: this rank is no member of it, or it was not provided");
  RefuseUnless(known_groups_.contains(group),
               std::string(what) +
                   " is no handle of this host: handles of another engine or rank cannot be used",
               Breaks::kPG14);
  auto& handle = *reinterpret_cast<GroupHandle*>(group);
  RefuseUnless(
      handle.alive,
      std::string(what) + " \"" + handle.name + "\" was destroyed: use it before destroying it",
      Breaks::kGE19);
  return handle;
}

spf_group Host::AddGroup(const std::string& name, const std::string& key, int32_t fabric_id,
                         const std::vector<int32_t>& world_ranks) {
  GroupHandle& handle = groups_.emplace_back();
  handle.key = key;
  handle.fabric_id = fabric_id;
  handle.name = name;
  handle.world_ranks = world_ranks;
  const auto me = std::find(world_ranks.begin(), world_ranks.end(), fabric_.rank());
  handle.rank = static_cast<int32_t>(me - world_ranks.begin());
  handle.local_id = recorder_.AddGroup({key, name, config_.instance, world_ranks});
  auto* group = reinterpret_cast<spf_group>(&handle);
  known_groups_.insert(group);
  return group;
}

spf_group Host::FindGroup(const char* name) {
  auto at = named_.find(std::string_view(name));
  if (at == named_.end()) {
    spf_group group = nullptr;
    for (const HostConfig::NamedGroup& given : config_.groups) {
      if (given.name != name) continue;
      group = AddGroup(given.name, given.key, fabric_.OpenGroup(given.key, given.world_ranks),
                       given.world_ranks);
      break;
    }
    at = named_.emplace(name, group).first;
  }
  const int32_t local =
      at->second == nullptr ? -1 : reinterpret_cast<const GroupHandle*>(at->second)->local_id;
  Add(EventKind::kGroupAsk).group = local;
  recorder_.SetText(name);
  return at->second;
}

spf_status Host::CreateGroup(spf_group parent, const char* name, int32_t n, const int32_t* ranks,
                             spf_group* out) {
  const GroupHandle& from = Group(parent, "parent");
  RefuseTooMany(groups_.size(), "groups");
  const auto size = static_cast<int32_t>(from.world_ranks.size());
  RefuseUnless(n >= 0 && n <= size, "n is " + std::to_string(n) + ", parent \"" + from.name +
                                        "\" has " + std::to_string(size) + " members");
  RefuseUnless(n == 0 || ranks != nullptr, "ranks is NULL");
  std::vector<int32_t> local(ranks, ranks + n), members;
  for (const int32_t rank : local) {
    RefuseUnless(rank >= 0 && rank < size, "rank " + std::to_string(rank) +
                                               " is no rank of parent \"" + from.name + "\" (0.." +
                                               std::to_string(size - 1) + ")");
    const int32_t world_rank = At(from.world_ranks, rank);
    RefuseUnless(std::find(members.begin(), members.end(), world_rank) == members.end(),
                 "rank " + std::to_string(rank) + " stands twice in " + Listed(local) +
                     ": name each member once");
    members.push_back(world_rank);
  }
  RefuseUnless(n == 0 || std::find(local.begin(), local.end(), from.rank) != local.end(),
               "own rank " + std::to_string(from.rank) + " is missing in " + Listed(local) +
                   ": pass the list that contains this rank, or n = 0 to join none");
  {
    Event& event = Add(EventKind::kGroupCreate);
    event.parent = from.local_id;
    event.group = -1;
    recorder_.SetText(name);
    const std::vector<int64_t> numbers(local.begin(), local.end());
    recorder_.AddNumbers(&Event::ranks, numbers.data(), numbers.size());
    if (n > 0) event.group = recorder_.next_group();
  }
  int32_t id = -1;
  std::string key;
  const spf_status status = fabric_.CreateGroup(from.fabric_id, members, &id, &key);
  *out = nullptr;
  if (n > 0) {
    if (key.empty()) key = from.key + "/unfinished/" + Listed(local);  // the run ended meanwhile
    spf_group group = AddGroup(name, key, id, members);
    if (status == SPF_OK) *out = group;
  }
  return status;
}

spf_status Host::GroupInfoOf(spf_group group, int32_t* rank, int32_t* n,
                             const int32_t** world_ranks) {
  const GroupHandle& handle = Group(group, "group");
  if (rank != nullptr) *rank = handle.rank;
  if (n != nullptr) *n = static_cast<int32_t>(handle.world_ranks.size());
  if (world_ranks != nullptr) *world_ranks = handle.world_ranks.data();
  return SPF_OK;
}

spf_status Host::DestroyGroup(spf_group group) {
  GroupHandle& handle = Group(group, "group");
  for (const int32_t block : handle.registered) {
    throw Refusal("block " + std::to_string(block) + " is registered with group \"" + handle.name +
                      "\": group_deregister it first",
                  Breaks::kGE17);
  }
  for (const auto& [name, named] : named_) {
    RefuseUnless(
        named != group,
        "group \"" + name + "\" belongs to the collection: destroy only what group_create made");
  }
  Add(EventKind::kGroupDestroy).group = handle.local_id;
  handle.alive = false;
  return fabric_.DestroyGroup(handle.fabric_id);
}

spf_status Host::RegisterBlock(spf_group group, spf_addr address) {
  GroupHandle& handle = Group(group, "group");
  const Block block = memory_.StartingAt(address, "block");
  const std::string name = "block " + std::to_string(block.id);
  RefuseUnless(memory_.PlaceOf(address) == SPF_REGISTRABLE,
               name + " cannot be registered: allocate it with place SPF_REGISTRABLE");
  RefuseUnless(!handle.registered.contains(block.id),
               name + " is registered with group \"" + handle.name + "\" already: register it once",
               Breaks::kGE17);
  Event& event = Add(EventKind::kGroupRegister);
  event.group = handle.local_id;
  event.alloc = block.id;
  event.count = static_cast<int64_t>(block.bytes);
  handle.registered.insert(block.id);
  return fabric_.RegisterBlock(handle.fabric_id, block);
}

spf_status Host::DeregisterBlock(spf_group group, spf_addr address) {
  GroupHandle& handle = Group(group, "group");
  const Block block = memory_.StartingAt(address, "block");
  RefuseUnless(handle.registered.erase(block.id) > 0, "block " + std::to_string(block.id) +
                                                          " is not registered with group \"" +
                                                          handle.name + "\"");
  Event& event = Add(EventKind::kGroupDeregister);
  event.group = handle.local_id;
  event.alloc = block.id;
  return fabric_.DeregisterBlock(handle.fabric_id, block);
}

}  // namespace shardproof
