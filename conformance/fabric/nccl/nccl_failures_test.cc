// How does a run end that cannot go on? On all ranks, with rank, call and communicator named, never
// by hanging.
#include <gtest/gtest.h>

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
  for (const TimingPolicy policy : kTimingPolicies) {
    const StandinRun run = RunStandin(3, Under(policy), [](BodiesOnDevice& f) {
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
  StandinOptions options = Under(TimingPolicy::kLazyComm);
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
  const StandinRun run = RunStandin(2, Under(TimingPolicy::kLazyComm), [](BodiesOnDevice& f) {
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
  RunStandin(1, Under(TimingPolicy::kEager), [](BodiesOnDevice& f) {
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
  const StandinRun run = RunStandin(3, Under(TimingPolicy::kRandom), [](BodiesOnDevice& f) {
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

// Rank 0 sends and receives in one launch; rank 1 answers when its host has seen what it got. So
// fails a pipeline whose stages connect at their first message (NCCL 2.28.9 on an H100).
TEST(Failures, TheFirstAnswerMeetsForEverUnlessMembersAreConnectedBefore) {
  const auto main = [](BodiesOnDevice& f) {
    Program p(f);
    const int32_t a = f.CreateStream("a", 0), b = f.CreateStream("b", 0);
    const Block x = p.Floats(a, 1), y = p.Floats(b, 1);
    if (f.rank() == 0) {
      p.Fill(a, x, 7);
      f.Communicate(
          {p.Op(SPF_SEND, p.world, a, x, x, 1, 1), p.Op(SPF_RECV, p.world, b, y, y, 1, 1)});
    } else if (f.rank() == 1) {
      f.Communicate({p.Op(SPF_RECV, p.world, a, x, x, 1, 0)});
      if (f.SyncStream(a) != SPF_OK) return;
      f.Communicate({p.Op(SPF_SEND, p.world, a, x, x, 1, 0)});
    } else {
      p.AllReduce(p.world, a, x);  // comes to the communicator, and to no message
      return;
    }
    std::vector<float> answer;
    p.Read(b, y, &answer);
    p.AllReduce(p.world, a, x);
    if (f.Drain() != SPF_OK || f.rank() == 1) return;
    EXPECT_EQ(answer, std::vector<float>{7});
  };
  for (const TimingPolicy policy : kTimingPolicies) {
    StandinOptions options = Under(policy);
    const StandinRun connected = RunStandin(3, options, main);
    EXPECT_FALSE(connected.ended()) << connected.Text();
    options.connect_up_to = 2;
    const StandinRun late = RunStandin(3, options, main);
    ExpectAllEnded(late);
    EXPECT_TRUE(Has(late.ends[0].reason + late.ends[1].reason, "nothing has completed for 30 s"))
        << late.Text();
  }
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
  StandinOptions options = Under(TimingPolicy::kEager);
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
  const StandinRun run = RunStandin(2, Under(TimingPolicy::kPct), [](BodiesOnDevice& f) {
    const int32_t stream = f.CreateStream("s", 0);
    if (f.rank() == 1)
      f.nccl().Enqueue(stream, "adamw",
                       [] { throw GpuError("ForEach adamw", "cudaErrorLaunchFailure"); });
    EXPECT_EQ(f.SyncStream(stream), f.rank() == 1 ? SPF_ABORTED : f.SyncStream(stream));
  });
  EXPECT_EQ(run.ends[1].reason, "rank 1: in adamw: ForEach adamw: cudaErrorLaunchFailure");
}

}  // namespace
}  // namespace shardproof
