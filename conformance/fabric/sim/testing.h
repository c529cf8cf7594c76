// testing.h: how do tests say in a line what a rank does?
#pragma once
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/sim/sim.h"

namespace shardproof {

inline std::vector<int32_t> Everybody(int world) {
  std::vector<int32_t> ranks(static_cast<size_t>(world));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

inline constexpr TimingPolicy kTimingPolicies[] = {TimingPolicy::kEager, TimingPolicy::kLazyComm,
                                                   TimingPolicy::kRandom, TimingPolicy::kPct,
                                                   TimingPolicy::kLazyCompute};

inline SimOptions With(TimingPolicy policy, uint64_t seed = 1) {
  SimOptions options;
  options.policy = policy;
  options.seed = seed;
  return options;
}

// One rank's program. Blocks hold floats; streams and groups are the fabric's.
class Program {
 public:
  explicit Program(Fabric& fabric) : f(fabric), world(f.OpenGroup("world", Everybody(f.world()))) {}

  Block Floats(int32_t stream, uint64_t count) {
    return f.Alloc(stream, count * sizeof(float), false);
  }
  static float* At(const Block& block) { return reinterpret_cast<float*>(block.host); }
  static uint64_t Count(const Block& block) { return block.bytes / sizeof(float); }
  void Fill(int32_t stream, const Block& block, float value) {
    f.Enqueue(stream, "fill", [block, value] { std::fill_n(At(block), Count(block), value); });
  }
  // Reads in stream order; *to must outlive the run.
  void Read(int32_t stream, const Block& block, std::vector<float>* to) {
    f.Enqueue(stream, "read", [block, to] { to->assign(At(block), At(block) + Count(block)); });
  }
  CommOp Op(int32_t kind, int32_t group, int32_t stream, const Block& send, const Block& recv,
            uint64_t count, int32_t peer = -1) {
    CommOp op;
    op.kind = kind;
    op.dtype = SPF_F32;
    op.group = group;
    op.stream = stream;
    op.send = send.host;
    op.recv = recv.host;
    op.count = count;
    op.peer = peer;
    op.what = "op";
    return op;
  }
  void AllReduce(int32_t group, int32_t stream, const Block& block) {
    f.Communicate({Op(SPF_ALL_REDUCE, group, stream, block, block, Count(block))});
  }
  void AllGather(int32_t group, int32_t stream, const Block& send, const Block& recv) {
    f.Communicate({Op(SPF_ALL_GATHER, group, stream, send, recv, Count(send))});
  }
  // later waits for all that earlier has so far
  void After(int32_t later, int32_t earlier) {
    const int32_t event = f.CreateEvent();
    f.Record(event, earlier);
    f.Wait(event, later);
    f.DestroyEvent(event);
  }

  Fabric& f;
  int32_t world;
};

}  // namespace shardproof
