// How does a run end when a call of the Gpu fails, or a communicator has an error?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/fabric/nccl/gpu_before.h"
#include "conformance/fabric/nccl/run_all_for_test.h"
#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

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

int CallsOfRankOne(TimingPolicy policy) {
  int calls = 0;
  StandinOptions options = Under(policy);
  options.before = [&](Gpu& inner, int32_t rank) -> std::unique_ptr<Gpu> {
    if (rank != 1) return nullptr;
    return std::make_unique<GpuBefore>(inner, [&](const char*) { ++calls; });
  };
  EXPECT_FALSE(RunEverything(options).ended());
  return calls;
}

TEST(GpuFailures, AnErrorOfAnyCallEndsAllRanksAndIsNamed) {
  int told = 0;
  for (const TimingPolicy policy :
       {TimingPolicy::kEager, TimingPolicy::kLazyComm, TimingPolicy::kRandom}) {
    const int calls = CallsOfRankOne(policy);
    EXPECT_GT(calls, 50);
    for (int fails = 0; fails < calls; ++fails) {
      int number = 0;
      std::string name;
      StandinOptions options = Under(policy);
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
      EXPECT_THAT(run.ends[1].reason, HasSubstr("rank 1: ")) << run.ends[1].reason;
      EXPECT_THAT(run.ends[1].reason, HasSubstr(name + " on x: cudaErrorLaunchFailure (injected)"))
          << run.ends[1].reason;
      for (const size_t other : {0u, 2u}) {
        if (run.ends[other].reason.empty()) continue;  // had all it needed
        EXPECT_THAT(run.ends[other].reason, HasSubstr("(injected)")) << run.ends[other].reason;
        ++told;
      }
    }
  }
  EXPECT_GT(told, 100);
}

// What has been issued may still run after the end: memory goes back behind it.
TEST(GpuFailures, WorkThatOutlivesTheEndFindsItsMemory) {
  for (const TimingPolicy policy : kTimingPolicies) {
    std::vector<float> seen[2];
    RunStandin(2, Under(policy), [&](BodiesOnDevice& f) {
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

TEST(GpuFailures, AnErrorAtTheEndOfACommunicatorIsTold) {
  StandinOptions options = Under(TimingPolicy::kRandom);
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

TEST(GpuFailures, AnAsynchronousErrorOfACommunicatorEndsAWait) {
  StandinOptions options = Under(TimingPolicy::kEager);
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
