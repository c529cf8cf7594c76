// Run under mpirun with several sizes: see mpi_fabric_test.sh. Every check runs on all processes in
// lockstep; rank 0 judges and broadcasts the outcome.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/fabric/collective_math.h"
#include "conformance/fabric/mpi/mpi_world.h"

namespace shardproof {
namespace {

using Main = std::function<std::string(Fabric&)>;

struct Suite {
  MpiWorld* world;
  int failures = 0, checks = 0;
  MpiOptions options = {};

  CaseEnd Run(int n, const Main& rank_main) { return world->RunCase(n, options, rank_main); }
  // Judged on rank 0 only.
  void Expect(bool good, const std::string& what, const std::string& seen = "") {
    if (world->rank() != 0) return;
    ++checks;
    if (good) return;
    ++failures;
    std::printf("FAILED (n=%d): %s\n  saw: %s\n", world->size(), what.c_str(), seen.c_str());
  }
  // Every rank returned "ok".
  void ExpectOk(const CaseEnd& end, const std::string& what) {
    std::string seen = end.hang ? "hang: " + end.hang_report : "";
    bool good = !end.hang && end.mismatches.empty();
    for (const std::string& text : end.mismatches) seen += "\n  mismatch " + text;
    for (size_t rank = 0; rank < end.ranks.size(); ++rank) {
      const RankEnd& r = end.ranks[rank];
      if (r.kind == RankEnd::kReturned && r.blob == "ok") continue;
      good = false;
      seen += "\n  rank " + std::to_string(rank) + " " + ToText(r.kind) + ": " + r.detail +
              " blob: " + r.blob.substr(0, 200);
    }
    Expect(good, what, seen);
  }
  void ExpectHealthy() {
    ExpectOk(Run(world->size(), [](Fabric& f) { return HealthyMain(f); }),
             "a healthy case afterwards");
  }
  static std::string HealthyMain(Fabric& f);
};

std::vector<int32_t> Everybody(const Fabric& f) {
  std::vector<int32_t> ranks(static_cast<size_t>(f.world()));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int32_t>(i);
  return ranks;
}

// Small integers, exact in every dtype.
void Put(std::byte* data, uint64_t i, int32_t dtype, int value) {
  switch (dtype) {
    case SPF_U8:
      data[i] = static_cast<std::byte>(value);
      return;
    case SPF_I32:
      reinterpret_cast<int32_t*>(data)[i] = value;
      return;
    case SPF_I64:
      reinterpret_cast<int64_t*>(data)[i] = value;
      return;
    case SPF_BF16:
      reinterpret_cast<uint16_t*>(data)[i] = ToBf16(static_cast<float>(value));
      return;
    case SPF_F16:
      reinterpret_cast<uint16_t*>(data)[i] = ToF16(static_cast<float>(value));
      return;
    case SPF_F32:
      reinterpret_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    default:
      reinterpret_cast<double*>(data)[i] = value;
      return;
  }
}
int Get(const std::byte* data, uint64_t i, int32_t dtype) {
  switch (dtype) {
    case SPF_U8:
      return static_cast<int>(data[i]);
    case SPF_I32:
      return reinterpret_cast<const int32_t*>(data)[i];
    case SPF_I64:
      return static_cast<int>(reinterpret_cast<const int64_t*>(data)[i]);
    case SPF_BF16:
      return static_cast<int>(FromBf16(reinterpret_cast<const uint16_t*>(data)[i]));
    case SPF_F16:
      return static_cast<int>(FromF16(reinterpret_cast<const uint16_t*>(data)[i]));
    case SPF_F32:
      return static_cast<int>(reinterpret_cast<const float*>(data)[i]);
    default:
      return static_cast<int>(reinterpret_cast<const double*>(data)[i]);
  }
}

// What member m contributes at element i; sums of 8 stay below 256.
int Value(int m, uint64_t i) { return m + 1 + static_cast<int>(i % 5); }

struct Shape {
  int kind, dtype;
  uint64_t count;
  int reduction = SPF_SUM;
};

// One collective over members on f; "" or what is wrong.
std::string TryCollective(Fabric& f, int32_t stream, int32_t group, int me, int n, const Shape& s) {
  const uint64_t un = static_cast<uint64_t>(n), width = DtypeBytes(s.dtype);
  CommOp op;
  op.kind = s.kind;
  op.dtype = s.dtype;
  op.reduction = s.reduction;
  op.group = group;
  op.stream = stream;
  op.what = "op " + std::to_string(s.kind);
  op.count = s.count;
  op.peer = s.kind == SPF_BROADCAST ? n - 1 : -1;
  uint64_t sends = s.count, receives = s.count;
  if (s.kind == SPF_ALL_GATHER) receives *= un;
  if (s.kind == SPF_REDUCE_SCATTER) sends *= un;
  if (s.kind == SPF_ALL_GATHER_V) {
    receives = 0;
    for (int m = 0; m < n; ++m) op.recv_counts.push_back(s.count * static_cast<uint64_t>(m));
    sends = op.recv_counts[static_cast<size_t>(me)];
    for (const uint64_t c : op.recv_counts) receives += c;
  }
  if (s.kind == SPF_ALL_TO_ALL_V) {  // a sends count * (a + 2 b) % 3 to b
    sends = receives = 0;
    for (int m = 0; m < n; ++m) {
      op.send_counts.push_back(s.count * static_cast<uint64_t>((me + 2 * m) % 3));
      op.recv_counts.push_back(s.count * static_cast<uint64_t>((m + 2 * me) % 3));
      sends += op.send_counts.back();
      receives += op.recv_counts.back();
    }
  }
  const Block send = f.Alloc(stream, sends * width, false),
              recv = f.Alloc(stream, receives * width, false);
  f.Enqueue(stream, "fill", [=] {
    for (uint64_t i = 0; i < sends; ++i) Put(send.host, i, s.dtype, Value(me, i));
  });
  op.send = send.host;
  op.recv = recv.host;
  const std::vector<uint64_t> recv_counts = op.recv_counts;
  f.Communicate({op});
  std::string wrong;
  f.Enqueue(stream, "check", [&] {
    uint64_t at = 0;
    const auto expect = [&](int value) {
      const int seen = Get(recv.host, at, s.dtype);
      if (seen != value && wrong.empty()) {
        wrong = "kind " + std::to_string(s.kind) + " dtype " + std::to_string(s.dtype) + " count " +
                std::to_string(s.count) + " element " + std::to_string(at) + ": " +
                std::to_string(seen) + " instead of " + std::to_string(value);
      }
      ++at;
    };
    const auto sum = [&](uint64_t i) {
      int total = 0;
      for (int m = 0; m < n; ++m) total += Value(m, i);
      return total;
    };
    for (int m = 0; m < n; ++m) {
      if (s.kind == SPF_ALL_GATHER) {
        for (uint64_t i = 0; i < s.count; ++i) expect(Value(m, i));
      } else if (s.kind == SPF_ALL_GATHER_V) {
        for (uint64_t i = 0; i < recv_counts[static_cast<size_t>(m)]; ++i) expect(Value(m, i));
      } else if (s.kind == SPF_ALL_TO_ALL_V) {
        uint64_t offset = 0;
        for (int b = 0; b < me; ++b) offset += s.count * static_cast<uint64_t>((m + 2 * b) % 3);
        for (uint64_t i = 0; i < recv_counts[static_cast<size_t>(m)]; ++i)
          expect(Value(m, offset + i));
      }
    }
    for (uint64_t i = 0; i < s.count; ++i) {
      if (s.kind == SPF_REDUCE_SCATTER) expect(sum(static_cast<uint64_t>(me) * s.count + i));
      if (s.kind == SPF_ALL_REDUCE && s.reduction == SPF_SUM) expect(sum(i));
      if (s.kind == SPF_BROADCAST) expect(Value(n - 1, i));
    }
  });
  f.Free(stream, send);
  f.Free(stream, recv);
  if (f.SyncStream(stream) != SPF_OK) return "aborted";
  return wrong;
}

std::string Suite::HealthyMain(Fabric& f) {
  const int32_t stream = f.CreateStream("s", 0);
  const int32_t group = f.OpenGroup("world", Everybody(f));
  const std::string wrong =
      TryCollective(f, stream, group, f.rank(), f.world(), {SPF_ALL_REDUCE, SPF_F32, 100});
  return wrong.empty() ? "ok" : wrong;
}

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

CommOp Simple(int kind, int32_t group, int32_t stream, const Block& block,
              const std::string& what) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_F32;
  op.group = group;
  op.stream = stream;
  op.send = op.recv = block.host;
  op.count = block.bytes / 4;
  op.what = what;
  return op;
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

void Messages(Suite& suite) {
  const int n = suite.world->size();
  suite.ExpectOk(
      suite.Run(n,
                [](Fabric& f) -> std::string {  // a ring in one group call, with self for n = 1
                  const int32_t world = f.OpenGroup("world", Everybody(f)),
                                stream = f.CreateStream("s", 0);
                  const Block out = f.Alloc(stream, 400, false), in = f.Alloc(stream, 400, false);
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

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void OppositeOrderHangs(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t a = f.OpenGroup("a", Everybody(f)), b = f.OpenGroup("b", Everybody(f));
    const int32_t s = f.CreateStream("comm", 0);
    const Block x = f.Alloc(s, 40, false), y = f.Alloc(s, 40, false);
    const bool swap = f.rank() == 1;
    f.Communicate(
        {Simple(SPF_ALL_REDUCE, swap ? b : a, s, x, swap ? "reduce on b" : "reduce on a")});
    f.Communicate(
        {Simple(SPF_ALL_REDUCE, swap ? a : b, s, y, swap ? "reduce on a" : "reduce on b")});
    return f.SyncStream(s) == SPF_ABORTED ? "aborted" : "not aborted";
  });
  suite.Expect(end.hang, "opposite order of two collectives hangs", end.hang_report);
  suite.Expect(Has(end.hang_report, "rank 0 waits for rank 1, which waits for rank 0"),
               "the cycle is named", end.hang_report);
  suite.Expect(Has(end.hang_report, "blocked in stream_sync of comm"), "the blocking call is named",
               end.hang_report);
  suite.Expect(
      Has(end.hang_report, "reduce on a on comm (stream 0) on communicator a has started here"),
      "the operation is named", end.hang_report);
  for (const RankEnd& rank : end.ranks) {
    if (suite.world->rank() != 0) break;
    suite.Expect(rank.kind == RankEnd::kHung && rank.returned && rank.blob == "aborted",
                 "hung ranks hand in what they have",
                 ToText(rank.kind) + (": " + rank.detail + rank.blob));
  }
  if (suite.world->rank() == 0)
    std::printf("--- a hang report:\n%s\n---\n", end.hang_report.c_str());
}

void HalfMissingHangs(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 40, false);
    if (f.rank() != 0) f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
    f.SyncStream(s);
    return "ok";
  });
  suite.Expect(end.hang && Has(end.hang_report, "rank 1 waits for rank 0, which has returned"),
               "a collective that rank 0 never issues", end.hang_report);
  const CaseEnd create = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f));
    int32_t group = -1;
    std::string key;
    if (f.rank() == 0) f.CreateGroup(world, {0}, &group, &key);
    return "ok";
  });
  suite.Expect(create.hang &&
                   Has(create.hang_report, "rank 0: blocked in group_create #0 on world") &&
                   Has(create.hang_report, "not been made yet by rank"),
               "a group_create that only rank 0 makes", create.hang_report);
}

void MismatchIsNamed(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 4000, false), y = f.Alloc(s, 400000, false);
    CommOp op = Simple(f.rank() == 1 ? SPF_ALL_GATHER : SPF_REDUCE_SCATTER, world, s, x, "odd");
    op.count = f.rank() == 1 ? 1000 : 100;
    op.recv = y.host;
    f.Communicate({op});
    f.Drain();
    return "ok";
  });
  bool named = false;
  std::string seen;
  for (const std::string& text : end.mismatches) {
    named = named || (Has(text, "rank 1 against rank 0") && Has(text, "all_gather") &&
                      Has(text, "reduce_scatter"));
    seen += text + "\n";
  }
  suite.Expect(!end.hang && named, "two different collectives at one place are named", seen);
}

void SpinForever() {
  std::atomic<int> turns{0};
  while (turns.fetch_add(1) != -1) {
  }
}

struct Misdeed {
  std::string name;
  std::function<void(Fabric&)> act;
  RankEnd::Kind kind;
  std::string detail;
};

std::vector<Misdeed> Misdeeds() {
  return {
      {"segfault on device memory",
       [](Fabric& f) {
         const int32_t s = f.CreateStream("s", 0);
         const Block block = f.Alloc(s, 256, false);
         *reinterpret_cast<volatile char*>(block.address + 12) = 1;
       },
       RankEnd::kSignal, "SIGSEGV"},
      {"abort", [](Fabric&) { std::abort(); }, RankEnd::kSignal, "SIGABRT"},
      {"exit(0)", [](Fabric&) { std::exit(0); }, RankEnd::kExit, "exit(0) was called"},
      {"_exit(3)", [](Fabric&) { _exit(3); }, RankEnd::kExit, "exit code 3"},
      {"SIGKILL", [](Fabric&) { raise(SIGKILL); }, RankEnd::kSignal, "SIGKILL"},
      {"a throw", [](Fabric&) { throw std::runtime_error("deliberate"); }, RankEnd::kException,
       "deliberate"},
      {"a throw in a body",
       [](Fabric& f) {
         const int32_t s = f.CreateStream("s", 0);
         f.Enqueue(s, "thrower", [] { throw std::runtime_error("in a body"); });
         f.SyncStream(s);
       },
       RankEnd::kException, "in a body"},
      {"an endless loop", [](Fabric&) { SpinForever(); }, RankEnd::kHung, "in engine code"},
      {"an endless body",
       [](Fabric& f) {
         f.Enqueue(f.CreateStream("s", 0), "spinner", [] { SpinForever(); });
         f.Drain();
       },
       RankEnd::kHung, "its device runs spinner"},
  };
}

void MisdeedsAreFindings(Suite& suite) {
  const int n = suite.world->size();
  for (const Misdeed& misdeed : Misdeeds()) {
    const CaseEnd end = suite.Run(n, [&, n](Fabric& f) -> std::string {
      const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
      const Block x = f.Alloc(s, 40, false);
      if (f.rank() == n - 1) misdeed.act(f);
      f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
      return f.SyncStream(s) == SPF_OK ? "ok" : "aborted";
    });
    if (suite.world->rank() == 0) {
      const RankEnd& culprit = end.ranks.back();
      const std::string seen = std::string(ToText(culprit.kind)) + ": " + culprit.detail;
      suite.Expect(culprit.kind == misdeed.kind && Has(culprit.detail, misdeed.detail),
                   misdeed.name, seen);
      suite.Expect(end.hang == (misdeed.kind == RankEnd::kHung), misdeed.name + ": a hang or not",
                   end.hang_report);
      for (int rank = 0; rank < n - 1; ++rank) {
        const RankEnd& other = end.ranks[static_cast<size_t>(rank)];
        suite.Expect(other.kind == (end.hang ? RankEnd::kHung : RankEnd::kAborted) &&
                         other.blob == "aborted",
                     misdeed.name + ": the others are aborted and hand in what they have",
                     std::string(ToText(other.kind)) + ": " + other.detail);
      }
      if (n > 1 || misdeed.kind != RankEnd::kHung)
        std::printf("%s -> %s\n", misdeed.name.c_str(), seen.c_str());
    }
    suite.ExpectHealthy();
  }
}

void FailEndsAll(Suite& suite) {
  const int n = suite.world->size();
  if (n < 2) return;
  const CaseEnd end = suite.Run(n, [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const Block x = f.Alloc(s, 40, false);
    if (f.rank() == 1) {
      f.Fail("refused: bad stream");
      return "failed";
    }
    f.Communicate({Simple(SPF_ALL_REDUCE, world, s, x, "a reduce")});
    return f.SyncStream(s) == SPF_ABORTED ? "aborted" : "ok";
  });
  if (suite.world->rank() != 0) return;
  suite.Expect(!end.hang && end.ranks[1].kind == RankEnd::kReturned &&
                   end.ranks[1].blob == "failed" && Has(end.ranks[1].detail, "refused: bad stream"),
               "a rank that fails returns by itself", end.ranks[1].detail);
  suite.Expect(end.ranks[0].kind == RankEnd::kAborted && end.ranks[0].blob == "aborted" &&
                   Has(end.ranks[0].detail, "refused: bad stream"),
               "the others are told why", end.ranks[0].detail);
}

void Blobs(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) {
    return std::string(5 << 20, static_cast<char>('a' + f.rank()));
  });
  if (suite.world->rank() != 0) return;
  for (size_t rank = 0; rank < end.ranks.size(); ++rank) {
    suite.Expect(end.ranks[rank].blob == std::string(5 << 20, static_cast<char>('a' + rank)),
                 "5 MB come back", std::to_string(end.ranks[rank].blob.size()));
  }
}

void FewerRanks(Suite& suite) {
  for (int n = 1; n < suite.world->size(); n += 2) {
    suite.ExpectOk(suite.Run(n, [](Fabric& f) { return Suite::HealthyMain(f); }),
                   "a case with fewer ranks");
  }
  const std::string text =
      suite.world->Broadcast(suite.world->rank() == 0 ? std::string(100000, 'x') : "no");
  suite.Expect(text == std::string(100000, 'x'), "broadcast");
}

void ManyCases(Suite& suite, int cases) {
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < cases; ++i) suite.ExpectHealthy();
  const double ms =
      1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / cases;
  if (suite.world->rank() == 0)
    std::printf("%d cases, n=%d: %.2f ms each\n", cases, suite.world->size(), ms);
}

void Latency(Suite& suite) {
  const CaseEnd end = suite.Run(suite.world->size(), [](Fabric& f) -> std::string {
    const int32_t world = f.OpenGroup("world", Everybody(f)), s = f.CreateStream("s", 0);
    const uint64_t bytes = 256 << 10;
    const Block x = f.Alloc(s, bytes, false);
    CommOp op = Simple(SPF_ALL_GATHER, world, s, x, "gather");
    op.count = bytes / 4 / static_cast<uint64_t>(f.world());
    op.send = x.host + static_cast<uint64_t>(f.rank()) * op.count * 4;
    for (int i = 0; i < 5; ++i) f.Communicate({op});
    f.Drain();
    const auto began = std::chrono::steady_clock::now();
    constexpr int kRounds = 100;
    for (int i = 0; i < kRounds; ++i) {
      f.Communicate({op});
      if (f.SyncStream(s) != SPF_OK) return "aborted";
    }
    return std::to_string(
        1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() /
        kRounds);
  });
  if (suite.world->rank() == 0) {
    std::printf("all-gather of 256 KB (result), n=%d: %s ms\n", suite.world->size(),
                end.ranks[0].blob.c_str());
  }
}

int Run(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  Suite suite{.world = &world};
  suite.options.stall_seconds = 1;
  const std::string what = argc > 1 ? argv[1] : "all";
  if (what == "bench") {
    Latency(suite);
    ManyCases(suite, 200);
  } else {
    Collectives(suite);
    PermutedGroups(suite);
    CreatedGroups(suite);
    Messages(suite);
    OrderAcrossStreams(suite);
    OppositeOrderHangs(suite);
    HalfMissingHangs(suite);
    MismatchIsNamed(suite);
    FailEndsAll(suite);
    MisdeedsAreFindings(suite);
    Blobs(suite);
    FewerRanks(suite);
    ManyCases(suite, 200);
  }
  if (world.rank() == 0)
    std::printf("n=%d: %d checks, %d failures\n", world.size(), suite.checks, suite.failures);
  return world.Broadcast(suite.failures ? "bad" : "good") == "good" ? 0 : 1;
}

}  // namespace
}  // namespace shardproof

int main(int argc, char** argv) { return shardproof::Run(argc, argv); }
