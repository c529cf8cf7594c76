#include "conformance/fabric/mpi/child.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

#include "conformance/fabric/process/process.h"

namespace shardproof::mpi {
namespace {

std::string Text(const std::vector<int32_t>& ranks) {
  std::string text = "{";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i ? " " : "") + std::to_string(ranks[i]);
  return text + "}";
}

bool DescribeArenaAddress(const void* context, uint64_t address, char* text, size_t size) {
  Place place;
  if (!static_cast<const Arena*>(context)->Describe(address, &place)) return false;
  const char* hint =
      place.device_view
          ? "device memory was dereferenced on the host (use host_access on pinned memory): "
          : "";
  if (place.block < 0) {
    std::snprintf(text, size, "%smemory of rank %d that belongs to no block", hint, place.rank);
  } else {
    std::snprintf(text, size, "%sbyte %llu of block %d (%llu bytes%s) of rank %d", hint,
                  static_cast<unsigned long long>(place.offset), place.block,
                  static_cast<unsigned long long>(place.bytes), place.live ? "" : ", freed",
                  place.rank);
  }
  return true;
}

}  // namespace

int32_t MpiFabric::CreateStream(std::string_view name, int) {
  int32_t stream = -1;
  machine_->Issue("stream_create",
                  [&](Device& device, Arena&) { stream = device.CreateStream(name); });
  return stream;
}

void MpiFabric::DestroyStream(int32_t stream) {
  machine_->Issue("stream_destroy", [&](Device& device, Arena&) { device.DestroyStream(stream); });
}

spf_status MpiFabric::SyncStream(int32_t stream) {
  return machine_->WaitFor("stream_sync", [&](const Device& device, std::string* about) {
    *about = "of " + device.StreamName(stream);
    return device.LastOn(stream);
  });
}

int32_t MpiFabric::CreateEvent() {
  int32_t event = -1;
  machine_->Issue("event_create", [&](Device& device, Arena&) { event = device.CreateEvent(); });
  return event;
}

void MpiFabric::DestroyEvent(int32_t event) {
  machine_->Issue("event_destroy", [&](Device& device, Arena&) { device.DestroyEvent(event); });
}

void MpiFabric::Record(int32_t event, int32_t stream) {
  if (aborted()) return;
  machine_->Issue("event_record", [&](Device& device, Arena&) { device.AddRecord(event, stream); });
}

bool MpiFabric::Wait(int32_t event, int32_t stream) {
  bool recorded = false;
  machine_->Issue("event_wait", [&](Device& device, Arena&) {
    recorded = device.LatestRecord(event) >= 0;
    if (recorded && !aborted()) device.AddWait(event, stream);
  });
  return recorded;
}

spf_status MpiFabric::SyncEvent(int32_t event, bool* recorded) {
  return machine_->WaitFor("event_sync", [&](const Device& device, std::string* about) {
    *about = "of event " + std::to_string(event);
    const EntryId record = device.LatestRecord(event);
    if (recorded) *recorded = record >= 0;
    return record;
  });
}

Block MpiFabric::Alloc(int32_t stream, uint64_t bytes, bool pinned) {
  Block block;
  try {
    machine_->Issue("mem_alloc", [&](Device& device, Arena& arena) {
      block = arena.Alloc(stream, bytes, pinned);
      if (pinned || aborted()) return Arena::Poison(block);
      device.AddLocal(stream, "alloc of block " + std::to_string(block.id),
                      [block] { Arena::Poison(block); });
    });
  } catch (const std::runtime_error& error) {
    Fail(error.what());  // nothing runs any more, so nobody uses the empty block
  }
  return block;
}

void MpiFabric::Free(int32_t stream, const Block& block) {
  if (block.id < 0) return;
  machine_->Issue("mem_free", [&](Device& device, Arena& arena) {
    arena.Free(stream, block);
    if (block.pinned) return Arena::Poison(block);
    if (aborted()) return arena.FreeExecuted(block.id);
    device.AddLocal(stream, "free of block " + std::to_string(block.id),
                    [machine = machine_, block] {
                      Arena::Poison(block);
                      machine->FreeExecuted(block.id);
                    });
  });
}

void MpiFabric::Enqueue(int32_t stream, std::string_view what, Body body) {
  if (aborted()) return;
  machine_->Issue("enqueue",
                  [&](Device& device, Arena&) { device.AddLocal(stream, what, std::move(body)); });
}

int32_t MpiFabric::OpenGroup(std::string_view key, const std::vector<int32_t>& world_ranks) {
  return machine_->OpenGroup(key, world_ranks);
}

spf_status MpiFabric::CreateGroup(int32_t parent, const std::vector<int32_t>& world_ranks,
                                  int32_t* group, std::string* key) {
  *group = -1;
  key->clear();
  HostMeeting mine{MessageKind::kCreate, parent, world_ranks};
  std::vector<std::vector<int32_t>> lists;
  int64_t call = 0;
  const spf_status status = machine_->Meet("group_create", mine, &call, &lists);
  if (status != SPF_OK || world_ranks.empty()) return status;
  const std::string parent_key = machine_->GroupKey(parent);
  std::string name =
      parent_key + "/" + std::to_string(call) + "/" + std::to_string(world_ranks.front());
  bool alike = true;
  for (const std::vector<int32_t>& list : lists) {
    if (list == world_ranks) continue;
    const bool overlap = std::any_of(list.begin(), list.end(), [&](int32_t r) {
      return std::find(world_ranks.begin(), world_ranks.end(), r) != world_ranks.end();
    });
    if (!overlap) continue;
    alike = false;
    machine_->Mismatch("group_create #" + std::to_string(call) + " on " + parent_key + ": rank " +
                       std::to_string(rank()) + " lists " + Text(world_ranks) +
                       ", another member lists " + Text(list));
  }
  if (!alike) name += "!" + std::to_string(rank());  // alone with its own list
  *group = OpenGroup(name, world_ranks);
  *key = machine_->GroupKey(*group);
  return SPF_OK;
}

spf_status MpiFabric::AwaitWorkOn(int32_t group, const char* call) {
  return machine_->WaitFor(call, [&](const Device& device, std::string* about) {
    *about = "of " + device.group(group).key + ", for its own work";
    return device.LastKernel(group);
  });
}

spf_status MpiFabric::Meet(int32_t group, const char* call, MessageKind kind) {
  std::vector<std::vector<int32_t>> lists;
  int64_t position = 0;
  return machine_->Meet(call, {kind, group, {}}, &position, &lists);
}

spf_status MpiFabric::DestroyGroup(int32_t group) {
  const spf_status status = AwaitWorkOn(group, "group_destroy");
  return status == SPF_OK ? Meet(group, "group_destroy", MessageKind::kDestroy) : status;
}

spf_status MpiFabric::RegisterBlock(int32_t group, const Block&) {
  return Meet(group, "group_register", MessageKind::kRegister);
}

spf_status MpiFabric::DeregisterBlock(int32_t group, const Block&) {
  return AwaitWorkOn(group, "group_deregister");
}

void MpiFabric::Communicate(std::vector<CommOp> ops) {
  if (aborted() || ops.empty()) return;
  machine_->Issue("communicate",
                  [&](Device& device, Arena&) { device.AddGroupCall(std::move(ops)); });
}

spf_status MpiFabric::Drain() { return machine_->Drain(); }
void MpiFabric::Fail(std::string_view reason) { machine_->Fail(reason); }

void RunChild(const MachineConfig& config, SharedMemory& shared,
              const std::function<std::string(Fabric&)>& rank_main) {
  Machine machine(config, shared);
  LeaveLastWords(shared->state.last_words, sizeof shared->state.last_words, DescribeArenaAddress,
                 &machine.arena(), &shared->state.stack);
  std::thread device([&machine] { machine.RunDevice(); }), compute;
  if (config.apart) compute = std::thread([&machine] { machine.RunCompute(); });
  MpiFabric fabric(&machine);
  std::string result;
  std::string error;
  MessageKind kind = MessageKind::kReturned;
  try {
    result = rank_main(fabric);
    fabric.Drain();  // what the engine left behind may be what other ranks wait for
  } catch (const std::exception& thrown) {
    kind = MessageKind::kException;
    error = thrown.what();
  } catch (...) {
    kind = MessageKind::kException;
    error = "an exception that is no std::exception";
  }
  std::fflush(nullptr);  // what the engine has printed
  try {
    machine.End(kind, kind == MessageKind::kReturned ? result : error);
  } catch (const std::exception& thrown) {  // the result does not fit
    std::snprintf(shared->state.last_words, sizeof shared->state.last_words, "%s", thrown.what());
    _exit(1);
  }
}

}  // namespace shardproof::mpi
