#include "conformance/checks/symmetry/compact_world.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "conformance/common/at.h"
#include "conformance/trace/packed_trace.h"

namespace shardproof::symmetry {
namespace {

bool IsMade(const Event& event) {
  return event.kind == EventKind::kGroupCreate && event.group >= 0 && event.parent >= 0;
}

std::vector<int64_t> NumbersOf(const Trace& trace, const Slice& slice) {
  return {trace.numbers.begin() + slice.begin, trace.numbers.begin() + slice.end};
}

// Takes the names out of a trace and says whether the list of each created group follows from them.
std::string WithoutNames(Trace trace, const std::vector<Comm>& comms, const Names& names,
                         const std::vector<int32_t>& first_of, const EngineOutcome& outcome) {
  for (Event& event : trace.events) {
    event.sample = std::min<int64_t>(event.sample, 0);
    if (!IsMade(event)) continue;
    const Comm& parent = At(comms, At(names.comms, event.parent));
    const Comm& made = At(comms, At(names.comms, event.group));
    if (NumbersOf(trace, event.ranks) == ListOfMembers(parent, made)) event.ranks = Slice{};
  }
  trace.rank = 0;
  for (size_t g = 0; g < trace.groups.size(); ++g) {
    trace.groups[g].comm =
        std::to_string(trace.groups[g].world_ranks.size()) + " " + std::to_string(first_of[g]);
    trace.groups[g].world_ranks.clear();
  }
  return std::to_string(static_cast<int>(outcome.kind)) + '\0' + outcome.call + '\0' +
         outcome.reason + '\0' + PackTrace(trace);
}

}  // namespace

std::vector<int64_t> ListOfMembers(const Comm& parent, const Comm& made) {
  std::unordered_map<int32_t, int64_t> index;
  for (size_t i = 0; i < parent.members.size(); ++i)
    index.emplace(parent.members[i], static_cast<int64_t>(i));
  std::vector<int64_t> list;
  for (const int32_t member : made.members) {
    const auto at = index.find(member);
    if (at == index.end()) return {};
    list.push_back(at->second);
  }
  return list;
}

std::vector<int32_t> FirstOf(const Names& names) {
  std::vector<int32_t> first;
  for (const int32_t comm : names.comms) {
    const auto at = std::find(names.comms.begin(), names.comms.end(), comm);
    first.push_back(static_cast<int32_t>(at - names.comms.begin()));
  }
  return first;
}

std::string Contradiction(const CompactWorld& world) {
  std::vector<int64_t> samples;  // by shape
  for (const Shape& shape : world.shapes) {
    samples.push_back(std::count_if(shape.trace.events.begin(), shape.trace.events.end(),
                                    [](const Event& event) { return event.sample >= 0; }));
  }
  for (int32_t rank = 0; rank < world.world(); ++rank) {
    const Names& names = At(world.ranks, rank);
    const Shape& shape = At(world.shapes, names.shape);
    bool good = names.comms.size() == shape.trace.groups.size() &&
                std::ssize(names.samples) == At(samples, names.shape) &&
                FirstOf(names) == shape.first_of;
    for (size_t g = 0; good && g < names.comms.size(); ++g) {
      const std::vector<int32_t>& members = At(world.comms, names.comms[g]).members;
      good = std::find(members.begin(), members.end(), rank) != members.end() &&
             members.size() == shape.trace.groups[g].world_ranks.size();
    }
    if (!good) return "the names of rank " + std::to_string(rank) + " do not fit its trace";
  }
  return "";
}

const Shape& CompactWorld::ShapeOf(int32_t rank) const { return At(shapes, At(ranks, rank).shape); }

const Comm& CompactWorld::CommOf(int32_t rank, int32_t local_group) const {
  return At(comms, At(At(ranks, rank).comms, local_group));
}

Trace CompactWorld::Expand(int32_t rank) const {
  const Shape& shape = ShapeOf(rank);
  const Names& names = At(ranks, rank);
  Trace trace = shape.trace;
  const int32_t first = std::exchange(trace.rank, rank);
  for (size_t g = 0; g < trace.groups.size(); ++g) {
    const Comm& comm = At(comms, names.comms[g]);
    trace.groups[g].comm = comm.key;
    trace.groups[g].world_ranks = comm.members;
  }
  size_t sample = 0;
  for (Event& event : trace.events) {
    if (event.sample >= 0) event.sample = names.samples.at(sample++);
    if (!IsMade(event)) continue;
    if (NumbersOf(trace, event.ranks) !=
        ListOfMembers(CommOf(first, event.parent), CommOf(first, event.group)))
      continue;
    const std::vector<int64_t> list =
        ListOfMembers(CommOf(rank, event.parent), CommOf(rank, event.group));
    event.ranks.begin = static_cast<uint32_t>(trace.numbers.size());
    trace.numbers.insert(trace.numbers.end(), list.begin(), list.end());
    event.ranks.end = static_cast<uint32_t>(trace.numbers.size());
  }
  return trace;
}

int32_t CompactWorldBuilder::CommId(const GroupInfo& group) {
  std::vector<int32_t>& ids = comm_ids_[group.comm];
  for (const int32_t id : ids) {
    if (At(made_.comms, id).members == group.world_ranks) return id;
  }
  ids.push_back(static_cast<int32_t>(made_.comms.size()));
  made_.comms.push_back({group.comm, group.world_ranks});
  return ids.back();
}

void CompactWorldBuilder::Add(Trace trace, EngineOutcome outcome) {
  Names names;
  for (const GroupInfo& group : trace.groups) names.comms.push_back(CommId(group));
  std::vector<int32_t> first_of = FirstOf(names);
  for (const Event& event : trace.events) {
    if (event.sample >= 0) names.samples.push_back(event.sample);
  }
  std::string key = WithoutNames(trace, made_.comms, names, first_of, outcome);
  const auto [at, added] =
      shape_ids_.try_emplace(std::move(key), static_cast<int32_t>(made_.shapes.size()));
  if (added) made_.shapes.push_back({std::move(trace), std::move(outcome), std::move(first_of)});
  names.shape = at->second;
  made_.ranks.push_back(std::move(names));
}

}  // namespace shardproof::symmetry
