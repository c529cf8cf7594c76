#include "conformance/checks/program/program.h"

#include <algorithm>
#include <stdexcept>

#include "conformance/checks/program/rank_lowering.h"
#include "conformance/checks/program/sequences.h"

namespace shardproof::graph {

std::vector<uint32_t> Program::PartsOf(uint32_t operation) const {
  const Sequence& sequence = SequenceOf(operation);
  const uint32_t position = operation - sequence.first_operation;
  std::vector<uint32_t> found;
  for (const auto& list : sequence.parts) {
    if (position < list.size()) found.push_back(list[position]);
  }
  return found;
}

const Sequence& Program::SequenceOf(uint32_t operation) const {
  const auto after =
      std::upper_bound(sequences.begin(), sequences.end(), operation,
                       [](uint32_t o, const Sequence& s) { return o < s.first_operation; });
  auto at = after - 1;
  while (at->length == 0) --at;
  return *at;
}

namespace {

// A call that blocks the host inside an open group is lowered before the group's kernels; its place
// is by call.
void PlaceInCallOrder(Program& program, std::vector<uint32_t>& list) {
  const auto by_event = [&](uint32_t a, uint32_t b) {
    return program.parts[a].event < program.parts[b].event;
  };
  if (std::is_sorted(list.begin(), list.end(), by_event)) return;
  std::stable_sort(list.begin(), list.end(), by_event);
  for (size_t i = 0; i < list.size(); ++i)
    program.parts[list[i]].position = static_cast<uint32_t>(i);
}

}  // namespace

Program Lower(const std::vector<Trace>& traces, const LowerOptions& options) {
  Program program;
  program.traces = &traces;
  size_t events = 0;
  for (const Trace& trace : traces) events += trace.events.size();
  program.entries.reserve(events);
  program.prerequisites.reserve(events * 2);
  Sequences sequences(program);
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    if (traces[rank].rank != static_cast<int32_t>(rank)) {
      throw std::invalid_argument("traces must be in rank order: found rank " +
                                  std::to_string(traces[rank].rank) + " at place " +
                                  std::to_string(rank));
    }
    program.first_entry.push_back(static_cast<uint32_t>(program.entries.size()));
    const bool drop = options.drop_rank == static_cast<int32_t>(rank);
    RankLowering(program, sequences, traces[rank], drop ? options.drop_event : -1).Run();
  }
  program.first_entry.push_back(static_cast<uint32_t>(program.entries.size()));
  for (Sequence& sequence : program.sequences) {
    for (auto& list : sequence.parts) {
      PlaceInCallOrder(program, list);
      sequence.length = std::max(sequence.length, static_cast<uint32_t>(list.size()));
    }
    sequence.first_operation = program.operations;
    program.operations += sequence.length;
  }
  return program;
}

}  // namespace shardproof::graph
