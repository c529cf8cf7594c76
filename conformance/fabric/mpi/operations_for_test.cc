// Operations, groups and order, against closed forms.
#include "conformance/fabric/mpi/suite_for_test.h"

namespace shardproof::mpi_test {
namespace {

void Collectives(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) -> std::string {
    const int32_t stream = f.CreateStream("s", 0);
    const int32_t group = f.OpenGroup("world", Everybody(f));
    for (const int kind : {SPF_ALL_GATHER, SPF_ALL_GATHER_V, SPF_REDUCE_SCATTER, SPF_ALL_REDUCE,
                           SPF_BROADCAST, SPF_ALL_TO_ALL_V}) {
      for (const int dtype : {SPF_U8, SPF_I32, SPF_I64, SPF_BF16, SPF_F16, SPF_F32, SPF_F64}) {
        for (const uint64_t count : {0, 1, 7, 1000}) {
          const std::string wrong =
              TryCollective(f, stream, group, f.rank(), f.world(), {kind, dtype, count});
          if (!wrong.empty()) return wrong;
        }
      }
    }
    const std::string wrong =
        TryCollective(f, stream, group, f.rank(), f.world(), {SPF_ALL_GATHER, SPF_F32, 300000});
    return wrong.empty() ? "ok" : wrong;
  });
  suite.ExpectOk(end, "all collectives, dtypes and counts");
}

void PermutedGroups(Suite& suite) {
  const int n = suite.world->size();
  suite.ExpectOk(
      suite.Run(
          n,
          [](Fabric& f) -> std::string {
            const int32_t stream = f.CreateStream("s", 0);
            std::vector<int32_t> ranks;  // backwards
            for (int r = f.world() - 1; r >= 0; --r) ranks.push_back(r);
            const int32_t group = f.OpenGroup("backwards", ranks);
            const std::string wrong = TryCollective(f, stream, group, f.world() - 1 - f.rank(),
                                                    f.world(), {SPF_REDUCE_SCATTER, SPF_F32, 33});
            if (!wrong.empty()) return wrong;
            // Two communicators with the same members, used in different amounts on two streams, do
            // not mix.
            const int32_t other = f.CreateStream("t", 0);
            const int32_t a = f.OpenGroup("a", ranks), b = f.OpenGroup("b", ranks);
            for (int i = 0; i < 5; ++i) {
              const Shape gather{SPF_ALL_GATHER, SPF_I32, 10}, reduce{SPF_ALL_REDUCE, SPF_F32, 11};
              std::string bad =
                  TryCollective(f, stream, a, f.world() - 1 - f.rank(), f.world(), gather);
              if (bad.empty())
                bad = TryCollective(f, other, b, f.world() - 1 - f.rank(), f.world(), reduce);
              if (!bad.empty()) return bad;
            }
            return "ok";
          }),
      "groups with permuted members; two communicators with the same members");
}

// Everything to one member, or nothing to anybody.
void NothingButOnePiece(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) -> std::string {
    const int32_t stream = f.CreateStream("a2a", 0), group = f.OpenGroup("world", Everybody(f));
    const auto members = static_cast<size_t>(f.world());
    for (int to = -1; to < f.world(); ++to) {
      const uint64_t count = to < 0 ? 0 : 3;
      const bool mine = f.rank() == to;
      const Block out = f.Alloc(stream, 24, false), in = f.Alloc(stream, 24 * members, false);
      f.Enqueue(stream, "fill", [&] {
        for (uint64_t i = 0; i < 3; ++i) Put(out.host, i, SPF_I64, Value(f.rank(), i));
      });
      CommOp op = Simple(SPF_ALL_TO_ALL_V, group, stream, out, "all_to_all_v");
      op.dtype = SPF_I64;
      op.count = 0;
      op.recv = in.host;
      op.send_counts.assign(members, 0);
      if (to >= 0) op.send_counts[static_cast<size_t>(to)] = count;
      op.recv_counts.assign(members, mine ? count : 0);
      f.Communicate({op});
      if (f.SyncStream(stream) != SPF_OK) return "aborted";
      for (uint64_t i = 0; mine && i < 3 * members; ++i) {
        if (Get(in.host, i, SPF_I64) != Value(static_cast<int>(i / 3), i % 3))
          return "element " + std::to_string(i);
      }
      f.Free(stream, out);
      f.Free(stream, in);
    }
    return "ok";
  });
  suite.ExpectOk(end, "all_to_all_v of nothing but one member's rows");
}

// The last member expects other counts than member 0 sends: named, and no byte outside of its
// buffer is written.
void UnequalCountsAreNamed(Suite& suite) {
  if (suite.world->size() < 2) return;
  for (const uint64_t expects : {uint64_t{0}, uint64_t{1}, uint64_t{5}}) {
    const CaseEnd end = suite.Run(suite.world->size(), [expects](Fabric& f) -> std::string {
      const int32_t stream = f.CreateStream("a2a", 0), group = f.OpenGroup("world", Everybody(f));
      const auto members = static_cast<size_t>(f.world());
      const Block out = f.Alloc(stream, 4 * 3 * members, false),
                  in = f.Alloc(stream, 4 * 8 * members, false);
      f.Enqueue(stream, "fill", [&] {
        for (uint64_t i = 0; i < 3 * members; ++i) Put(out.host, i, SPF_F32, 1);
        for (uint64_t i = 0; i < 8 * members; ++i) Put(in.host, i, SPF_F32, 9);
      });
      CommOp op = Simple(SPF_ALL_TO_ALL_V, group, stream, out, "all_to_all_v");
      op.count = 0;
      op.recv = in.host;
      op.send_counts.assign(members, 3);
      op.recv_counts.assign(members, 3);
      if (f.rank() == f.world() - 1) op.recv_counts[0] = expects;
      f.Communicate({op});
      if (f.SyncStream(stream) != SPF_OK) return "aborted";
      uint64_t end_of_rows = 0;
      for (const uint64_t count : op.recv_counts) end_of_rows += count;
      for (uint64_t i = end_of_rows; i < 8 * members; ++i) {
        if (Get(in.host, i, SPF_F32) != 9) return "element " + std::to_string(i) + " was written";
      }
      return "ok";
    });
    bool named = end.mismatches.size() == 1 && Has(end.mismatches[0], "all_to_all_v");
    for (const RankEnd& rank : end.ranks) named = named && rank.returned && rank.blob == "ok";
    suite.Expect(named && !end.hang, "unequal counts of all_to_all_v are named",
                 end.mismatches.empty() ? "no mismatch" : end.mismatches[0]);
  }
}

// Forward to the next and backward to the one before, in one group call or in a communicator and
// stream each.
void PipelineNeighbours(Suite& suite) {
  for (const bool together : {true, false}) {
    const CaseEnd end = suite.Run(suite.world->size(), [together](Fabric& f) -> std::string {
      const int32_t forward = f.CreateStream("forward", 0),
                    backward = f.CreateStream("backward", 0);
      const int32_t world = f.OpenGroup("world", Everybody(f));
      const int32_t back = together ? forward : backward;
      const int32_t back_group = together ? world : f.OpenGroup("back", Everybody(f));
      const int next = (f.rank() + 1) % f.world(), before = (f.rank() + f.world() - 1) % f.world();
      const Block out = f.Alloc(forward, 8, false), in = f.Alloc(forward, 8, false),
                  dout = f.Alloc(back, 12, false), din = f.Alloc(back, 12, false);
      f.Enqueue(forward, "fill", [&] {
        for (uint64_t i = 0; i < 2; ++i) Put(out.host, i, SPF_F32, f.rank());
      });
      f.Enqueue(back, "fill", [&] {
        for (uint64_t i = 0; i < 3; ++i) Put(dout.host, i, SPF_F32, 100 + f.rank());
      });
      const auto message = [](int kind, int32_t group, int32_t stream, const Block& block,
                              int peer) {
        CommOp op = Simple(kind, group, stream, block, kind == SPF_SEND ? "send" : "recv");
        op.peer = peer;
        return op;
      };
      std::vector<CommOp> ops = {message(SPF_SEND, world, forward, out, next),
                                 message(SPF_RECV, world, forward, in, before)};
      const std::vector<CommOp> others = {message(SPF_RECV, back_group, back, din, next),
                                          message(SPF_SEND, back_group, back, dout, before)};
      if (together) ops.insert(ops.end(), others.begin(), others.end());
      f.Communicate(ops);
      if (!together) f.Communicate(others);
      if (f.Drain() != SPF_OK) return "aborted";
      const bool right =
          Get(in.host, 1, SPF_F32) == before && Get(din.host, 2, SPF_F32) == 100 + next;
      return right ? "ok" : "other values";
    });
    suite.ExpectOk(end, "both directions of a pipeline");
  }
}

void CreatedGroups(Suite& suite) {
  const int n = suite.world->size();
  suite.ExpectOk(
      suite.Run(n,
                [](Fabric& f) -> std::string {
                  const int32_t world = f.OpenGroup("world", Everybody(f));
                  std::vector<int32_t> mine;  // even and odd ranks; the last rank joins none
                  for (int r = f.rank() % 2; r < f.world() - 1; r += 2) mine.push_back(r);
                  if (f.rank() == f.world() - 1) mine.clear();
                  int32_t group = -1;
                  std::string key;
                  if (f.CreateGroup(world, mine, &group, &key) != SPF_OK) return "create failed";
                  if (mine.empty())
                    return group == -1 ? "ok" : "a group although none was asked for";
                  const int32_t stream = f.CreateStream("s", 0);
                  const std::string wrong =
                      TryCollective(f, stream, group, f.rank() / 2, static_cast<int>(mine.size()),
                                    {SPF_ALL_GATHER, SPF_F32, 12});
                  if (!wrong.empty()) return wrong;
                  return f.DestroyGroup(group) == SPF_OK ? "ok" : "destroy failed";
                }),
      "group_create splits, group_destroy meets");
}

void RegisteredBlocks(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)),
                  twin = f.OpenGroup("twin", Everybody(f));
    const int32_t s = f.CreateStream("s", 0), t = f.CreateStream("t", 0);
    const Block a = f.AllocRegistrable(s, 40), b = f.AllocRegistrable(t, 80);
    for (const int32_t group : {world, twin}) {
      for (const Block& block : {a, b}) {
        if (f.RegisterBlock(group, block) != SPF_OK) return "register failed";
      }
    }
    const int32_t twins[] = {twin, world};
    for (int round = 0; round < 2; ++round) {
      f.Enqueue(s, "fill", [&] {
        for (uint64_t i = 0; i < 10; ++i) Put(a.host, i, SPF_F32, 1);
      });
      f.Enqueue(t, "fill", [&] {
        for (uint64_t i = 0; i < 20; ++i) Put(b.host, i, SPF_F32, 2);
      });
      f.Communicate({Simple(SPF_ALL_REDUCE, twins[round], s, a, "first")});
      f.Communicate({Simple(SPF_ALL_REDUCE, twins[round], t, b, "second")});
      for (const Block& block : {a, b}) {
        if (f.DeregisterBlock(twins[round], block) != SPF_OK) return "deregister failed";
      }
      // No other sync: the work on the group is done, on both streams.
      if (Get(a.host, 9, SPF_F32) != f.world() || Get(b.host, 19, SPF_F32) != 2 * f.world())
        return "not done";
    }
    f.Free(s, a);
    f.Free(t, b);
    return f.Drain() == SPF_OK ? "ok" : "aborted";
  });
  suite.ExpectOk(end, "group_register meets, group_deregister waits for the work on the group");
}

void Messages(Suite& suite) {
  const int n = suite.world->size();
  // A ring in one group call, with self for n = 1.
  suite.ExpectOk(suite.Run(n,
                           [](Fabric& f) -> std::string {
                             const int32_t world = f.OpenGroup("world", Everybody(f)),
                                           stream = f.CreateStream("s", 0);
                             const Block out = f.Alloc(stream, 400, false),
                                         in = f.Alloc(stream, 400, false);
                             std::string wrong;
                             for (int round = 0; round < 3; ++round) {
                               f.Enqueue(stream, "fill", [&, round] {
                                 for (uint64_t i = 0; i < 100; ++i)
                                   Put(out.host, i, SPF_F32, Value(f.rank(), i) + round);
                               });
                               CommOp send = Simple(SPF_SEND, world, stream, out, "send"),
                                      recv = Simple(SPF_RECV, world, stream, in, "recv");
                               send.peer = (f.rank() + 1) % f.world();
                               recv.peer = (f.rank() + f.world() - 1) % f.world();
                               f.Communicate({send, recv});
                               f.Enqueue(stream, "check", [&, round, from = recv.peer] {
                                 for (uint64_t i = 0; i < 100; ++i) {
                                   if (Get(in.host, i, SPF_F32) != Value(from, i) + round)
                                     wrong = "ring element " + std::to_string(i);
                                 }
                               });
                             }
                             if (f.Drain() != SPF_OK) return "aborted";
                             return wrong.empty() ? "ok" : wrong;
                           }),
                 "a ring of messages in one group call");
}

void OrderAcrossStreams(Suite& suite) {
  const int n = suite.world->size();
  suite.ExpectOk(
      suite.Run(n,
                [](Fabric& f) -> std::string {
                  // One communicator on two streams: kernels start in issue order, so the second
                  // sees the first one's result only through the event; both complete on all ranks
                  // although ranks use the streams the other way round.
                  const int32_t world = f.OpenGroup("world", Everybody(f));
                  const int32_t s = f.CreateStream("s", 0), t = f.CreateStream("t", 0);
                  const Block a = f.Alloc(s, 40, false), b = f.Alloc(t, 40, false);
                  f.Enqueue(s, "fill", [&] {
                    for (uint64_t i = 0; i < 10; ++i) Put(a.host, i, SPF_F32, 1);
                  });
                  f.Enqueue(t, "fill", [&] {
                    for (uint64_t i = 0; i < 10; ++i) Put(b.host, i, SPF_F32, 2);
                  });
                  const int32_t filled = f.CreateEvent(), filled_b = f.CreateEvent();
                  f.Record(filled, s);
                  f.Record(filled_b, t);
                  const bool swap = f.rank() % 2 == 1;
                  if (!f.Wait(filled, t) || !f.Wait(filled_b, s))
                    return "a recorded event gave no edge";
                  f.Communicate({Simple(SPF_ALL_REDUCE, world, swap ? t : s, a, "first")});
                  f.Communicate({Simple(SPF_ALL_REDUCE, world, swap ? s : t, b, "second")});
                  if (f.Drain() != SPF_OK) return "aborted";
                  const int got_a = Get(a.host, 3, SPF_F32), got_b = Get(b.host, 9, SPF_F32);
                  return got_a == f.world() && got_b == 2 * f.world()
                             ? "ok"
                             : "sums " + std::to_string(got_a) + " " + std::to_string(got_b);
                }),
      "one communicator on two streams keeps its order");
}

}  // namespace

void CheckOperations(Suite& suite) {
  Collectives(suite);
  PermutedGroups(suite);
  NothingButOnePiece(suite);
  UnequalCountsAreNamed(suite);
  CreatedGroups(suite);
  RegisteredBlocks(suite);
  Messages(suite);
  PipelineNeighbours(suite);
  OrderAcrossStreams(suite);
}

}  // namespace shardproof::mpi_test
