// Are the bytes after the planned NCCL calls those that RunCollective gives? An interpreter carries out the plans of all
// ranks in memory: collectives meet by their order on the communicator, messages by their order between two ranks.
#include "conformance/fabric/nccl/plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/run_collective.h"

namespace shardproof {
namespace {

using Kind = GpuCall::Kind;
using Bytes = std::vector<std::byte>;

// The members of each group, by group id, as world ranks.
using Groups = std::vector<std::vector<int32_t>>;

int32_t IndexIn(const std::vector<int32_t>& members, int32_t rank) {
  return static_cast<int32_t>(std::find(members.begin(), members.end(), rank) - members.begin());
}

std::vector<KernelPlan> PlanOf(const Groups& groups, int32_t rank, const std::vector<CommOp>& ops) {
  return PlanGroupCall(ops, [&](int32_t group) {
    const auto& members = groups[static_cast<size_t>(group)];
    return GroupPlace{static_cast<int32_t>(members.size()), IndexIn(members, rank)};
  });
}

CommOp AsCommOp(const GpuCall& call) {
  static const std::map<Kind, int32_t> kKinds{{Kind::kAllGather, SPF_ALL_GATHER}, {Kind::kAllReduce, SPF_ALL_REDUCE},
                                              {Kind::kReduceScatter, SPF_REDUCE_SCATTER},
                                              {Kind::kBroadcast, SPF_BROADCAST}, {Kind::kSend, SPF_SEND},
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
    return bytes > 0 && other.bytes > 0 && begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};
Range SendRange(const GpuCall& call, int32_t me, int32_t members) {
  return {call.send, SendBytes(AsCommOp(call), me, members)};
}
Range RecvRange(const GpuCall& call, int32_t me, int32_t members) {
  return {call.recv, RecvBytes(AsCommOp(call), me, members)};
}

// The calls of one group run at the same time: none writes what another one touches, and a call that writes what it reads
// does so in one of the forms that NCCL's user guide (usage/inplace.rst) calls in place.
void ExpectLegal(const std::vector<GpuCall>& calls, int32_t me, int32_t members) {
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
  std::byte* At(int32_t rank, uint64_t offset) { return memory_[static_cast<size_t>(rank)].data() + offset; }
  int32_t world() const { return static_cast<int32_t>(memory_.size()); }
  const std::vector<Bytes>& memory() const { return memory_; }

  // What fabric.h says that one group call does. by_rank: the operations of each rank, alike across ranks.
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

  // op is the n-th of its rank on its group; members have theirs at the same place. Messages: the n-th to that peer.
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

  void RunKernel(const std::vector<std::vector<KernelPlan>>& plans, int32_t rank, const KernelPlan& kernel) {
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

  // Carries out the operation at place of rank, among all operations of its members on one communicator.
  void Meet(const std::vector<std::vector<CommOp>>& all, const std::vector<int32_t>& members, int32_t rank, size_t place) {
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
        const bool counts = partner && member == me ? other.kind == SPF_SEND && other.peer == op.peer : same(other, member);
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
    std::vector<Contribution> contributions;
    std::vector<const CommOp*> theirs;
    for (size_t member = 0; member < members.size(); ++member) {
      const CommOp* part = find(member, false);
      ASSERT_NE(part, nullptr) << "a member has fewer collectives";
      EXPECT_EQ(Mismatch(op, static_cast<int32_t>(me), *part, static_cast<int32_t>(member),
                         static_cast<int32_t>(members.size())), "");
      contributions.push_back({part, Old(members[member], part->send)});
    }
    RunCollective(contributions, static_cast<int32_t>(me));
  }

  Groups groups_;
  std::vector<Bytes> memory_, before_;
};

// Random operations, alike on all members of their groups; every operation has bytes of its own.
class Generator {
 public:
  Generator(Machine* machine, const Groups& groups, uint64_t seed) : machine_(machine), groups_(groups), random_(seed) {
    ops_.resize(groups[0].size());
    top_.resize(groups[0].size());
  }
  std::vector<std::vector<CommOp>> Some() {
    const uint64_t count = 1 + Below(4);
    for (uint64_t i = 0; i < count; ++i) Add();
    return ops_;
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  std::byte* Take(int32_t rank, uint64_t bytes) {
    uint64_t& top = top_[static_cast<size_t>(rank)];
    top += 16;
    std::byte* at = machine_->At(rank, top);
    top += (bytes + 7) / 8 * 8;
    return at;
  }
  void Add() {
    const auto group = static_cast<int32_t>(Below(groups_.size()));
    const auto& members = groups_[static_cast<size_t>(group)];
    const uint64_t n = members.size();
    CommOp shape;
    shape.group = group;
    shape.kind = static_cast<int32_t>(SPF_ALL_GATHER + Below(8));
    shape.dtype = static_cast<int32_t>(SPF_U8 + Below(7));
    shape.reduction = shape.dtype >= SPF_BF16 && Below(2) == 0 ? SPF_AVG : SPF_SUM;
    shape.stream = static_cast<int32_t>(Below(3));
    shape.count = Below(5) == 0 ? 0 : Below(9);
    shape.peer = static_cast<int32_t>(Below(n));
    const bool in_place = Below(2) == 0, even = Below(3) == 0;
    std::vector<std::vector<uint64_t>> counts(n, std::vector<uint64_t>(n, shape.count));  // [from][to]
    for (auto& row : counts) {
      for (uint64_t& count : row) count = even ? shape.count : Below(3) == 0 ? 0 : Below(7);
    }
    if (shape.kind == SPF_SEND || shape.kind == SPF_RECV) return AddMessage(shape, members);
    for (uint64_t me = 0; me < n; ++me) {
      CommOp op = shape;
      if (op.kind == SPF_ALL_GATHER_V) op.recv_counts = counts[0];
      if (op.kind == SPF_ALL_TO_ALL_V) {
        op.send_counts = counts[me];
        for (uint64_t from = 0; from < n; ++from) op.recv_counts.push_back(counts[from][me]);
      }
      Place(&op, members[me], static_cast<int32_t>(me), static_cast<int32_t>(n), in_place);
      ops_[static_cast<size_t>(members[me])].push_back(op);
    }
  }
  void Place(CommOp* op, int32_t rank, int32_t me, int32_t n, bool in_place) {
    const uint64_t sends = SendBytes(*op, me, n), receives = RecvBytes(*op, me, n), width = DtypeBytes(op->dtype);
    if (in_place && op->kind != SPF_ALL_TO_ALL_V) {
      std::byte* both = Take(rank, std::max(sends, receives));
      uint64_t shift = 0;
      if (op->kind == SPF_ALL_GATHER || op->kind == SPF_REDUCE_SCATTER) shift = op->count * static_cast<uint64_t>(me) * width;
      for (int32_t i = 0; op->kind == SPF_ALL_GATHER_V && i < me; ++i) shift += op->recv_counts[static_cast<size_t>(i)] * width;
      op->send = op->kind == SPF_REDUCE_SCATTER ? both : both + shift;
      op->recv = op->kind == SPF_REDUCE_SCATTER ? both + shift : both;
    } else {
      op->send = sends == 0 ? nullptr : Take(rank, sends);
      op->recv = receives == 0 ? nullptr : Take(rank, receives);
    }
  }
  void AddMessage(CommOp shape, const std::vector<int32_t>& members) {
    const auto from = static_cast<int32_t>(Below(members.size())), to = static_cast<int32_t>(Below(members.size()));
    CommOp send = shape, recv = shape;
    send.kind = SPF_SEND;
    recv.kind = SPF_RECV;
    send.peer = to;
    recv.peer = from;
    const int32_t sender = members[static_cast<size_t>(from)], receiver = members[static_cast<size_t>(to)];
    send.send = Take(sender, send.count * DtypeBytes(send.dtype));
    recv.recv = Take(receiver, recv.count * DtypeBytes(recv.dtype));
    ops_[static_cast<size_t>(sender)].push_back(send);
    ops_[static_cast<size_t>(receiver)].push_back(recv);
  }

  Machine* machine_;
  Groups groups_;
  std::mt19937_64 random_;
  std::vector<std::vector<CommOp>> ops_;
  std::vector<uint64_t> top_;
};

Groups SomeGroups(int32_t world) {
  Groups groups(1);
  for (int32_t rank = 0; rank < world; ++rank) groups[0].push_back(rank);
  groups.push_back(groups[0]);
  std::reverse(groups[1].begin(), groups[1].end());  // a member's index is not its world rank
  groups.push_back({world - 1});
  if (world > 2) groups.push_back({2, 0});
  return groups;
}

TEST(Plan, GivesTheBytesOfRunCollective) {
  int kernels = 0, calls = 0;
  for (int32_t world = 1; world <= 5; ++world) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
      const Groups groups = SomeGroups(world);
      Machine planned(groups, 1 << 13, seed), direct(groups, 1 << 13, seed);
      const auto for_plan = Generator(&planned, groups, seed).Some();
      const auto for_direct = Generator(&direct, groups, seed).Some();
      planned.RunPlans(for_plan);
      direct.RunOps(for_direct);
      ASSERT_EQ(planned.memory(), direct.memory()) << "world " << world << " seed " << seed;
      for (const KernelPlan& kernel : PlanOf(groups, 0, for_plan[0])) {
        ++kernels;
        calls += static_cast<int>(kernel.calls.size());
      }
    }
  }
  EXPECT_GT(kernels, 400);
  EXPECT_GT(calls, 800);
}

// ---- by hand

CommOp Op(int32_t kind, uint64_t send, uint64_t recv, uint64_t count) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_F32;
  op.group = 0;
  op.stream = 7;
  op.send = reinterpret_cast<const std::byte*>(send);
  op.recv = reinterpret_cast<std::byte*>(recv);
  op.count = count;
  return op;
}
std::string Text(const std::vector<GpuCall>& calls) {
  static const char* const kNames[] = {"all_gather", "all_reduce", "reduce_scatter", "broadcast", "send", "recv"};
  std::string text;
  for (const GpuCall& c : calls) {
    text += std::string(kNames[static_cast<size_t>(c.kind)]) + " " + std::to_string(reinterpret_cast<uint64_t>(c.send)) +
            " " + std::to_string(reinterpret_cast<uint64_t>(c.recv)) + " x" + std::to_string(c.count) + " peer " +
            std::to_string(c.peer) + "\n";
  }
  return text;
}
KernelPlan PlanOne(const CommOp& op, int32_t members, int32_t me) {
  const auto plans = PlanGroupCall({op}, [&](int32_t) { return GroupPlace{members, me}; });
  EXPECT_EQ(plans.size(), 1u);
  return plans.front();
}

TEST(Plan, AllGatherOfUnequalCountsIsABroadcastForEachMemberWithElements) {
  CommOp op = Op(SPF_ALL_GATHER_V, 500, 1000, 0);
  op.recv_counts = {2, 0, 3};
  EXPECT_EQ(Text(PlanOne(op, 3, 2).calls), "broadcast 1000 1000 x2 peer 0\nbroadcast 500 1008 x3 peer 2\n");
  EXPECT_EQ(Text(PlanOne(op, 3, 1).calls), "broadcast 1000 1000 x2 peer 0\nbroadcast 1008 1008 x3 peer 2\n");
  op.send = op.recv + 8;  // in place on member 2
  EXPECT_EQ(Text(PlanOne(op, 3, 2).calls), "broadcast 1000 1000 x2 peer 0\nbroadcast 1008 1008 x3 peer 2\n");
}

TEST(Plan, AllGatherOfEqualCountsIsOneCall) {
  CommOp op = Op(SPF_ALL_GATHER_V, 500, 1000, 0);
  op.recv_counts = {4, 4};
  EXPECT_EQ(Text(PlanOne(op, 2, 0).calls), "all_gather 500 1000 x4 peer -1\n");
}

TEST(Plan, AllToAllIsMessagesWithoutEmptyOnes) {
  CommOp op = Op(SPF_ALL_TO_ALL_V, 500, 1000, 0);
  op.send_counts = {1, 0, 2};
  op.recv_counts = {3, 4, 0};
  EXPECT_EQ(Text(PlanOne(op, 3, 0).calls),
            "send 500 0 x1 peer 0\nrecv 0 1000 x3 peer 0\nrecv 0 1012 x4 peer 1\nsend 504 0 x2 peer 2\n");
}

TEST(Plan, NothingIsCalledForNoElements) {
  for (const int32_t kind : {SPF_ALL_GATHER, SPF_ALL_REDUCE, SPF_REDUCE_SCATTER, SPF_BROADCAST, SPF_SEND, SPF_RECV}) {
    CommOp op = Op(kind, 0, 0, 0);
    op.peer = 0;
    const KernelPlan plan = PlanOne(op, 2, 1);
    EXPECT_TRUE(plan.calls.empty() && plan.copies.empty());
    EXPECT_EQ(plan.streams, std::vector<int32_t>{7});  // it is still a kernel on its stream
  }
}

TEST(Plan, AGroupOfOneCopiesOrStaysInPlace) {
  CommOp op = Op(SPF_REDUCE_SCATTER, 500, 1000, 4);
  op.reduction = SPF_AVG;
  KernelPlan plan = PlanOne(op, 1, 0);
  EXPECT_TRUE(plan.calls.empty());
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].to, op.recv);
  EXPECT_EQ(plan.copies[0].from, op.send);
  EXPECT_EQ(plan.copies[0].bytes, 16u);
  op.send = op.recv;
  EXPECT_TRUE(PlanOne(op, 1, 0).copies.empty());
}

TEST(Plan, AverageIsForReductionsOnly) {
  CommOp op = Op(SPF_ALL_REDUCE, 500, 500, 4);
  op.reduction = SPF_AVG;
  EXPECT_EQ(PlanOne(op, 2, 0).calls[0].reduction, SPF_AVG);
  op.kind = SPF_BROADCAST;  // a reduction field that means nothing
  op.peer = 0;
  EXPECT_EQ(PlanOne(op, 2, 0).calls[0].reduction, SPF_SUM);
}

TEST(Plan, CommunicatorsComeInOrderOfFirstUseWithAllTheirStreams) {
  CommOp a = Op(SPF_ALL_REDUCE, 500, 500, 1), b = a, c = a, empty = a;
  a.group = 5;
  b.group = 2;
  c.group = 5;
  c.stream = 9;
  empty.group = 2;
  empty.stream = 4;
  empty.count = 0;
  const auto plans = PlanGroupCall({a, b, c, empty}, [](int32_t) { return GroupPlace{2, 0}; });
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].group, 5);
  EXPECT_EQ(plans[0].streams, (std::vector<int32_t>{7, 9}));
  EXPECT_EQ(plans[0].calls.size(), 2u);
  EXPECT_EQ(plans[1].group, 2);
  EXPECT_EQ(plans[1].streams, (std::vector<int32_t>{7, 4}));
  EXPECT_EQ(plans[1].calls.size(), 1u);
}

}  // namespace
}  // namespace shardproof
