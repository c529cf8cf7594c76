#include "conformance/checks/testing/replicate.h"

#include <algorithm>

#include "conformance/trace/trace_builder.h"

namespace shardproof::graph {

namespace {

struct Numbers {
  int32_t allocs = 0, events = 0, calls = 0, requests = 0;
};

Numbers CountNumbers(const Trace& trace) {
  Numbers numbers;
  for (const Event& event : trace.events) {
    numbers.allocs = std::max(numbers.allocs, event.alloc + 1);
    numbers.events = std::max(numbers.events, event.event + 1);
    numbers.calls = std::max(numbers.calls, event.call + 1);
    numbers.requests = std::max(numbers.requests, event.request + 1);
  }
  for (const Range& range : trace.ranges)
    numbers.allocs = std::max(numbers.allocs, range.alloc + 1);
  return numbers;
}

// Only in the first copy, or only in the last.
bool Opens(EventKind kind) {
  return kind == EventKind::kStreamCreate || kind == EventKind::kGroupCreate ||
         kind == EventKind::kGroupAsk;
}
bool Closes(EventKind kind) {
  return kind == EventKind::kStreamDestroy || kind == EventKind::kGroupDestroy;
}

Trace ReplicateRank(const Trace& from, int64_t copies) {
  Trace to = from;
  to.events.clear();
  to.ranges.clear();
  to.events.reserve(from.events.size() * static_cast<size_t>(copies));
  const Numbers numbers = CountNumbers(from);
  for (int64_t copy = 0; copy < copies; ++copy) {
    const auto shift = [&](int32_t id, int32_t count) {
      return id < 0 ? id : id + count * static_cast<int32_t>(copy);
    };
    const auto first_range = static_cast<uint32_t>(to.ranges.size());
    for (Range range : from.ranges) {
      range.alloc = shift(range.alloc, numbers.allocs);
      to.ranges.push_back(range);
    }
    for (Event event : from.events) {
      if ((Opens(event.kind) && copy > 0) || (Closes(event.kind) && copy + 1 < copies)) continue;
      event.alloc = shift(event.alloc, numbers.allocs);
      event.event = shift(event.event, numbers.events);
      event.call = shift(event.call, numbers.calls);
      event.request = shift(event.request, numbers.requests);
      if (event.kind == EventKind::kRequestWait) event.id = shift(event.id, numbers.requests);
      if (!event.ranges.empty()) {
        event.ranges.begin += first_range;
        event.ranges.end += first_range;
      }
      to.events.push_back(event);
    }
  }
  return to;
}

void AddLayer(TraceBuilder& t, int32_t layer, bool backward, const int (&stream)[3],
              int gather_group, int reduce_group, int shard, bool registers) {
  const int full = t.Alloc(stream[1], 4096, {SPF_FOR_PARAM_FULL, layer, 0},
                           registers ? SPF_REGISTRABLE : SPF_DEVICE);
  if (registers) t.GroupRegister(gather_group, full);
  t.Collective(SPF_ALL_GATHER, gather_group, stream[1], 128,
               {Reads(shard, 0, 512), Writes(full, 0, 4096)},
               {.label = {SPF_FOR_PARAM_FULL, layer, 0}});
  const auto order = [&](int from, int to) {
    const int event = t.EventCreate();
    t.Record(event, from);
    t.Wait(event, to);
    t.EventDestroy(event);
  };
  order(stream[1], stream[0]);
  const int out = t.Alloc(stream[0], 1024, {SPF_FOR_ACTIVATION, layer, 0});
  t.Compute(stream[0], layer, backward ? SPF_BWD : SPF_FWD, 0,
            {Reads(full, 0, 2048), Reads(full, 2048, 2048), Writes(out, 0, 1024)});
  order(stream[0], stream[1]);
  if (registers) t.GroupDeregister(gather_group, full);
  t.Free(stream[1], full);
  if (backward) {
    const int grad = t.Alloc(stream[0], 4096, {SPF_FOR_GRAD, layer, 0});
    t.Launch(stream[0], SPF_K_FILL, {Writes(grad, 0, 4096)});
    order(stream[0], stream[2]);
    t.Collective(SPF_REDUCE_SCATTER, reduce_group, stream[2], 128,
                 {Reads(grad, 0, 4096), Writes(shard, 512, 512)},
                 {.label = {SPF_FOR_GRAD, layer, 0}});
    t.Free(stream[2], grad);
  }
  t.Free(stream[0], out);
}

}  // namespace

std::vector<Trace> Replicate(const std::vector<Trace>& traces, int64_t events) {
  int64_t have = 0;
  for (const Trace& trace : traces) {
    for (const Event& event : trace.events) have += !Opens(event.kind) && !Closes(event.kind);
  }
  const int64_t copies = have == 0 ? 1 : (events + have - 1) / have;
  std::vector<Trace> result;
  for (const Trace& trace : traces) result.push_back(ReplicateRank(trace, copies));
  return result;
}

std::vector<Trace> SyntheticRun(int32_t ranks, int32_t layers, bool registers) {
  std::vector<Trace> traces;
  std::vector<int32_t> all;
  for (int32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
  for (int32_t rank = 0; rank < ranks; ++rank) {
    TraceBuilder t(rank, ranks);
    const int reduce = t.Group("dp_cp", all), gather = t.Group("dp_cp_ag", all);
    const int stream[] = {t.Stream("compute"), t.Stream("gather"), t.Stream("reduce")};
    const int shard = t.Alloc(stream[1], 1024, {SPF_FOR_PARAM_SHARD, -1, -1},
                              registers ? SPF_REGISTRABLE : SPF_DEVICE);
    const std::vector<int> users =
        registers ? std::vector<int>{gather, reduce} : std::vector<int>{};
    for (const int group : users) t.GroupRegister(group, shard);
    const auto order = [&](int from, int to) {
      const int event = t.EventCreate();
      t.Record(event, from);
      t.Wait(event, to);
    };
    order(stream[1], stream[0]);
    order(stream[1], stream[2]);
    for (int32_t layer = 0; layer < layers; ++layer)
      AddLayer(t, layer, false, stream, gather, reduce, shard, registers);
    for (int32_t layer = layers; layer-- > 0;)
      AddLayer(t, layer, true, stream, gather, reduce, shard, registers);
    order(stream[2], stream[1]);
    order(stream[0], stream[1]);
    for (const int group : users) t.GroupDeregister(group, shard);
    t.Free(stream[1], shard);
    order(stream[1], stream[0]);
    order(stream[1], stream[2]);
    traces.push_back(t.Done());
  }
  return traces;
}

}  // namespace shardproof::graph
