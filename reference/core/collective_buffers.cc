#include "reference/core/collective_buffers.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace reference {
namespace {

// Each group once: without twins the same one gathers and reduces.
std::vector<spf_group> GroupsOf(const CollectiveBuffers::Users& users) {
  std::vector<spf_group> groups;
  for (const Communicator* user : users) {
    const bool there = std::ranges::count(groups, user->handle) > 0;
    if (user->handle != nullptr && user->size() > 1 && !there) groups.push_back(user->handle);
  }
  return groups;
}

}  // namespace

spf_addr CollectiveBuffers::Take(spf_stream stream, uint64_t bytes, const Users& users,
                                 spf_label label, std::optional<int32_t> double_buffer) {
  const std::vector<spf_group> groups =
      config_.nccl_ub ? GroupsOf(users) : std::vector<spf_group>{};
  if ((!double_buffer && groups.empty()) || bytes == 0) return host_.Alloc(stream, bytes, label);
  int32_t alike = 0;
  for (Block& block : blocks_) {
    if (block.stream != stream || block.bytes != bytes || block.purpose != label.purpose ||
        block.double_buffer != double_buffer || block.groups != groups)
      continue;
    ++alike;
    if (block.taken) continue;
    block.taken = true;
    return block.address;
  }
  if (double_buffer && alike == 2) throw std::logic_error("a third unit asks for double buffers");
  label.module1 = 0;
  const spf_place place = groups.empty() ? SPF_DEVICE : SPF_REGISTRABLE;
  Block& block = blocks_.emplace_back();
  block = {host_.Alloc(stream, bytes, label, place), stream, bytes, label.purpose, double_buffer};
  for (spf_group group : groups) {
    host_.Register(group, block.address);
    block.groups.push_back(group);
  }
  return block.address;
}

void CollectiveBuffers::Give(spf_stream stream, spf_addr& address) {
  for (Block& block : blocks_) {
    if (address == 0 || block.address != address) continue;
    host_.Launch(stream, SPF_K_DISCARD, {{address, block.bytes, SPF_U8, SPF_WRITE}});
    block.taken = false;
    address = 0;
    return;
  }
  host_.Free(stream, address);
}

void CollectiveBuffers::Destroy() {
  for (Block& block : blocks_) {
    for (spf_group group : block.groups) host_.Deregister(group, block.address);
    host_.Free(block.stream, block.address);
  }
  blocks_.clear();
}

void CollectiveBuffers::GiveBack() {
  for (Block& block : std::exchange(blocks_, {})) {
    for (spf_group group : block.groups)
      host_.raw()->group_deregister(host_.raw(), group, block.address);
  }
}

}  // namespace reference
