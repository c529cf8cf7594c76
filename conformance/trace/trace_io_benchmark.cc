// How fast are traces written and read? One argument: million events in all (1). A plausible mix
// per training step.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "conformance/trace/reader.h"
#include "conformance/trace/trace_builder.h"
#include "conformance/trace/writer.h"

namespace {

using shardproof::Reads;
using shardproof::TraceBuilder;
using shardproof::Updates;
using shardproof::Writes;

// Eleven events: a gather, its synchronisation, a compute that reads it, a release.
void AddLayer(TraceBuilder& t, int group, int compute, int comm, int shard, int layer) {
  const int full = t.Alloc(comm, 4096, {SPF_FOR_PARAM_FULL, layer, 0});
  t.Collective(SPF_ALL_GATHER, group, comm, 128, {Reads(shard, 0, 512), Writes(full, 0, 4096)},
               {.label = {SPF_FOR_PARAM_FULL, layer, 0}});
  const int ready = t.EventCreate();
  t.Record(ready, comm);
  t.Wait(ready, compute);
  t.EventDestroy(ready);
  t.Mark(SPF_HOOK_PRE_FORWARD, layer, 0);
  t.Compute(compute, layer, SPF_FWD, 0,
            {Reads(full, 0, 4096), Reads(shard, 0, 64), Writes(shard, 512, 1024)},
            {{layer, 0x0123456789ABCDEFu + static_cast<uint64_t>(layer), -1, 1024}});
  t.Launch(compute, SPF_K_AXPBY, {Reads(full, 0, 4096), Updates(shard, 2048, 4096)});
  t.Publish(compute, SPF_RESULT_GRAD, layer, 0, 128, SPF_F32, 0xFEDCBA9876543210u,
            Reads(shard, 2048, 512));
  t.Free(compute, full);
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t events = static_cast<int64_t>((argc > 1 ? std::atof(argv[1]) : 1) * 1e6);
  TraceBuilder t(0, 8);
  const int group = t.Group("dp_cp", {0, 1, 2, 3, 4, 5, 6, 7});
  const int compute = t.Stream("compute"), comm = t.Stream("comm");
  const int shard = t.Alloc(compute, 1 << 20);
  for (int layer = 0; t.size() < events; ++layer)
    AddLayer(t, group, compute, comm, shard, layer % 1000);
  const shardproof::Trace trace = t.Done();

  auto start = std::chrono::steady_clock::now();
  const std::string text = shardproof::TraceToText(trace);
  const double write = Seconds(start);
  start = std::chrono::steady_clock::now();
  const shardproof::Trace back = shardproof::ReadTrace(text, "benchmark");
  const double read = Seconds(start);
  std::printf("%zu events, %.1f MB: written in %.3f s, read in %.3f s (%.0f ns an event)\n",
              back.events.size(), static_cast<double>(text.size()) / 1e6, write, read,
              read * 1e9 / static_cast<double>(events));
  return back.events.size() == trace.events.size() ? 0 : 1;
}
