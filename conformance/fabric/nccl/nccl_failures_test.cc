// How does a run end that cannot go on? On all ranks, with rank, call and communicator named, never
// by hanging.
#include <gtest/gtest.h>

#include "conformance/fabric/nccl/gpu_before.h"
#include "conformance/fabric/nccl/run_all_for_test.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void ExpectAllEnded(const StandinRun& run) {
  for (const NcclEnd& end : run.ends) EXPECT_NE(end.reason, "");
}

TEST(Failures, AMissingMemberEndsAllRanksAndThePendingOperationIsNamed) {
  for (const Strategy strategy : kStrategies) {
    const StandinRun run = RunStandin(3, Under(strategy), [](BodiesOnDevice& f) {
      Program p(f);
      const int32_t stream = f.CreateStream("comm", 0);
      const Block block = p.Floats(stream, 1);
      p.AllReduce(p.world, stream, block);
      EXPECT_EQ(f.SyncStream(stream), SPF_OK);
      if (f.rank() != 2) p.AllReduce(p.world, stream, block);
      EXPECT_EQ(f.SyncStream(stream), f.rank() == 2 ? SPF_OK : SPF_ABORTED);
      EXPECT_EQ(f.aborted(), f.rank() != 2);
      EXPECT_EQ(f.SyncStream(stream), f.rank() == 2 ? SPF_OK : SPF_ABORTED);
    });
    const NcclEnd& end = run.ends[run.ends[0].cause == Watchdog::Cause::kStalled ? 0 : 1];
    EXPECT_EQ(end.cause, Watchdog::Cause::kStalled);
    EXPECT_TRUE(Has(
        end.reason,
        "nothing has completed for 30 s while the host waits in stream_sync of comm (stream 0)"));
    EXPECT_EQ(
        end.pending,
        "op on comm (stream 0), collective #1 of communicator world is not known to be complete\n"
        "collectives issued here: 2 on world\n");
    ASSERT_EQ(end.positions.size(), 1u);
    EXPECT_EQ(end.positions[0].issued, 2);
    EXPECT_EQ(end.positions[0].oldest, 1);
    EXPECT_EQ(run.ends[2].reason, "");  // went home before anything was wrong
  }
}

// Work that is complete is not blamed for the kernel behind it, although nobody has waited for it.
TEST(Failures, TheOperationThatIsStuckIsNamedAndNotTheWorkBeforeIt) {
  StandinOptions options = Under(Strategy::kLazyComm);
  options.communicators_at_open = true;
  const StandinRun run = RunStandin(2, options, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t compute = f.CreateStream("compute", 0), comm = f.CreateStream("comm", 0);
    const Block x = p.Floats(compute, 1);
    p.Fill(compute, x, 1);
    p.After(comm, compute);
    if (f.rank() == 0) p.AllReduce(p.world, comm, x);
    p.After(compute, comm);
    p.Fill(compute, x, 2);
    f.SyncStream(compute);
  });
  EXPECT_EQ(
      run.ends[0].pending,
      "wait for event 1 on compute (stream 0) is queued: its record on comm (stream 1) is not "
      "complete\n"
      "op on comm (stream 1), collective #0 of communicator world is not known to be complete\n"
      "collectives issued here: 1 on world\n");
}

TEST(Failures, AnEndIsToldToTheOthersWithTheRankWhereItBegan) {
  const StandinRun run = RunStandin(2, Under(Strategy::kLazyComm), [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t stream = f.CreateStream("comm", 0);
    const Block block = p.Floats(stream, 1);
    p.AllReduce(p.world, stream, block);
    if (f.rank() == 0) p.AllReduce(p.world, stream, block);
    if (f.rank() == 1) f.nccl().Fail("refused: not a member");
    EXPECT_EQ(f.SyncStream(stream), SPF_ABORTED);
  });
  ExpectAllEnded(run);
  EXPECT_EQ(run.ends[1].reason, "rank 1: refused: not a member");
  EXPECT_EQ(run.ends[1].cause, Watchdog::Cause::kNone);
  EXPECT_EQ(run.ends[0].cause, Watchdog::Cause::kEnded);
  EXPECT_TRUE(Has(run.ends[0].reason, "rank 1: refused: not a member"));
}

TEST(Failures, AfterTheEndEverythingIsIgnored) {
  RunStandin(1, Under(Strategy::kEager), [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t stream = f.CreateStream("s", 0), event = f.CreateEvent();
    const Block block = p.Floats(stream, 1);
    f.Record(event, stream);
    f.Fail("");
    EXPECT_EQ(f.nccl().end().reason, "rank 0: failed without a reason");
    bool ran = false, recorded = false;
    f.nccl().Enqueue(stream, "x", [&] { ran = true; });
    EXPECT_FALSE(ran);
    p.AllReduce(p.world, stream, block);
    f.Free(stream, block);
    EXPECT_EQ(f.Alloc(stream, 4, true).id, -1);
    EXPECT_EQ(f.SyncEvent(event, &recorded), SPF_ABORTED);
    EXPECT_TRUE(recorded);
    EXPECT_TRUE(f.Wait(event, f.CreateStream("late", 0)));
    f.DestroyEvent(f.CreateEvent());
    int32_t group = 0;
    std::string key;
    EXPECT_EQ(f.CreateGroup(p.world, {0}, &group, &key), SPF_ABORTED);
    EXPECT_EQ(group, -1);
    EXPECT_EQ(f.DestroyGroup(p.world), SPF_ABORTED);
    EXPECT_EQ(f.Drain(), SPF_ABORTED);
    f.Fail("again");
    EXPECT_EQ(f.nccl().end().reason, "rank 0: failed without a reason");
  });
}

TEST(Failures, AMeetingThatAMemberMissesIsEnded) {
  const StandinRun run = RunStandin(3, Under(Strategy::kRandom), [](BodiesOnDevice& f) {
    Program p(f);
    int32_t group = -1;
    std::string key;
    if (f.rank() == 1) return;
    EXPECT_EQ(f.CreateGroup(p.world, {0, 2}, &group, &key), SPF_ABORTED);
  });
  EXPECT_TRUE(Has(run.ends[0].reason + run.ends[2].reason,
                  "while the host waits in group_create #0 on world"));
  EXPECT_EQ(run.ends[1].reason, "");
}

// What communicators.h warns of: operations on two streams that would go on in any order, issued in
// opposite order.
TEST(Failures, OppositeFirstUsesMeetForEverUnlessCommunicatorsAreMadeAtOpen) {
  const auto main = [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t twin = f.OpenGroup("twin", Everybody(2)), a = f.CreateStream("a", 0),
                  b = f.CreateStream("b", 0);
    const Block x = p.Floats(a, 1), y = p.Floats(b, 1);
    if (f.rank() == 0) p.AllReduce(p.world, a, x);
    p.AllReduce(twin, b, y);
    if (f.rank() == 1) p.AllReduce(p.world, a, x);
    f.Drain();
  };
  StandinOptions options = Under(Strategy::kEager);
  const StandinRun lazy = RunStandin(2, options, main);
  ExpectAllEnded(lazy);
  EXPECT_TRUE(
      Has(lazy.Text(),
          "while the host waits in the making of communicator world with ranks 0 1, for op"))
      << lazy.Text();
  options.communicators_at_open = true;
  EXPECT_FALSE(RunStandin(2, options, main).ended());
}

TEST(Failures, ABodyThatThrowsIsTheReason) {
  const StandinRun run = RunStandin(2, Under(Strategy::kPct), [](BodiesOnDevice& f) {
    const int32_t stream = f.CreateStream("s", 0);
    if (f.rank() == 1)
      f.nccl().Enqueue(stream, "adamw",
                       [] { throw GpuError("ForEach adamw", "cudaErrorLaunchFailure"); });
    EXPECT_EQ(f.SyncStream(stream), f.rank() == 1 ? SPF_ABORTED : f.SyncStream(stream));
  });
  EXPECT_EQ(run.ends[1].reason, "rank 1: in adamw: ForEach adamw: cudaErrorLaunchFailure");
}

// ---- a Gpu that fails

// What device work may still write after a rank's host has given up.
struct Seen {
  std::vector<float> x, y;
  bool over = false;  // the program came to its end
};

// Uses a bit of everything, and what it has seen must be right or the run must have ended.
void Everything(BodiesOnDevice& f, Seen* seen) {
  Program p(f);
  const int32_t compute = f.CreateStream("compute", 0), comm = f.CreateStream("comm", -1);
  const Block pinned = f.Alloc(compute, 64, true);
  const Block x = p.Floats(compute, 6), y = p.Floats(comm, 6);
  if (f.aborted()) return;
  p.Fill(compute, x, static_cast<float>(f.rank() + 1));
  p.After(comm, compute);
  CommOp v = p.Op(SPF_ALL_GATHER_V, p.world, comm, x, y, 0);
  v.recv_counts = {2, 1, 3};
  f.Communicate({v, p.Op(SPF_ALL_REDUCE, p.world, comm, x, x, 6)});
  int32_t group = -1;
  std::string key;
  const std::vector<int32_t> some{0, 2};
  if (f.CreateGroup(p.world, f.rank() == 1 ? std::vector<int32_t>{} : some, &group, &key) != SPF_OK)
    return;
  if (group >= 0) p.AllReduce(group, comm, y);
  p.After(compute, comm);
  p.Read(compute, x, &seen->x);
  p.Read(compute, y, &seen->y);
  const int32_t event = f.CreateEvent();
  f.Record(event, compute);
  if (f.SyncEvent(event, nullptr) != SPF_OK) return;
  EXPECT_EQ(seen->x, std::vector<float>(6, 6.0f));
  EXPECT_EQ(seen->y, (group >= 0 ? std::vector<float>{2, 2, 4, 6, 6, 6}
                                 : std::vector<float>{1, 1, 2, 3, 3, 3}));
  f.DestroyEvent(event);
  if (group >= 0 && f.DestroyGroup(group) != SPF_OK) return;
  f.Free(compute, x);
  f.Free(comm, y);
  f.Free(compute, pinned);
  f.DestroyStream(comm);
  seen->over = f.Drain() == SPF_OK;
}

StandinRun RunEverything(const StandinOptions& options, bool* over = nullptr) {
  std::vector<Seen> seen(3);
  StandinRun run = RunStandin(
      3, options, [&](BodiesOnDevice& f) { Everything(f, &seen[static_cast<size_t>(f.rank())]); });
  if (over) *over = seen[1].over;
  return run;
}

int CallsOfRankOne(Strategy strategy) {
  int calls = 0;
  StandinOptions options = Under(strategy);
  options.before = [&](Gpu& inner, int32_t rank) -> std::unique_ptr<Gpu> {
    if (rank != 1) return nullptr;
    return std::make_unique<GpuBefore>(inner, [&](const char*) { ++calls; });
  };
  EXPECT_FALSE(RunEverything(options).ended());
  return calls;
}

TEST(Failures, AnErrorOfAnyCallEndsAllRanksAndIsNamed) {
  int told = 0;
  for (const Strategy strategy : {Strategy::kEager, Strategy::kLazyComm, Strategy::kRandom}) {
    const int calls = CallsOfRankOne(strategy);
    EXPECT_GT(calls, 50);
    for (int fails = 0; fails < calls; ++fails) {
      int number = 0;
      std::string name;
      StandinOptions options = Under(strategy);
      options.before = [&](Gpu& inner, int32_t rank) -> std::unique_ptr<Gpu> {
        if (rank != 1) return nullptr;
        return std::make_unique<GpuBefore>(inner, [&](const char* call) {
          if (number++ != fails) return;
          name = call;
          throw GpuError(std::string(call) + " on x", "cudaErrorLaunchFailure (injected)");
        });
      };
      bool over = false;
      const StandinRun run = RunEverything(options, &over);
      for (const std::string& error : run.sim.errors) EXPECT_EQ(error, "") << name;
      if (run.ends[1].reason.empty()) {
        EXPECT_TRUE(over) << name << " call " << fails;  // while everything was given back
        continue;
      }
      EXPECT_TRUE(Has(run.ends[1].reason, "rank 1: ")) << run.ends[1].reason;
      EXPECT_TRUE(Has(run.ends[1].reason, name + " on x: cudaErrorLaunchFailure (injected)"))
          << run.ends[1].reason;
      for (const size_t other : {0u, 2u}) {
        if (run.ends[other].reason.empty()) continue;  // had all it needed
        EXPECT_TRUE(Has(run.ends[other].reason, "(injected)")) << run.ends[other].reason;
        ++told;
      }
    }
  }
  EXPECT_GT(told, 100);
}

// What has been issued may still run after the end: memory goes back behind it.
TEST(Failures, WorkThatOutlivesTheEndFindsItsMemory) {
  for (const Strategy strategy : kStrategies) {
    std::vector<float> seen[2];
    RunStandin(2, Under(strategy), [&](BodiesOnDevice& f) {
      Program p(f);
      const int32_t s = f.CreateStream("s", 0);
      const Block x = p.Floats(s, 1);
      p.Fill(s, x, static_cast<float>(f.rank() + 1));
      p.AllReduce(p.world, s, x);
      p.Read(s, x, &seen[f.rank()]);
      if (f.rank() == 1) f.Fail("enough");
    });
    EXPECT_EQ(seen[0], std::vector<float>{3});
    EXPECT_EQ(seen[1], std::vector<float>{3});
  }
}

TEST(Failures, AnErrorAtTheEndOfACommunicatorIsTold) {
  StandinOptions options = Under(Strategy::kRandom);
  options.before = [&](Gpu& inner, int32_t rank) -> std::unique_ptr<Gpu> {
    return std::make_unique<GpuBefore>(inner, [rank](const char* call) {
      if (std::string(call) == "FinalizeComm" && rank == 1)
        throw GpuError("ncclCommFinalize on world", "ncclSystemError");
    });
  };
  const StandinRun run = RunStandin(2, options, [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t s = f.CreateStream("s", 0);
    p.AllReduce(p.world, s, p.Floats(s, 1));
    const spf_status status = f.nccl().Close();
    const spf_status again = f.nccl().Close();
    EXPECT_TRUE(f.rank() == 0 ||
                (status == SPF_ABORTED && again == SPF_ABORTED));  // rank 0 may hear of it or not
  });
  EXPECT_EQ(run.ends[1].reason,
            "rank 1: in the end of its communicators: ncclCommFinalize on world: ncclSystemError");
}

TEST(Failures, AnAsynchronousErrorOfACommunicatorEndsAWait) {
  StandinOptions options = Under(Strategy::kEager);
  bool broken = false;
  options.before = [&](Gpu& inner, int32_t rank) -> std::unique_ptr<Gpu> {
    if (rank != 0) return nullptr;
    return std::make_unique<GpuBefore>(inner, [&](const char* call) {
      if (std::string(call) == "CheckComm" && broken)
        throw GpuError("ncclCommGetAsyncError on world", "ncclRemoteError (a peer is gone)");
    });
  };
  const StandinRun run = RunStandin(2, options, [&](BodiesOnDevice& f) {
    Program p(f);
    const int32_t stream = f.CreateStream("comm", 0);
    const Block block = p.Floats(stream, 1);
    p.AllReduce(p.world, stream, block);
    EXPECT_EQ(f.SyncStream(stream), SPF_OK);
    broken = true;
    p.AllReduce(p.world, stream, block);
    if (f.rank() == 1) p.AllReduce(p.world, stream, block);
    EXPECT_EQ(f.SyncStream(stream), SPF_ABORTED);
  });
  EXPECT_EQ(run.ends[0].cause, Watchdog::Cause::kBroken);
  EXPECT_EQ(run.ends[0].reason,
            "rank 0: ncclCommGetAsyncError on world: ncclRemoteError (a peer is gone)");
  EXPECT_EQ(run.ends[1].cause, Watchdog::Cause::kEnded);
}

}  // namespace
}  // namespace shardproof
