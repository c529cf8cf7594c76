#include "conformance/checks/graph/overlap_work.h"

#include <algorithm>
#include <string>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/base/range_map.h"
#include "conformance/common/at.h"

namespace shardproof::overlap {

using namespace graph;

namespace {

int32_t Block(const Trace& trace, const Event& event) {
  return event.ranges.empty() ? -1 : trace.ranges[event.ranges.end - 1].alloc;
}

// Entry calls.
std::set<int32_t> TrainSteps(const Trace& trace, int32_t instance) {
  std::set<int32_t> steps;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCallBegin && event.instance == instance &&
        trace.Text(event.text) == "train_step")
      steps.insert(event.call);
  }
  return steps;
}

// Streams.
std::set<int32_t> Computing(const Trace& trace) {
  std::set<int32_t> streams;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::kCompute) streams.insert(event.stream);
  }
  return streams;
}

// What wrote bytes of the ranges last; kNone: nothing.
uint32_t LastIn(const RangeMap<uint32_t>& writers, const std::vector<Range>& ranges) {
  uint32_t last = kNone;
  for (const Range& range : ranges) {
    for (const auto& piece : writers.Get(range))
      last = last == kNone ? piece.value : std::max(last, piece.value);
  }
  return last;
}

}  // namespace

const Brought* Collector::BroughtOf(const Part& part) const {
  if (brought_.empty()) return nullptr;
  const BroughtByEvent& of = At(brought_, part.rank);
  const auto at = of.find(part.event);
  return at == of.end() ? nullptr : &at->second;
}

bool Collector::BytesTell(size_t rank, int32_t instance, bool Brought::*carried) const {
  if (brought_.empty()) return false;
  const Trace& trace = program_.trace(static_cast<int32_t>(rank));
  return std::any_of(brought_[rank].begin(), brought_[rank].end(), [&](const auto& one) {
    return one.second.*carried && At(trace.events, one.first).instance == instance;
  });
}

bool Collector::Is(uint32_t e, std::initializer_list<int> kinds,
                   std::initializer_list<int> purposes, bool Brought::*carried,
                   bool by_bytes) const {
  const Entry& entry = program_.entries[e];
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    const Event& event = program_.event(program_.parts[p]);
    const bool kind = std::find(kinds.begin(), kinds.end(), event.collective) != kinds.end();
    const Brought* brought = BroughtOf(program_.parts[p]);
    const bool purpose =
        by_bytes ? brought != nullptr && brought->*carried
                 : std::find(purposes.begin(), purposes.end(), event.purpose) != purposes.end();
    const auto& ranks = At(program_.trace(entry.rank).groups, event.group).world_ranks;
    if (kind && purpose && ranks.size() > 1) return true;
  }
  return false;
}

int32_t Collector::Unit(const Part& part, bool by_bytes) const {
  const Brought* brought = by_bytes ? BroughtOf(part) : nullptr;
  return brought == nullptr || brought->label_fits ? program_.event(part).module : brought->unit;
}

int64_t Collector::ElementsOf(uint32_t e) const {
  const Entry& entry = program_.entries[e];
  int64_t elements = 0;
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    const Event& event = program_.event(program_.parts[p]);
    const auto& ranks = At(program_.trace(entry.rank).groups, event.group).world_ranks;
    const bool shards = event.collective == SPF_REDUCE_SCATTER;
    elements += event.count * static_cast<int64_t>(shards ? ranks.size() : 1);
  }
  return elements;
}

std::set<int32_t> Collector::KeysOf(uint32_t e) const {
  const Entry& entry = program_.entries[e];
  std::set<int32_t> keys;
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    if (const Brought* brought = BroughtOf(program_.parts[p]))
      keys.insert(brought->keys.begin(), brought->keys.end());
  }
  return keys;
}

std::vector<Range> Collector::Ranges(uint32_t e, uint8_t access) const {
  const Entry& entry = program_.entries[e];
  const Trace& trace = program_.trace(entry.rank);
  std::vector<Range> ranges;
  for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
    const Event& event = program_.event(program_.parts[p]);
    for (uint32_t r = event.ranges.begin; r < event.ranges.end; ++r) {
      if ((trace.ranges[r].access & access) != 0) ranges.push_back(trace.ranges[r]);
    }
  }
  return ranges;
}

Work Collector::Collect(size_t rank, int32_t instance, const Expected& expected) const {
  Work work;
  const Trace& trace = program_.trace(static_cast<int32_t>(rank));
  const std::set<int32_t> training = TrainSteps(trace, instance), computing = Computing(trace);
  const bool gathers_by_bytes =
                 expected.gathers_by_name && BytesTell(rank, instance, &Brought::params),
             reductions_by_bytes =
                 expected.reductions_by_name && BytesTell(rank, instance, &Brought::grads);
  RangeMap<uint32_t> filled_up;
  for (uint32_t e = program_.first_entry[rank]; e < program_.first_entry[rank + 1]; ++e) {
    const Event& event = program_.event(program_.entries[e]);
    if (event.instance != instance || !training.contains(event.call)) continue;
    if (event.kind == EventKind::kCompute) work.computes.push_back(e);
    if (program_.entries[e].kind != EntryKind::kKernel) {
      if (computing.contains(program_.entries[e].stream)) work.on_compute.push_back(e);
      continue;
    }
    const Part& part = program_.parts[program_.entries[e].parts.begin];
    const Event& first = program_.event(part);
    if (Is(e, {SPF_ALL_GATHER, SPF_ALL_GATHER_V, SPF_BROADCAST},
           {SPF_FOR_PARAM_FULL, SPF_FOR_PARAM_SHARD}, &Brought::params, gathers_by_bytes)) {
      const auto& ranks = At(trace.groups, first.group).world_ranks;
      const auto& outer = expected.outer;
      if (std::find(outer.begin(), outer.end(), ranks) != outer.end()) {
        for (const Range& shard : Ranges(e, kWrite)) filled_up.Put(shard, e);
        continue;
      }
      const uint32_t filled = LastIn(filled_up, Ranges(e, kRead));
      if (filled != kNone) work.filled_up[e] = filled;
      work.gathers.push_back(e);
      const int32_t unit = expected.buckets ? Block(trace, first) : Unit(part, gathers_by_bytes);
      work.gathered[event.call].insert(unit);
      if (!expected.buckets) continue;
      std::vector<GatheredBucket>& buckets = work.buckets[event.call];
      if (buckets.empty() || buckets.back().block != unit) buckets.push_back({unit, {}});
      buckets.back().keys.merge(KeysOf(e));
    } else if (Is(e, {SPF_REDUCE_SCATTER, SPF_ALL_REDUCE}, {SPF_FOR_GRAD, SPF_FOR_GRAD_SHARD},
                  &Brought::grads, reductions_by_bytes)) {
      const auto& ranks = At(trace.groups, first.group).world_ranks;
      if (!expected.data.Share(static_cast<int32_t>(rank), ranks)) continue;
      const int32_t module =
          expected.buckets ? Block(trace, first) : Unit(part, reductions_by_bytes);
      work.reductions.push_back(e);
      work.reduced[event.call].insert(module);
      work.elements[event.call][module] += ElementsOf(e);
    }
  }
  return work;
}

}  // namespace shardproof::overlap
