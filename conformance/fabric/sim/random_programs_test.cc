// Any program, right or wrong: no crash, no bytes out of bounds (with sanitizers), the same again
// from the same seed.
#include <gtest/gtest.h>

#include "conformance/fabric/sim/testing.h"
#include "conformance/fabric/sim/timing_policy.h"

namespace shardproof {
namespace {

// One rank's walk. Ranks share the seed, so that most collectives match; now and then a rank does
// something else.
class Walk {
 public:
  Walk(Fabric& f, uint64_t seed, int wrong_percent)
      : p_(f),
        shared_(seed),
        own_(seed * 64 + static_cast<uint64_t>(f.rank())),
        wrong_percent_(wrong_percent) {
    for (const char* name : {"a", "b", "c"}) streams_.push_back(f.CreateStream(name, 0));
    for (int i = 0; i < 3; ++i) events_.push_back(f.CreateEvent());
    groups_ = {p_.world, f.OpenGroup("twin", Everybody(f.world()))};
  }

  void Run(int steps) {
    for (int step = 0; step < steps && !p_.f.aborted(); ++step) {
      const uint64_t what = shared_.Below(10);
      const bool wrong = own_.Below(100) < static_cast<uint64_t>(wrong_percent_);
      if (what < 5) Communicate(wrong);
      if (what == 5) p_.f.Record(events_[own_.Below(3)], Stream());
      if (what == 6) p_.f.Wait(events_[own_.Below(3)], Stream());
      if (what == 7) p_.f.SyncStream(Stream());
      if (what == 8) p_.f.Enqueue(Stream(), "work", [] {});
      if (what == 9) Split(wrong);
    }
    p_.f.Drain();
    for (const auto& [block, stream] : blocks_) p_.f.Free(stream, block);
  }

 private:
  int32_t Stream() { return streams_[own_.Below(3)]; }
  Block Memory(int32_t stream, uint64_t floats) {
    blocks_.emplace_back(p_.Floats(stream, floats), stream);
    return blocks_.back().first;
  }
  void Communicate(bool wrong) {
    std::vector<CommOp> ops;
    const uint64_t count = 1 + shared_.Below(3);
    for (uint64_t i = 0; i < count; ++i) {
      Random& random = wrong ? own_ : shared_;
      const auto n = static_cast<size_t>(p_.f.world());
      const int32_t kind = static_cast<int32_t>(1 + random.Below(6)), stream = Stream();
      const uint64_t elements = random.Below(5);
      CommOp op = p_.Op(kind, groups_[random.Below(2)], stream, Memory(stream, 8 * n),
                        Memory(stream, 8 * n), elements);
      op.peer = static_cast<int32_t>(random.Below(n));
      op.send_counts.assign(n, elements);
      op.recv_counts.assign(n, elements);
      if (!wrong || own_.Below(2)) ops.push_back(op);
    }
    p_.f.Communicate(ops);
  }
  void Split(bool wrong) {
    const std::vector<int32_t> members =
        wrong ? std::vector<int32_t>{p_.f.rank()} : Everybody(p_.f.world());
    int32_t group = -1;
    std::string key;
    if (p_.f.CreateGroup(p_.world, members, &group, &key) == SPF_OK) p_.f.DestroyGroup(group);
  }

  Program p_;
  Random shared_, own_;
  int wrong_percent_;
  std::vector<int32_t> streams_, events_, groups_;
  std::vector<std::pair<Block, int32_t>> blocks_;
};

TEST(RandomPrograms, RunTheSameAgainAndNeverCrash) {
  int deadlocks = 0, mismatches = 0, fine = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const TimingPolicy policy : kTimingPolicies) {
      const int world = static_cast<int>(2 + seed % 4), wrong = seed % 3 == 0 ? 0 : 3;
      const auto walk = [&](Fabric& f) { Walk(f, seed, wrong).Run(30); };
      const SimResult first = RunSim(world, With(policy, seed), walk);
      const SimResult again = RunSim(world, With(policy, seed), walk);
      EXPECT_EQ(first.timing_hash, again.timing_hash);
      EXPECT_EQ(first.blocked, again.blocked);
      EXPECT_EQ(first.mismatches, again.mismatches);
      for (const std::string& error : first.errors) EXPECT_EQ(error, "");
      for (const int32_t live : first.live_blocks) EXPECT_EQ(live, 0);
      EXPECT_TRUE(wrong != 0 || first.mismatches.empty());
      deadlocks += first.deadlock;
      mismatches += !first.mismatches.empty();
      fine += !first.deadlock && first.mismatches.empty();
    }
  }
  EXPECT_GT(deadlocks, 20);
  EXPECT_GT(mismatches, 20);
  EXPECT_GT(fine, 50);
}

}  // namespace
}  // namespace shardproof
