#include "conformance/fabric/nccl/communicators.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

#include "conformance/abi/shardproof.h"

namespace shardproof {

int32_t Communicators::Add(std::string_view key, const std::vector<int32_t>& world_ranks) {
  const auto mine = std::find(world_ranks.begin(), world_ranks.end(), rendezvous_.rank());
  assert(mine != world_ranks.end());
  Group group;
  group.key = std::string(key);
  group.members = world_ranks;
  group.me = static_cast<int32_t>(mine - world_ranks.begin());
  group.instance = group.key + "#" + std::to_string(times_[group.key]++);
  groups_.push_back(std::move(group));
  return static_cast<int32_t>(groups_.size()) - 1;
}

int32_t Communicators::Find(std::string_view key, const std::vector<int32_t>& world_ranks) const {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) {
    return group.live && group.key == key && group.members == world_ranks;
  });
  return found == groups_.end() ? -1 : static_cast<int32_t>(found - groups_.begin());
}

int32_t Communicators::Open(int32_t index, const GiveUp& give_up) {
  Group& group = groups_[static_cast<size_t>(index)];
  if (group.ready) return group.comm;
  // Ends with the rank that puts it, as all keys of the fabric do.
  const std::string id_key = "id/" + group.instance + "/" + std::to_string(group.members.front());
  std::optional<std::string> id;
  if (group.me == 0) {
    id = gpu_.NewCommId();
    rendezvous_.Put(id_key, *id);
  } else {
    id = rendezvous_.Get(id_key, give_up);
    if (!id) return -1;
  }
  group.comm = gpu_.BeginComm({*id, group.key, group.members, group.me});
  group.ready = gpu_.AwaitComm(group.comm, give_up) && Connect(group, give_up);
  return group.ready ? group.comm : -1;
}

// One byte from each to each; what they hold is of no interest.
bool Communicators::Connect(const Group& group, const GiveUp& give_up) {
  const auto ranks = static_cast<int32_t>(group.members.size());
  if (ranks == 1 || ranks > connect_up_to_) return true;
  Connection& connection = connecting_.emplace_back();
  connection.stream = gpu_.CreateStream("connecting " + group.key, 0);
  std::byte* memory = gpu_.Alloc(connection.stream, 1 + static_cast<uint64_t>(ranks)).data;
  connection.memory = memory;
  std::vector<GpuCall> calls;
  for (int32_t peer = 0; peer < ranks; ++peer) {
    if (peer == group.me) continue;
    GpuCall call{.dtype = SPF_U8, .stream = connection.stream, .count = 1, .peer = peer};
    call.kind = GpuCall::Kind::kSend;
    call.send = memory + ranks;
    calls.push_back(call);
    call.kind = GpuCall::Kind::kRecv;
    call.recv = memory + peer;
    calls.push_back(call);
  }
  gpu_.Launch(group.comm, calls);
  if (!gpu_.AwaitComm(group.comm, give_up)) return false;  // NCCL may be launching it still
  GiveBack(connection);
  connecting_.pop_back();
  return true;
}

void Communicators::GiveBack(const Connection& connection) {
  if (connection.memory != nullptr) gpu_.Free(connection.stream, connection.memory);
  if (connection.stream >= 0) gpu_.DestroyStream(connection.stream);
}

bool Communicators::Close(int32_t group, const GiveUp& give_up) {
  return CloseThese({group}, give_up);
}

bool Communicators::CloseAll(const GiveUp& give_up) {
  std::vector<int32_t> live;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i].live) live.push_back(static_cast<int32_t>(i));
  }
  return CloseThese(live, give_up);
}

// All begin to end before the first is waited for: ranks need not agree on the order.
bool Communicators::CloseThese(const std::vector<int32_t>& indices, const GiveUp& give_up) {
  std::vector<Group*> open;
  for (const int32_t index : indices) {
    Group& group = groups_[static_cast<size_t>(index)];
    group.live = false;
    if (group.comm < 0) continue;
    open.push_back(&group);
    gpu_.FinalizeComm(group.comm);
  }
  for (Group* group : open) {
    if (!gpu_.AwaitComm(group->comm, give_up)) return false;
    gpu_.DestroyComm(std::exchange(group->comm, -1));
    group->ready = false;
  }
  return true;
}

void Communicators::Check() {
  for (const Group& group : groups_) {
    if (group.comm >= 0) gpu_.CheckComm(group.comm);
  }
}

void Communicators::AbortAll() {
  std::vector<int32_t> all;
  for (Group& group : groups_) {
    const int32_t comm = std::exchange(group.comm, -1);
    group.ready = false;
    if (comm >= 0) all.push_back(comm);
  }
  try {
    if (!all.empty()) gpu_.AbortComms(all);
    for (const Connection& connection : std::exchange(connecting_, {})) GiveBack(connection);
  } catch (const GpuError&) {
  }
}

}  // namespace shardproof
