// Timings: repeatable, different between seeds, and adversarial where a wait is missing.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "conformance/fabric/sim/testing.h"

namespace shardproof {
namespace {

// A few steps of gather, compute, reduce on two streams. Logs every body in the order in which it
// ran.
void Train(Fabric& f, std::string* log) {
  Program p(f);
  const int32_t compute = f.CreateStream("compute", 0), comm = f.CreateStream("comm", 0);
  for (int step = 0; step < 4; ++step) {
    const Block shard = p.Floats(comm, 4),
                full = p.Floats(comm, 4 * static_cast<uint64_t>(f.world()));
    p.Fill(comm, shard, static_cast<float>(f.rank()));
    p.AllGather(p.world, comm, shard, full);
    p.After(compute, comm);
    f.Enqueue(compute, "work", [log, rank = f.rank(), step] {
      *log += std::to_string(rank) + ":" + std::to_string(step) + " ";
    });
    p.After(comm, compute);
    f.Free(comm, shard);
    f.Free(comm, full);
    if (step % 2 == 1) {
      EXPECT_EQ(f.SyncStream(compute), SPF_OK);
    }
  }
  EXPECT_EQ(f.Drain(), SPF_OK);
}

TEST(Timing, TheSameSeedGivesTheSameTimingAndAnotherOneDoesNot) {
  for (const TimingPolicy policy : kTimingPolicies) {
    std::set<uint64_t> hashes;
    for (uint64_t seed = 0; seed < 10; ++seed) {
      std::string log[2];
      SimResult result[2];
      for (int run = 0; run < 2; ++run) {
        result[run] = RunSim(4, With(policy, seed), [&](Fabric& f) { Train(f, &log[run]); });
        EXPECT_FALSE(result[run].aborted);
      }
      EXPECT_EQ(log[0], log[1]);
      EXPECT_EQ(result[0].timing_hash, result[1].timing_hash);
      EXPECT_EQ(result[0].timing_steps, result[1].timing_steps);
      hashes.insert(result[0].timing_hash);
    }
    EXPECT_EQ(hashes.size() == 1, policy == TimingPolicy::kEager) << static_cast<int>(policy);
  }
}

// Of seeds runs, how many read something else than the right value?
int WrongReads(TimingPolicy policy, int seeds, const std::function<float(Program&)>& main,
               float right) {
  int wrong = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    bool bad = false;
    RunSim(2, With(policy, static_cast<uint64_t>(seed)), [&](Fabric& f) {
      Program p(f);
      bad = main(p) != right || bad;
    });
    wrong += bad;
  }
  return wrong;
}

// The compute stream reads a gathered buffer without waiting for the gather (or with wait).
float ReadGathered(Program& p, bool wait) {
  const int32_t compute = p.f.CreateStream("compute", 0), comm = p.f.CreateStream("comm", 0);
  const Block shard = p.Floats(comm, 1), full = p.Floats(comm, 2);
  p.Fill(comm, full, 7);  // the stale value
  p.Fill(comm, shard, 42);
  EXPECT_EQ(p.f.SyncStream(comm), SPF_OK);
  p.AllGather(p.world, comm, shard, full);
  if (wait) p.After(compute, comm);
  std::vector<float> got;
  p.Read(compute, full, &got);
  EXPECT_EQ(p.f.Drain(), SPF_OK);
  return got[0];
}

TEST(Timing, AMissingWaitBehindAGatherReadsStaleUnderLazyComm) {
  const auto missing = [](Program& p) { return ReadGathered(p, false); };
  EXPECT_EQ(WrongReads(TimingPolicy::kLazyComm, 5, missing, 42), 5);
  EXPECT_GT(WrongReads(TimingPolicy::kRandom, 40, missing, 42), 0);
  EXPECT_GT(WrongReads(TimingPolicy::kPct, 40, missing, 42), 0);
  for (const TimingPolicy policy : kTimingPolicies) {
    EXPECT_EQ(WrongReads(
                  policy, 40, [](Program& p) { return ReadGathered(p, true); }, 42),
              0);
  }
}

// The reader waits for the wrong gather (the first of two on the stream).
float ReadSecond(Program& p, bool right) {
  const int32_t compute = p.f.CreateStream("compute", 0), comm = p.f.CreateStream("comm", 0);
  const int32_t twin = p.f.OpenGroup("twin", Everybody(2)), other = p.f.CreateStream("comm 2", 0);
  const Block shard = p.Floats(comm, 1), first = p.Floats(comm, 2), second = p.Floats(comm, 2);
  p.Fill(comm, second, 7);
  p.Fill(comm, shard, 42);
  EXPECT_EQ(p.f.SyncStream(comm), SPF_OK);
  p.AllGather(twin, other, shard, second);
  p.AllGather(p.world, comm, shard, first);
  p.After(compute, right ? other : comm);
  std::vector<float> got;
  p.Read(compute, second, &got);
  EXPECT_EQ(p.f.SyncStream(compute), SPF_OK);  // needs the first gather only
  EXPECT_EQ(p.f.Drain(), SPF_OK);
  return got[0];
}

TEST(Timing, LazyCommCompletesWhatSomebodyWaitsForFirst) {
  EXPECT_EQ(WrongReads(
                TimingPolicy::kLazyComm, 20, [](Program& p) { return ReadSecond(p, false); }, 42),
            20);
  EXPECT_EQ(WrongReads(
                TimingPolicy::kLazyComm, 20, [](Program& p) { return ReadSecond(p, true); }, 42),
            0);
}

// The gradient is reduced without waiting for the kernel that computes it.
float ReduceEarly(Program& p, bool wait) {
  const int32_t compute = p.f.CreateStream("compute", 0), comm = p.f.CreateStream("comm", 0);
  const Block grad = p.Floats(comm, 1), sum = p.Floats(comm, 1);
  p.Fill(comm, grad, 1);
  EXPECT_EQ(p.f.SyncStream(comm), SPF_OK);
  p.Fill(compute, grad, 21);
  if (wait) p.After(comm, compute);
  p.f.Communicate({p.Op(SPF_ALL_REDUCE, p.world, comm, grad, sum, 1)});
  std::vector<float> got;
  p.Read(comm, sum, &got);
  EXPECT_EQ(p.f.Drain(), SPF_OK);
  return got[0];
}

TEST(Timing, AMissingWaitBeforeAReductionIsSeenUnderLazyCompute) {
  EXPECT_EQ(
      WrongReads(
          TimingPolicy::kLazyCompute, 5, [](Program& p) { return ReduceEarly(p, false); }, 42),
      5);
  EXPECT_EQ(WrongReads(
                TimingPolicy::kLazyCompute, 5, [](Program& p) { return ReduceEarly(p, true); }, 42),
            0);
  EXPECT_EQ(WrongReads(
                TimingPolicy::kEager, 5, [](Program& p) { return ReduceEarly(p, false); }, 42),
            0);  // does not see it
}

// The send buffer is overwritten on another stream while the reduction may still read it.
float OverwriteSend(Program& p, bool wait) {
  const int32_t compute = p.f.CreateStream("compute", 0), comm = p.f.CreateStream("comm", 0);
  const Block grad = p.Floats(comm, 1), sum = p.Floats(comm, 1);
  p.Fill(comm, grad, 21);
  p.After(compute, comm);
  p.f.Communicate({p.Op(SPF_ALL_REDUCE, p.world, comm, grad, sum, 1)});
  if (wait) p.After(compute, comm);
  p.Fill(compute, grad, 0);
  std::vector<float> got;
  p.Read(comm, sum, &got);
  EXPECT_EQ(p.f.Drain(), SPF_OK);
  return got[0];
}

TEST(Timing, AnOverwrittenSendBufferIsSeenUnderLazyComm) {
  EXPECT_EQ(WrongReads(
                TimingPolicy::kLazyComm, 5, [](Program& p) { return OverwriteSend(p, false); }, 42),
            5);
  EXPECT_GT(WrongReads(
                TimingPolicy::kRandom, 40, [](Program& p) { return OverwriteSend(p, false); }, 42),
            0);
  for (const TimingPolicy policy : kTimingPolicies) {
    EXPECT_EQ(WrongReads(
                  policy, 20, [](Program& p) { return OverwriteSend(p, true); }, 42),
              0);
  }
}

// The same after the reduction has surely started: only a late read of the send bytes shows it.
float OverwriteAfterStart(Program& p) {
  const int32_t compute = p.f.CreateStream("compute", 0), comm = p.f.CreateStream("comm", 0);
  const int32_t twin = p.f.OpenGroup("twin", Everybody(2)), other = p.f.CreateStream("comm 2", 0);
  const Block grad = p.Floats(comm, 1), sum = p.Floats(comm, 1), more = p.Floats(other, 1);
  p.Fill(comm, grad, 21);
  p.f.Communicate({p.Op(SPF_ALL_REDUCE, p.world, comm, grad, sum, 1)});
  p.AllReduce(twin, other, more);
  // Nothing but completions was left to do when this completed.
  EXPECT_EQ(p.f.SyncStream(other), SPF_OK);
  p.Fill(compute, grad, 0);
  std::vector<float> got;
  p.Read(comm, sum, &got);
  EXPECT_EQ(p.f.Drain(), SPF_OK);
  return got[0];
}

TEST(Timing, LazyCommReadsSendBytesLate) {
  EXPECT_EQ(WrongReads(TimingPolicy::kLazyComm, 10, OverwriteAfterStart, 42), 10);
}

// One rank reduces before its kernel has run, the other is late for good reasons: only an early
// read shows it.
TEST(Timing, LazyComputeReadsSendBytesEarly) {
  EXPECT_EQ(WrongReads(
                TimingPolicy::kLazyCompute, 20,
                [](Program& p) { return ReduceEarly(p, p.f.rank() == 1); }, 42),
            20);
}

// A broadcast's root may be done, and overwrite its buffer, before others have taken part.
TEST(Timing, PeersSeeWhatWasSentEvenIfTheSenderIsLongDone) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RunSim(3, With(TimingPolicy::kRandom, seed), [](Fabric& f) {
      Program p(f);
      const int32_t s = f.CreateStream("comm", 0);
      const Block block = p.Floats(s, 1);
      for (int round = 0; round < 4; ++round) {
        p.Fill(s, block, static_cast<float>(10 * round + f.rank()));
        f.Communicate({p.Op(SPF_BROADCAST, p.world, s, block, block, 1, 1)});
        std::vector<float> got;
        p.Read(s, block, &got);
        EXPECT_EQ(f.SyncStream(s), SPF_OK);
        EXPECT_EQ(got, std::vector<float>{static_cast<float>(10 * round + 1)});
      }
    });
  }
}

// How many rounds may rank 0 be ahead of rank 1 when only rank 1 waits for rank 0's broadcasts?
int MaxLead(TimingPolicy policy, uint64_t seed, bool drift) {
  SimOptions options = With(policy, seed);
  options.drift = drift;
  int round[2] = {0, 0}, lead = 0;
  RunSim(2, options, [&](Fabric& f) {
    Program p(f);
    const int32_t s = f.CreateStream("comm", 0);
    for (int i = 0; i < 50; ++i) {
      const Block block = p.Floats(s, 1);
      p.Fill(s, block, 1);
      f.Free(s, block);
      ++round[f.rank()];
      lead = std::max(lead, std::abs(round[0] - round[1]));
    }
    EXPECT_EQ(f.Drain(), SPF_OK);
  });
  return lead;
}

TEST(Timing, DriftLetsRanksRunFarAhead) {
  EXPECT_LE(MaxLead(TimingPolicy::kEager, 1, false), 1);
  EXPECT_EQ(MaxLead(TimingPolicy::kEager, 1, true), 50);
  int far = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) far += MaxLead(TimingPolicy::kRandom, seed, true) > 25;
  EXPECT_GT(far, 0);
  EXPECT_EQ(MaxLead(TimingPolicy::kLazyComm, 1, false), 50);
}

TEST(Timing, SixtyFourRanksTrain) {
  for (const TimingPolicy policy : kTimingPolicies) {
    std::string log;
    const SimResult result = RunSim(64, With(policy), [&](Fabric& f) { Train(f, &log); });
    EXPECT_FALSE(result.aborted);
  }
}

// A host that waits for much device work does nothing meanwhile: who watches it sees the work.
TEST(Timing, DeviceWorkIsTold) {
  SimOptions options = With(TimingPolicy::kLazyCompute);
  int told = 0;
  std::vector<int> seen;
  options.on_device_step = [&] { ++told; };
  RunSim(1, options, [&](Fabric& f) {
    const int32_t stream = f.CreateStream("a", 0);
    for (int i = 0; i < 5; ++i) f.Enqueue(stream, "work", [&] { seen.push_back(told); });
    EXPECT_EQ(told, 0) << "hosts are not device work";
    f.SyncStream(stream);
  });
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(told, 5);
}

TEST(Timing, AddressesAreExplained) {
  SimOptions options = With(TimingPolicy::kEager);
  std::function<bool(uint64_t, std::string*)> describe;
  options.on_start = [&](auto given) { describe = std::move(given); };
  RunSim(2, options, [&](Fabric& f) {
    Program p(f);
    const Block block = p.Floats(f.CreateStream("a", 0), 4);
    std::string text;
    EXPECT_TRUE(describe(block.address + 4, &text));
    EXPECT_EQ(text, "rank " + std::to_string(f.rank()) +
                        ": byte 4 of block 0 (16 bytes), touched by the host through " +
                        "its device address: use host_access on pinned memory");
    int local = 0;
    EXPECT_FALSE(describe(reinterpret_cast<uint64_t>(&describe), &text) && local);
  });
}

}  // namespace
}  // namespace shardproof
