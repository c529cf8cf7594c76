#include "conformance/fabric/dry/dry_fabric.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/fabric/in_device_work.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof {

DryFabric::DryFabric(int32_t rank, int32_t world, const DryOptions& options)
    : rank_(rank), world_(world), options_(options), arena_(rank, options.arena_bytes) {}

int32_t DryFabric::CreateEvent() {
  recorded_.push_back(false);
  return static_cast<int32_t>(recorded_.size()) - 1;
}

void DryFabric::Record(int32_t event, int32_t) {
  if (!aborted_) recorded_[static_cast<size_t>(event)] = true;
}

bool DryFabric::Wait(int32_t event, int32_t) { return recorded_[static_cast<size_t>(event)]; }

spf_status DryFabric::SyncEvent(int32_t event, bool* recorded) {
  if (recorded != nullptr) *recorded = recorded_[static_cast<size_t>(event)];
  return Answer();
}

// Small blocks are cleared, since what lies in them may be read by the host; large ones are written
// by nobody here.
Block DryFabric::Alloc(int32_t stream, uint64_t bytes, bool pinned) {
  Block block;
  try {
    block = arena_.Alloc(stream, bytes, pinned);
  } catch (const std::runtime_error& error) {
    Fail(error.what());
    return block;
  }
  if (bytes <= options_.most_bytes_moved) std::memset(block.host, 0, bytes);
  return block;
}

void DryFabric::Free(int32_t stream, const Block& block) {
  if (block.id < 0) return;
  arena_.Free(stream, block);
  if (!block.pinned) arena_.FreeExecuted(block.id);
}

void DryFabric::Enqueue(int32_t, std::string_view, Body body) {
  if (aborted_) return;
  try {
    body();
  } catch (const EngineThrew& error) {
    threw_ = error.what();
    Fail(threw_);
  }
}

int32_t DryFabric::OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  for (size_t id = 0; id < groups_.size(); ++id) {
    // Two names for one communicator.
    if (groups_[id].key == key) return static_cast<int32_t>(id);
  }
  Group group{std::string(key), world_ranks};
  const auto at = std::find(world_ranks.begin(), world_ranks.end(), rank_);
  if (at != world_ranks.end()) group.me = static_cast<int32_t>(at - world_ranks.begin());
  groups_.push_back(std::move(group));
  return static_cast<int32_t>(groups_.size()) - 1;
}

spf_status DryFabric::CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks,
                                  int32_t* group, std::string* key) {
  *group = -1;
  key->clear();
  if (aborted_) return SPF_ABORTED;
  Group& of = At(groups_, parent);
  const int64_t call = of.creates++;
  if (world_ranks.empty()) return SPF_OK;
  *key = of.key + "/" + std::to_string(call) + "/" + std::to_string(world_ranks.front());
  *group = OpenGroup(*key, world_ranks);
  return SPF_OK;
}

void DryFabric::Communicate(std::vector<CommOp> ops) {
  if (aborted_) return;
  for (const CommOp& op : ops) Move(op, At(groups_, op.group));
}

// Who receives a message, or is not the root, cannot know what comes.
void DryFabric::Move(const CommOp& op, const Group& group) const {
  const auto members = static_cast<int32_t>(group.members.size());
  const bool one_sided = op.kind == SPF_SEND || op.kind == SPF_RECV ||
                         (op.kind == SPF_BROADCAST && op.peer != group.me);
  if (one_sided || group.me < 0) return;
  const uint64_t sent = SendBytes(op, group.me, members),
                 received = RecvBytes(op, group.me, members);
  const bool sums = op.kind == SPF_ALL_REDUCE || op.kind == SPF_REDUCE_SCATTER;
  const uint64_t work = sums ? sent * static_cast<uint64_t>(members) : std::max(sent, received);
  if (work > options_.most_bytes_moved) return;
  std::vector<std::byte> mine;
  if (sent > 0) mine.assign(op.send, op.send + sent);
  RunCollective(std::vector<MemberData>(group.members.size(), {&op, mine.data()}), group.me);
}

void DryFabric::Fail(std::string_view reason) {
  aborted_ = true;
  if (error_.empty()) error_ = reason.empty() ? "failed without a reason" : std::string(reason);
}

}  // namespace shardproof
