// standin_testing.h: how do tests run programs of many ranks on NcclFabric over the stand-in?
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/fabric/forwarding_fabric.h"
#include "conformance/fabric/nccl/nccl_fabric.h"
#include "conformance/fabric/nccl/standin_gpu.h"
#include "conformance/fabric/nccl/standin_rendezvous.h"
#include "conformance/fabric/sim/sim.h"

namespace shardproof {

// For programs written for CPU fabrics, whose bodies work on memory themselves: their bodies become
// device work.
class BodiesOnDevice : public ForwardingFabric {
 public:
  explicit BodiesOnDevice(NcclFabric& fabric) : ForwardingFabric(fabric), fabric_(fabric) {}
  void Enqueue(int32_t stream, std::string_view what, Body body) override {
    fabric_.Enqueue(stream, what, [&] { fabric_.QueueOf(stream).Run(std::move(body)); });
  }
  NcclFabric& nccl() { return fabric_; }

 private:
  NcclFabric& fabric_;
};

struct StandinOptions {
  SimOptions sim;
  double stall_seconds = 30;
  bool communicators_at_open = false, poison = true;
  int32_t connect_up_to = NcclOptions{}.connect_up_to;
  // Puts something before the Gpu of a rank; null: nothing.
  std::function<std::unique_ptr<Gpu>(Gpu& inner, int32_t rank)> before;
};

struct StandinRun {
  SimResult sim;
  std::vector<NcclEnd> ends;            // by rank; no reason: the run was not ended
  std::vector<StandinGpu::Live> live;   // by rank: what the fabric left behind
  std::vector<std::string> mismatches;  // of all ranks
  bool ended() const {
    for (const NcclEnd& end : ends) {
      if (!end.reason.empty()) return true;
    }
    return false;
  }
  std::string Text() const {
    std::string text;
    for (const NcclEnd& end : ends) text += end.reason + "\n" + end.pending;
    for (const std::string& error : sim.errors) text += error + "\n";
    return text;
  }
};

// rank_main runs on every rank; then the rank's work is drained, unless the run has ended.
inline StandinRun RunStandin(int world, const StandinOptions& options,
                             const std::function<void(BodiesOnDevice&)>& rank_main) {
  StandinRun run;
  run.ends.resize(static_cast<size_t>(world));
  run.live.resize(static_cast<size_t>(world));
  StandinTable table;
  StandinIds ids;
  run.sim = RunSim(world, options.sim, [&](Fabric& sim) {
    const auto rank = static_cast<size_t>(sim.rank());
    StandinClock clock;
    StandinGpu gpu(sim, clock, ids);
    std::unique_ptr<Gpu> before;
    if (options.before) before = options.before(gpu, sim.rank());
    Gpu& used = before ? *before : gpu;
    StandinRendezvous rendezvous(sim, clock, table);
    {
      PinnedPool pinned(used, 1 << 16);
      NcclOptions nccl;
      nccl.stall_seconds = options.stall_seconds;
      nccl.now_us = [&clock] { return clock.now_us; };
      nccl.communicators_at_open = options.communicators_at_open;
      nccl.poison = options.poison;
      nccl.connect_up_to = options.connect_up_to;
      NcclFabric fabric(used, pinned, rendezvous, nccl);
      BodiesOnDevice device(fabric);
      rank_main(device);
      fabric.Drain();
      if (fabric.aborted()) run.ends[rank] = fabric.end();
      for (const std::string& text : fabric.mismatches()) run.mismatches.push_back(text);
    }
    run.live[rank] = gpu.live();
    sim.Drain();  // frees and marks are still on their way
  });
  return run;
}

}  // namespace shardproof
