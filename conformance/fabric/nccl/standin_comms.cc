// The communicators of the stand-in: groups of the simulator.
#include <array>
#include <set>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/fabric/nccl/standin_gpu.h"

namespace shardproof {

std::string StandinGpu::NewCommId() { return "id " + std::to_string(ids_.next++); }

int32_t StandinGpu::BeginComm(const CommSpec& spec) {
  Need(spec.me >= 0 && static_cast<size_t>(spec.me) < spec.world_ranks.size() &&
           At(spec.world_ranks, spec.me) == sim_.rank(),
       "ncclCommInitRankConfig", "ncclInvalidArgument: rank " + std::to_string(spec.me));
  Comm comm;
  comm.spec = spec;
  comm.sim_group = sim_.OpenGroup("nccl " + spec.id + " " + spec.name, spec.world_ranks);
  comms_.push_back(std::move(comm));
  ++live_.comms;
  return static_cast<int32_t>(comms_.size()) - 1;
}

StandinGpu::Comm& StandinGpu::CommOf(int32_t comm, const char* call) {
  Need(comm >= 0 && static_cast<size_t>(comm) < comms_.size() &&
           At(comms_, comm).state != Comm::State::kGone,
       call, "ncclInvalidArgument: no communicator has this id");
  return At(comms_, comm);
}

// In a host call of the simulator that makes nothing.
bool StandinGpu::MeetAll(int32_t sim_group) {
  int32_t nothing = -1;
  std::string no_key;
  return sim_.CreateGroup(sim_group, {}, &nothing, &no_key) == SPF_OK;
}

bool StandinGpu::Connect(Comm& comm, int32_t from, int32_t to) {
  if (!comm.connected.insert({from, to}).second) return true;
  const std::vector<int32_t> both{At(comm.spec.world_ranks, from), At(comm.spec.world_ranks, to)};
  const std::string name = "connection on " + comm.spec.id + " " + comm.spec.name + " from " +
                           std::to_string(from) + " to " + std::to_string(to);
  return MeetAll(sim_.OpenGroup(name, both));
}

bool StandinGpu::AwaitComm(int32_t index, const GiveUp& give_up) {
  Comm& comm = CommOf(index, "ncclCommGetAsyncError");
  if (comm.state == Comm::State::kBegun) {
    if (give_up && give_up()) return false;
    if (!MeetAll(comm.sim_group)) return !PassTime(give_up);
    comm.state = Comm::State::kReady;
  }
  if (comm.launched.empty()) return true;
  std::set<std::array<int32_t, 3>> connections;  // by distance, so that no ring of hosts waits
  for (const CommOp& op : comm.launched) {
    if (op.kind != SPF_SEND && op.kind != SPF_RECV) continue;
    const auto [from, to] =
        op.kind == SPF_SEND ? std::pair(comm.spec.me, op.peer) : std::pair(op.peer, comm.spec.me);
    const auto ranks = static_cast<int32_t>(comm.spec.world_ranks.size());
    if (from != to && op.count > 0) connections.insert({(to - from + ranks) % ranks, from, to});
  }
  for (const auto& [distance, from, to] : connections) {
    if (!Connect(comm, from, to)) return !PassTime(give_up);
  }
  sim_.Communicate(std::exchange(comm.launched, {}));
  return true;
}

void StandinGpu::CheckComm(int32_t comm) { CommOf(comm, "ncclCommGetAsyncError"); }

void StandinGpu::FinalizeComm(int32_t index) {
  Comm& comm = CommOf(index, "ncclCommFinalize");
  Need(comm.state == Comm::State::kReady, "ncclCommFinalize", "ncclInvalidUsage: not ready");
  comm.state = Comm::State::kFinalized;
}

void StandinGpu::DestroyComm(int32_t index) {
  Comm& comm = CommOf(index, "ncclCommDestroy");
  Need(comm.state == Comm::State::kFinalized, "ncclCommDestroy", "ncclInvalidUsage: not finalized");
  for (const auto& [handle, of] : registrations_)
    Need(of != index, "ncclCommDestroy", "a registration is left on " + comm.spec.name);
  comm.state = Comm::State::kGone;
  --live_.comms;
}

// The kernels of this rank stay where they are, as if they had ended: whoever waits for them has
// given up.
void StandinGpu::AbortComms(const std::vector<int32_t>& comms) {
  for (const int32_t index : comms) {
    CommOf(index, "ncclCommAbort").state = Comm::State::kGone;
    --live_.comms;
  }
}

void StandinGpu::Launch(int32_t index, const std::vector<GpuCall>& calls) {
  Comm& comm = CommOf(index, "ncclGroupEnd");
  Need(comm.state == Comm::State::kReady && comm.launched.empty(), "ncclGroupEnd",
       "ncclInvalidUsage: " + comm.spec.name + " is not ready");
  static constexpr int32_t kKinds[] = {SPF_ALL_GATHER, SPF_ALL_REDUCE, SPF_REDUCE_SCATTER,
                                       SPF_BROADCAST,  SPF_SEND,       SPF_RECV};
  std::vector<CommOp> ops;
  int self_sends = 0, self_receives = 0;
  for (const GpuCall& call : calls) {
    CommOp op;
    op.kind = kKinds[static_cast<size_t>(call.kind)];
    op.dtype = call.dtype;
    op.reduction = call.reduction;
    op.group = comm.sim_group;
    op.stream = SimStreamOf(call.stream, "ncclGroupEnd");
    op.send = call.send;
    op.recv = call.recv;
    op.count = call.count;
    op.peer = call.peer;
    op.what = "call on " + comm.spec.name;
    self_sends += call.kind == GpuCall::Kind::kSend && call.peer == comm.spec.me;
    self_receives += call.kind == GpuCall::Kind::kRecv && call.peer == comm.spec.me;
    ops.push_back(std::move(op));
  }
  // src/enqueue.cc of 2.28.9: "Trying to send to self without a matching recv".
  Need(self_sends == self_receives, "ncclGroupEnd",
       "ncclInvalidUsage: a message of a rank to itself lacks its other side in the group");
  comm.launched = std::move(ops);
}

int64_t StandinGpu::Register(int32_t comm, std::byte* data, uint64_t bytes) {
  CommOf(comm, "ncclCommRegister");
  auto slab = registrable_.upper_bound(data);
  Need(slab != registrable_.begin() && (--slab, data + bytes <= slab->first + slab->second),
       "ncclCommRegister", "ncclInvalidArgument: not memory of ncclMemAlloc");
  registrations_[next_handle_] = comm;
  ++live_.registrations;
  return next_handle_++;
}

void StandinGpu::Deregister(int32_t comm, int64_t handle) {
  const auto found = registrations_.find(handle);
  Need(found != registrations_.end() && found->second == comm, "ncclCommDeregister",
       "ncclInvalidArgument: no such registration");
  registrations_.erase(found);
  --live_.registrations;
}

}  // namespace shardproof
