// plan_interpreter_for_test.h: what do the plans of all ranks do to memory?
//
// Collectives meet by their order on the communicator, messages by their order between two ranks.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/nccl/plan.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof::plan_test {

using Bytes = std::vector<std::byte>;

// The members of each group, by group id, as world ranks.
using Groups = std::vector<std::vector<int32_t>>;

inline int32_t IndexIn(const std::vector<int32_t>& members, int32_t rank) {
  return static_cast<int32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

inline std::vector<KernelPlan> PlanOf(const Groups& groups, int32_t rank,
                                      const std::vector<CommOp>& ops) {
  return PlanGroupCall(ops, [&](int32_t group) {
    const auto& members = groups[static_cast<size_t>(group)];
    return GroupPlace{static_cast<int32_t>(members.size()), IndexIn(members, rank)};
  });
}

inline CommOp AsCommOp(const GpuCall& call) {
  using Kind = GpuCall::Kind;
  static const std::map<Kind, int32_t> kKinds{{Kind::kAllGather, SPF_ALL_GATHER},
                                              {Kind::kAllReduce, SPF_ALL_REDUCE},
                                              {Kind::kReduceScatter, SPF_REDUCE_SCATTER},
                                              {Kind::kBroadcast, SPF_BROADCAST},
                                              {Kind::kSend, SPF_SEND},
                                              {Kind::kRecv, SPF_RECV}};
  CommOp op;
  op.kind = kKinds.at(call.kind);
  op.dtype = call.dtype;
  op.reduction = call.reduction;
  op.count = call.count;
  op.peer = call.peer;
  op.send = call.send;
  op.recv = call.recv;
  return op;
}

struct Range {
  const std::byte* begin = nullptr;
  uint64_t bytes = 0;
  bool Overlaps(const Range& other) const {
    return bytes > 0 && other.bytes > 0 && begin < other.begin + other.bytes &&
           other.begin < begin + bytes;
  }
};
inline Range SendRange(const GpuCall& call, int32_t me, int32_t members) {
  return {call.send, SendBytes(AsCommOp(call), me, members)};
}
inline Range RecvRange(const GpuCall& call, int32_t me, int32_t members) {
  return {call.recv, RecvBytes(AsCommOp(call), me, members)};
}

// The calls of one group run at the same time: none writes what another one touches, and a call
// that writes what it reads does so in one of the forms that NCCL's user guide (usage/inplace.rst)
// calls in place.
inline void ExpectLegal(const std::vector<GpuCall>& calls, int32_t me, int32_t members) {
  using Kind = GpuCall::Kind;
  for (const GpuCall& a : calls) {
    const Range written = RecvRange(a, me, members), read = SendRange(a, me, members);
    if (written.Overlaps(read)) {
      const uint64_t shift = a.count * DtypeBytes(a.dtype) * static_cast<uint64_t>(me);
      EXPECT_TRUE((a.kind == Kind::kAllGather && a.send == a.recv + shift) ||
                  (a.kind == Kind::kReduceScatter && a.recv == a.send + shift) ||
                  ((a.kind == Kind::kAllReduce || a.kind == Kind::kBroadcast) && a.send == a.recv));
    }
    for (const GpuCall& b : calls) {
      if (&a == &b) continue;
      EXPECT_FALSE(written.Overlaps(RecvRange(b, me, members)));
      EXPECT_FALSE(written.Overlaps(SendRange(b, me, members)));
    }
  }
}

// Memory of all ranks. Pointers of operations point into it.
class Machine {
 public:
  Machine(Groups groups, uint64_t bytes, uint64_t seed) : groups_(std::move(groups)) {
    uint64_t value = seed;
    memory_.resize(groups_[0].size());
    for (Bytes& rank : memory_) {
      rank.resize(bytes);
      for (std::byte& byte : rank) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(value >> 58);  // below 64: no special numbers in any dtype
      }
    }
  }
  std::byte* At(int32_t rank, uint64_t offset) {
    return memory_[static_cast<size_t>(rank)].data() + offset;
  }
  int32_t world() const { return static_cast<int32_t>(memory_.size()); }
  const std::vector<Bytes>& memory() const { return memory_; }

  // What fabric.h says that one group call does. by_rank: the operations of each rank, alike across
  // ranks.
  void RunOps(const std::vector<std::vector<CommOp>>& by_rank) {
    before_ = memory_;
    for (int32_t rank = 0; rank < world(); ++rank) {
      for (const CommOp& op : by_rank[static_cast<size_t>(rank)]) RunOp(by_rank, rank, op);
    }
  }

  void RunPlans(const std::vector<std::vector<CommOp>>& by_rank) {
    before_ = memory_;
    std::vector<std::vector<KernelPlan>> plans;
    for (int32_t rank = 0; rank < world(); ++rank)
      plans.push_back(PlanOf(groups_, rank, by_rank[static_cast<size_t>(rank)]));
    for (int32_t rank = 0; rank < world(); ++rank) {
      for (const KernelPlan& kernel : plans[static_cast<size_t>(rank)]) {
        for (const PlannedCopy& copy : kernel.copies) {
          EXPECT_FALSE((Range{copy.to, copy.bytes}.Overlaps(Range{copy.from, copy.bytes})));
          std::memcpy(copy.to, Old(rank, copy.from), copy.bytes);
        }
        RunKernel(plans, rank, kernel);
      }
    }
  }

 private:
  const std::byte* Old(int32_t rank, const std::byte* now) const {
    const auto index = static_cast<size_t>(rank);
    return now == nullptr ? nullptr : before_[index].data() + (now - memory_[index].data());
  }

  // op is the n-th of its rank on its group; members have theirs at the same place. Messages: the
  // n-th to that peer.
  void RunOp(const std::vector<std::vector<CommOp>>& by_rank, int32_t rank, const CommOp& op) {
    std::vector<std::vector<CommOp>> of_group(groups_.at(static_cast<size_t>(op.group)).size());
    size_t place = 0;
    for (size_t member = 0; member < of_group.size(); ++member) {
      const auto world_rank = static_cast<size_t>(groups_[static_cast<size_t>(op.group)][member]);
      for (const CommOp& other : by_rank[world_rank]) {
        if (other.group != op.group) continue;
        if (&other == &op) place = of_group[member].size();
        of_group[member].push_back(other);
      }
    }
    Meet(of_group, groups_[static_cast<size_t>(op.group)], rank, place);
  }

  void RunKernel(const std::vector<std::vector<KernelPlan>>& plans, int32_t rank,
                 const KernelPlan& kernel) {
    const auto& members = groups_.at(static_cast<size_t>(kernel.group));
    ExpectLegal(kernel.calls, IndexIn(members, rank), static_cast<int32_t>(members.size()));
    std::vector<std::vector<CommOp>> calls(members.size());
    for (size_t member = 0; member < members.size(); ++member) {
      for (const KernelPlan& theirs : plans[static_cast<size_t>(members[member])]) {
        if (theirs.group != kernel.group) continue;
        for (const GpuCall& call : theirs.calls) calls[member].push_back(AsCommOp(call));
      }
    }
    const auto mine = calls[static_cast<size_t>(IndexIn(members, rank))].size();
    for (size_t place = 0; place < mine; ++place) Meet(calls, members, rank, place);
  }

  // Carries out the operation at place of rank, among all operations of its members on one
  // communicator.
  void Meet(const std::vector<std::vector<CommOp>>& all, const std::vector<int32_t>& members,
            int32_t rank, size_t place) {
    const auto me = static_cast<size_t>(IndexIn(members, rank));
    const CommOp& op = all[me][place];
    const bool message = op.kind == SPF_SEND || op.kind == SPF_RECV;
    const auto same = [&](const CommOp& other, size_t member) {
      if (!message) return other.kind != SPF_SEND && other.kind != SPF_RECV;
      if (member == me) return other.kind == op.kind && other.peer == op.peer;
      return other.kind != op.kind && (other.kind == SPF_SEND || other.kind == SPF_RECV) &&
             other.peer == static_cast<int32_t>(me);
    };
    size_t number = 0;
    for (size_t i = 0; i < place; ++i) number += same(all[me][i], me);
    const auto find = [&](size_t member, bool partner) -> const CommOp* {
      size_t seen = 0;
      for (const CommOp& other : all[member]) {
        const bool counts = partner && member == me
                                ? other.kind == SPF_SEND && other.peer == op.peer
                                : same(other, member);
        if (counts && seen++ == number) return &other;
      }
      return nullptr;
    };
    if (op.kind == SPF_SEND) return;
    if (op.kind == SPF_RECV) {
      const CommOp* from = find(static_cast<size_t>(op.peer), true);
      ASSERT_NE(from, nullptr) << "no send for a receive";
      ASSERT_EQ(from->count, op.count);
      const int32_t sender = members[static_cast<size_t>(op.peer)];
      std::memcpy(op.recv, Old(sender, from->send), op.count * DtypeBytes(op.dtype));
      return;
    }
    std::vector<MemberData> contributions;
    std::vector<const CommOp*> theirs;
    for (size_t member = 0; member < members.size(); ++member) {
      const CommOp* part = find(member, false);
      ASSERT_NE(part, nullptr) << "a member has fewer collectives";
      EXPECT_EQ(Mismatch(op, static_cast<int32_t>(me), *part, static_cast<int32_t>(member),
                         static_cast<int32_t>(members.size())),
                "");
      contributions.push_back({part, Old(members[member], part->send)});
    }
    RunCollective(contributions, static_cast<int32_t>(me));
  }

  Groups groups_;
  std::vector<Bytes> memory_, before_;
};

}  // namespace shardproof::plan_test
