#include "conformance/fabric/nccl/plan.h"

#include <algorithm>
#include <cassert>

#include "conformance/fabric/collective_math.h"

namespace shardproof {
namespace {

using Kind = GpuCall::Kind;

uint64_t At(const std::vector<uint64_t>& counts, int32_t i) {
  return static_cast<size_t>(i) < counts.size() ? counts[static_cast<size_t>(i)] : 0;
}

// Adds the calls of one operation to the plan of its communicator.
class Planner {
 public:
  Planner(KernelPlan* plan, const CommOp& op, GroupPlace place)
      : plan_(plan), op_(op), place_(place), width_(DtypeBytes(op.dtype)) {}

  void Add() {
    if (place_.members == 1 && op_.kind != SPF_SEND && op_.kind != SPF_RECV) return Copy();
    switch (op_.kind) {
      case SPF_ALL_GATHER:
        return Call(Kind::kAllGather, op_.send, op_.recv, op_.count, -1);
      case SPF_ALL_GATHER_V:
        return AllGatherV();
      case SPF_REDUCE_SCATTER:
        return Call(Kind::kReduceScatter, op_.send, op_.recv, op_.count, -1);
      case SPF_ALL_REDUCE:
        return Call(Kind::kAllReduce, op_.send, op_.recv, op_.count, -1);
      case SPF_BROADCAST:
        return Broadcast(op_.peer, op_.recv, op_.count);
      case SPF_ALL_TO_ALL_V:
        return AllToAllV();
      case SPF_SEND:
        return Call(Kind::kSend, op_.send, nullptr, op_.count, op_.peer);
      case SPF_RECV:
        return Call(Kind::kRecv, nullptr, op_.recv, op_.count, op_.peer);
      default:
        assert(false && "the host has refused other kinds");
    }
  }

 private:
  void Call(Kind kind, const std::byte* send, std::byte* recv, uint64_t count, int32_t peer) {
    if (count == 0) return;
    GpuCall call;
    call.kind = kind;
    call.dtype = op_.dtype;
    if (kind == Kind::kReduceScatter || kind == Kind::kAllReduce) call.reduction = op_.reduction;
    call.stream = op_.stream;
    call.send = send;
    call.recv = recv;
    call.count = count;
    call.peer = peer;
    plan_->calls.push_back(call);
  }

  // A pointer that only the root reads is still given on the others, where NCCL may check it: their
  // recv.
  void Broadcast(int32_t root, std::byte* recv, uint64_t count) {
    Call(Kind::kBroadcast, root == place_.me ? op_.send : recv, recv, count, root);
  }

  void AllGatherV() {
    const std::vector<uint64_t>& counts = op_.recv_counts;
    assert(counts.size() == static_cast<size_t>(place_.members));
    if (std::all_of(counts.begin(), counts.end(),
                    [&](uint64_t count) { return count == counts.front(); })) {
      return Call(Kind::kAllGather, op_.send, op_.recv, counts.front(), -1);
    }
    uint64_t offset = 0;
    for (int32_t root = 0; root < place_.members; ++root) {
      Broadcast(root, op_.recv + offset * width_, At(counts, root));
      offset += At(counts, root);
    }
  }

  void AllToAllV() {
    uint64_t sent = 0, received = 0;
    for (int32_t peer = 0; peer < place_.members; ++peer) {
      Call(Kind::kSend, op_.send + sent * width_, nullptr, At(op_.send_counts, peer), peer);
      Call(Kind::kRecv, nullptr, op_.recv + received * width_, At(op_.recv_counts, peer), peer);
      sent += At(op_.send_counts, peer);
      received += At(op_.recv_counts, peer);
    }
  }

  // Alone, every collective is a copy of what is received: an average of one is the value itself.
  void Copy() {
    uint64_t count = op_.count;
    if (op_.kind == SPF_ALL_GATHER_V) count = At(op_.recv_counts, 0);
    if (op_.kind == SPF_ALL_TO_ALL_V)
      count = std::min(At(op_.send_counts, 0), At(op_.recv_counts, 0));
    if (count == 0 || op_.send == op_.recv) return;
    plan_->copies.push_back({op_.recv, op_.send, count * width_});
  }

  KernelPlan* plan_;
  const CommOp& op_;
  GroupPlace place_;
  uint64_t width_;
};

}  // namespace

std::vector<KernelPlan> PlanGroupCall(const std::vector<CommOp>& ops,
                                      const std::function<GroupPlace(int32_t group)>& place_of) {
  std::vector<KernelPlan> plans;
  for (const CommOp& op : ops) {
    auto plan = std::find_if(plans.begin(), plans.end(),
                             [&](const KernelPlan& p) { return p.group == op.group; });
    if (plan == plans.end()) {
      plans.emplace_back();
      plan = plans.end() - 1;
      plan->group = op.group;
    }
    if (std::find(plan->streams.begin(), plan->streams.end(), op.stream) == plan->streams.end())
      plan->streams.push_back(op.stream);
    Planner(&*plan, op, place_of(op.group)).Add();
  }
  return plans;
}

}  // namespace shardproof
