// Are the bytes after the planned NCCL calls those that RunCollective gives?
#include "conformance/fabric/nccl/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/fabric/nccl/plan_interpreter_for_test.h"

namespace shardproof::plan_test {
namespace {

// Random operations, alike on all members of their groups; every operation has bytes of its own.
class Generator {
 public:
  Generator(Machine* machine, const Groups& groups, uint64_t seed)
      : machine_(machine), groups_(groups), random_(seed) {
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
    uint64_t& top = At(top_, rank);
    top += 16;
    std::byte* at = machine_->At(rank, top);
    top += (bytes + 7) / 8 * 8;
    return at;
  }
  void Add() {
    const auto group = static_cast<int32_t>(Below(groups_.size()));
    const auto& members = At(groups_, group);
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
    std::vector<std::vector<uint64_t>> counts(n,
                                              std::vector<uint64_t>(n, shape.count));  // [from][to]
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
      At(ops_, members[me]).push_back(op);
    }
  }
  void Place(CommOp* op, int32_t rank, int32_t me, int32_t n, bool in_place) {
    const uint64_t sends = SendBytes(*op, me, n), receives = RecvBytes(*op, me, n),
                   width = DtypeBytes(op->dtype);
    if (in_place && op->kind != SPF_ALL_TO_ALL_V) {
      std::byte* both = Take(rank, std::max(sends, receives));
      uint64_t shift = 0;
      if (op->kind == SPF_ALL_GATHER || op->kind == SPF_REDUCE_SCATTER)
        shift = op->count * static_cast<uint64_t>(me) * width;
      for (int32_t i = 0; op->kind == SPF_ALL_GATHER_V && i < me; ++i)
        shift += At(op->recv_counts, i) * width;
      op->send = op->kind == SPF_REDUCE_SCATTER ? both : both + shift;
      op->recv = op->kind == SPF_REDUCE_SCATTER ? both + shift : both;
    } else {
      op->send = sends == 0 ? nullptr : Take(rank, sends);
      op->recv = receives == 0 ? nullptr : Take(rank, receives);
    }
  }
  void AddMessage(CommOp shape, const std::vector<int32_t>& members) {
    const auto from = static_cast<int32_t>(Below(members.size())),
               to = static_cast<int32_t>(Below(members.size()));
    CommOp send = shape, recv = shape;
    send.kind = SPF_SEND;
    recv.kind = SPF_RECV;
    send.peer = to;
    recv.peer = from;
    const int32_t sender = At(members, from), receiver = At(members, to);
    send.send = Take(sender, send.count * DtypeBytes(send.dtype));
    recv.recv = Take(receiver, recv.count * DtypeBytes(recv.dtype));
    At(ops_, sender).push_back(send);
    At(ops_, receiver).push_back(recv);
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
  static const char* const kNames[] = {"all_gather", "all_reduce", "reduce_scatter",
                                       "broadcast",  "send",       "recv"};
  std::string text;
  for (const GpuCall& c : calls) {
    text += std::string(kNames[static_cast<size_t>(c.kind)]) + " " +
            std::to_string(reinterpret_cast<uint64_t>(c.send)) + " " +
            std::to_string(reinterpret_cast<uint64_t>(c.recv)) + " x" + std::to_string(c.count) +
            " peer " + std::to_string(c.peer) + "\n";
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
  EXPECT_EQ(Text(PlanOne(op, 3, 2).calls),
            "broadcast 1000 1000 x2 peer 0\nbroadcast 500 1008 x3 peer 2\n");
  EXPECT_EQ(Text(PlanOne(op, 3, 1).calls),
            "broadcast 1000 1000 x2 peer 0\nbroadcast 1008 1008 x3 peer 2\n");
  op.send = op.recv + 8;  // in place on member 2
  EXPECT_EQ(Text(PlanOne(op, 3, 2).calls),
            "broadcast 1000 1000 x2 peer 0\nbroadcast 1008 1008 x3 peer 2\n");
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
  EXPECT_EQ(
      Text(PlanOne(op, 3, 0).calls),
      "send 500 0 x1 peer 0\nrecv 0 1000 x3 peer 0\nrecv 0 1012 x4 peer 1\nsend 504 0 x2 peer 2\n");
}

TEST(Plan, NothingIsCalledForNoElements) {
  for (const int32_t kind :
       {SPF_ALL_GATHER, SPF_ALL_REDUCE, SPF_REDUCE_SCATTER, SPF_BROADCAST, SPF_SEND, SPF_RECV}) {
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
}  // namespace shardproof::plan_test
