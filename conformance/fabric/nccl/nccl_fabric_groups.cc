// Groups: how ranks agree on them, and how they end.
#include <algorithm>
#include <sstream>

#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {
namespace {

std::string ToText(const std::vector<int32_t>& ranks) {
  std::string text;
  for (const int32_t rank : ranks) text += (text.empty() ? "" : " ") + std::to_string(rank);
  return text;
}

}  // namespace

int32_t NcclFabric::OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  const int32_t known = communicators_.Find(key, world_ranks);
  if (known >= 0) return known;  // two names for one communicator
  const int32_t group = communicators_.Add(key, world_ranks);
  ledger_.AddGroup(key, world_ranks);
  if (options_.communicators_at_open && world_ranks.size() > 1) {
    Try("opening group " + std::string(key), [&] {
      if (!MakeCommunicator(group, "opening it")) StopByWatchdog();
    });
  }
  return group;
}

bool NcclFabric::MakeCommunicator(int32_t group, const std::string& what) {
  if (communicators_.open(group)) return true;
  const std::string who =
      communicators_.key(group) + " with ranks " + ToText(communicators_.members(group));
  return communicators_.Open(
             group, watchdog_.Waiting("the making of communicator " + who + ", for " + what)) >= 0;
}

spf_status NcclFabric::CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks,
                                   int32_t* group, std::string* key) {
  *group = -1;
  key->clear();
  const std::vector<int32_t> members = communicators_.members(parent);
  const std::string call = std::to_string(creates_[parent]++), on = communicators_.key(parent);
  std::vector<std::string> lists;
  const spf_status status =
      Blocking("group_create #" + call + " on " + on, [&](const GiveUp& give_up) {
        const auto all =
            AllGather(rendezvous_, "create/" + communicators_.instance(parent) + "/" + call,
                      members, ToText(world_ranks), give_up);
        if (all) lists = *all;
        return all.has_value();
      });
  if (status != SPF_OK || world_ranks.empty()) return status;
  // The members of my list must have given the same one; otherwise I am alone with it, and what I
  // do with it will wait.
  std::string name = on + "/" + call + "/" + std::to_string(world_ranks.front());
  const std::string mine = ToText(world_ranks);
  for (size_t i = 0; i < lists.size(); ++i) {
    const bool listed =
        std::find(world_ranks.begin(), world_ranks.end(), members[i]) != world_ranks.end();
    if (!listed || lists[i] == mine) continue;
    mismatches_.push_back("group_create #" + call + " on " + on + ": rank " +
                          std::to_string(rank()) + " lists [" + mine + "], rank " +
                          std::to_string(members[i]) + " lists [" + lists[i] + "]");
    if (name.find('!') == std::string::npos) name += "!" + std::to_string(rank());
  }
  *group = OpenGroup(name, world_ranks);
  *key = name;
  return aborted_ ? SPF_ABORTED : SPF_OK;
}

spf_status NcclFabric::DestroyGroup(int32_t group) {
  const std::string name = "group_destroy of " + communicators_.key(group);
  const spf_status status = AwaitWorkOn(group, name);
  if (status != SPF_OK) return status;
  return Blocking(name, [&](const GiveUp& give_up) {
    const auto all = AllGather(rendezvous_, "destroy/" + communicators_.instance(group) + "/0",
                               communicators_.members(group), "", give_up);
    if (!all) return false;
    DeregisterAllOf(group);
    return communicators_.Close(group, give_up);
  });
}

}  // namespace shardproof
