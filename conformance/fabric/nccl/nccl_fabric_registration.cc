// User buffers: memory from ncclMemAlloc, registered with communicators (NCCL user guide,
// usage/bufferreg.rst).
#include <algorithm>

#include "conformance/fabric/nccl/nccl_fabric_internal.h"

namespace shardproof {

Block NcclFabric::AllocRegistrable(int32_t stream, uint64_t bytes) {
  Block block;
  Try("alloc of " + std::to_string(bytes) + " registrable bytes", [&] {
    std::vector<GpuMemory>& spare = spare_registrable_[{stream, bytes}];
    if (spare.empty()) {
      spare.push_back(pinned_.TakeRegistrable(bytes));
      registrable_[spare.back().data] = {spare.back(), bytes};
    }
    block = Begin(stream, bytes, spare.back());
    spare.pop_back();
  });
  return block;
}

spf_status NcclFabric::RegisterBlock(int32_t group, const Block& block) {
  const std::vector<int32_t> members = communicators_.members(group);
  const std::string number = std::to_string(registers_[group]++), key = communicators_.key(group);
  const std::string call = "group_register #" + number + " on " + key;
  return Blocking(call, [&](const GiveUp& give_up) {
    const std::string place = "register/" + communicators_.instance(group) + "/" + number;
    const auto sizes = AllGather(rendezvous_, place, members, std::to_string(block.bytes), give_up);
    if (!sizes) return false;
    for (size_t i = 0; i < members.size(); ++i) {
      if ((*sizes)[i] == std::to_string(block.bytes)) continue;
      mismatches_.push_back(call + ": rank " + std::to_string(rank()) + " registers " +
                            std::to_string(block.bytes) + " bytes, rank " +
                            std::to_string(members[i]) + " " + (*sizes)[i]);
    }
    if (members.size() == 1) return true;
    if (!MakeCommunicator(group, "the registration of memory")) return false;
    const int32_t comm = communicators_.Open(group, GiveUp());  // is open
    registrations_[{group, block.id}] = gpu_.Register(comm, block.host, block.bytes);
    return gpu_.AwaitComm(comm, watchdog_.Waiting(call));
  });
}

spf_status NcclFabric::AwaitWorkOn(int32_t group, const std::string& call) {
  return Blocking(call + ", for the work on it", [&](const GiveUp& give_up) {
    const int32_t event = ledger_.EventBehindKernel(ledger_.device().LastKernel(group));
    return event < 0 || gpu_.Await(event, give_up);
  });
}

spf_status NcclFabric::DeregisterBlock(int32_t group, const Block& block) {
  const std::string call =
      "group_deregister of block " + std::to_string(block.id) + " on " + communicators_.key(group);
  const spf_status status = AwaitWorkOn(group, call);
  if (status != SPF_OK) return status;
  Try(call, [&] { Deregister(group, block.id); });
  return aborted_ ? SPF_ABORTED : SPF_OK;
}

void NcclFabric::Deregister(int32_t group, int32_t block) {
  const auto found = registrations_.find({group, block});
  if (found == registrations_.end()) return;  // a group of one
  gpu_.Deregister(communicators_.Open(group, GiveUp()), found->second);
  registrations_.erase(found);
}

// Before the communicator ends; an aborted one takes its registrations with it.
void NcclFabric::DeregisterAllOf(int32_t group) {
  std::vector<int32_t> blocks;
  for (const auto& [of, handle] : registrations_) {
    if (of.first == group) blocks.push_back(of.second);
  }
  for (const int32_t block : blocks) Deregister(group, block);
}

}  // namespace shardproof
