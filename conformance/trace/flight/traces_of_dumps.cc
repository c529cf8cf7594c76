#include "conformance/trace/flight/traces_of_dumps.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "conformance/abi/shardproof.h"
#include "conformance/common/at.h"

namespace shardproof::flight {
namespace {

bool IsMessage(const Entry& entry) {
  return entry.collective == SPF_SEND || entry.collective == SPF_RECV;
}

// One group of the world, over all dumps.
struct Group {
  std::string name, description;
  std::vector<int32_t> ranks;
  bool told = false;          // by a dump; else of the ranks whose dumps name it
  int64_t first = INT64_MIN;  // sequence numbers before it are not held by all any more
  bool gone = false;          // of a member whose ring has lost entries there is none left
  bool messages = true;       // all messages are held
};

class Merge {
 public:
  explicit Merge(const std::vector<Dump>& dumps) : dumps_(dumps) {}

  DumpedRun Run() {
    for (const Dump& dump : dumps_) Collect(dump);
    int32_t world = 0;
    for (auto& [name, group] : groups_) {
      if (!group.told) Infer(group);
      for (const int32_t rank : group.ranks) world = std::max(world, rank + 1);
    }
    for (const Dump& dump : dumps_) world = std::max(world, dump.rank + 1);
    for (auto& [name, group] : groups_) Align(group);
    for (int32_t rank = 0; rank < world; ++rank) run_.traces.push_back(NewTrace(rank, world));
    for (const Dump& dump : dumps_) Write(dump, At(run_.traces, dump.rank));
    if (!Waiting()) CutToCommon();
    return std::move(run_);
  }

 private:
  void Collect(const Dump& dump) {
    for (const DumpGroup& one : dump.groups) {
      Group& group = groups_[one.name];
      group.name = one.name;
      if (!one.description.empty() && one.description != "undefined")
        group.description = one.description;
      if (one.ranks.empty()) continue;
      if (group.told && group.ranks != one.ranks)
        throw std::invalid_argument("the dump of rank " + std::to_string(dump.rank) +
                                    " gives group \"" + one.name +
                                    "\" other ranks than those before");
      const auto last = std::max_element(one.ranks.begin(), one.ranks.end());
      constexpr int32_t kMostWorld = 1 << 20;
      if (*last >= kMostWorld)
        throw std::invalid_argument("group \"" + one.name + "\" has rank " + std::to_string(*last) +
                                    ", which cannot be meant");
      group.ranks = one.ranks;
      group.told = true;
    }
  }

  void Infer(Group& group) {
    for (const Dump& dump : dumps_) {
      const bool names = std::any_of(dump.groups.begin(), dump.groups.end(),
                                     [&](const DumpGroup& one) { return one.name == group.name; });
      if (names) group.ranks.push_back(dump.rank);
    }
    Note("group \"" + group.name +
         "\": no dump tells its ranks, so they are those whose dumps name it");
  }

  // Of a ring that has lost entries, those of the group that are left begin anywhere.
  void Align(Group& group) {
    for (const Dump& dump : dumps_) {
      const bool member =
          std::find(group.ranks.begin(), group.ranks.end(), dump.rank) != group.ranks.end();
      if (!member || dump.whole) continue;
      group.messages = false;
      const auto first =
          std::find_if(dump.entries.begin(), dump.entries.end(), [&](const Entry& e) {
            return At(dump.groups, e.group).name == group.name && !IsMessage(e);
          });
      if (first == dump.entries.end()) group.gone = true;
      // The first may be the rest of several calls with one number.
      if (first != dump.entries.end()) group.first = std::max(group.first, first->sequence + 1);
    }
    if (group.gone)
      Note("group \"" + group.name +
           "\" is left out: the ring of a member has lost all of its entries");
  }

  Trace NewTrace(int32_t rank, int32_t world) const {
    Trace trace;
    trace.rank = rank;
    trace.world = world;
    trace.case_id = "dumps of a flight recorder";
    trace.provides.collectives = true;
    trace.end = TraceEnd::kAborted;
    trace.end_reason = "there is no dump of this rank";
    return trace;
  }

  void Write(const Dump& dump, Trace& trace) {
    std::map<std::string_view, int32_t> numbers;
    for (const auto& [name, group] : groups_) {
      if (std::find(group.ranks.begin(), group.ranks.end(), dump.rank) == group.ranks.end())
        continue;
      const std::string& shown = group.description.empty() ? name : group.description;
      numbers.emplace(name, static_cast<int32_t>(trace.groups.size()));
      trace.groups.push_back({name.empty() ? "default" : name, shown, 0, group.ranks});
      trace.streams.push_back(shown);
    }
    trace.strings = dump.places;
    trace.end_reason = "that is what was issued until the dump";
    trace.events.reserve(dump.entries.size() + 1);
    int64_t left_out = 0;
    for (const Entry& entry : dump.entries) {
      const Group& group = groups_.at(At(dump.groups, entry.group).name);
      const auto number = numbers.find(group.name);
      if (number == numbers.end())
        throw std::invalid_argument("the dump of rank " + std::to_string(dump.rank) +
                                    " has an entry on group \"" + group.name +
                                    "\", of which it is no member");
      const bool held =
          !group.gone && (IsMessage(entry) ? group.messages : entry.sequence >= group.first);
      if (held) Add(entry, number->second, trace);
      left_out += !held;
    }
    if (left_out > 0)
      Note("rank " + std::to_string(dump.rank) + ": " + std::to_string(left_out) +
           " entries that the rings of other members no longer hold are left out");
  }

  void Add(const Entry& entry, int32_t group, Trace& trace) {
    Event event;
    event.kind = EventKind::kCollective;
    event.collective = entry.collective;
    event.dtype = entry.dtype;
    event.group = event.stream = group;
    event.peer = entry.peer;
    event.place = entry.place;
    const bool scatters = entry.collective == SPF_REDUCE_SCATTER || entry.collective == SPF_RECV;
    event.count = scatters ? entry.outputs : entry.inputs;
    trace.events.push_back(event);
    if (!entry.completed) waits_[trace.rank].insert(group);
  }

  // Whoever issued what was not done waits for it.
  bool Waiting() {
    for (const auto& [rank, streams] : waits_) {
      for (const int32_t stream : streams) {
        Event event;
        event.kind = EventKind::kStreamSync;
        event.stream = stream;
        At(run_.traces, rank).events.push_back(event);
      }
    }
    for (Trace& trace : run_.traces) trace.provides.sync = !waits_.empty();
    return !waits_.empty();
  }

  // All that was issued was done: whose dump is later has more, which the others did as well.
  void CutToCommon() {
    std::map<Place, int64_t> shortest;
    for (const Dump& dump : dumps_) {
      Trace& trace = At(run_.traces, dump.rank);
      trace.end = TraceEnd::kComplete;
      trace.end_reason.clear();
      std::map<Place, int64_t> count = PlacesOf(trace);
      for (const Event& event : trace.events) ++count[PlaceOf(trace, event)];
      for (const auto& [place, n] : count) {
        const auto [at, fresh] = shortest.emplace(place, n);
        at->second = std::min(at->second, n);
      }
    }
    for (Trace& trace : run_.traces) {
      std::map<Place, int64_t> seen;
      const size_t cut = std::erase_if(trace.events, [&](const Event& event) {
        const Place place = PlaceOf(trace, event);
        return ++seen[place] > shortest.at(place);
      });
      if (cut > 0)
        Note("rank " + std::to_string(trace.rank) + ": " + std::to_string(cut) +
             " entries at the end are left out: dumps of other members were written before them");
    }
  }
  // Operations that meet: of all members of a communicator, or from one member to another.
  struct Place {
    std::string comm;
    int32_t from = -1, to = -1;
    auto operator<=>(const Place&) const = default;
  };
  static int32_t MemberOf(const Trace& trace, int32_t group) {
    const std::vector<int32_t>& ranks = At(trace.groups, group).world_ranks;
    return static_cast<int32_t>(std::find(ranks.begin(), ranks.end(), trace.rank) - ranks.begin());
  }
  static Place PlaceOf(const Trace& trace, const Event& event) {
    const std::string& comm = At(trace.groups, event.group).comm;
    const int32_t me = MemberOf(trace, event.group);
    if (event.collective == SPF_SEND) return {comm, me, event.peer};
    if (event.collective == SPF_RECV) return {comm, event.peer, me};
    return {comm};
  }
  // Those of which the rank may have none, too.
  static std::map<Place, int64_t> PlacesOf(const Trace& trace) {
    std::map<Place, int64_t> places;
    for (const GroupInfo& group : trace.groups) {
      places[{group.comm}] = 0;
      const auto n = static_cast<int32_t>(group.world_ranks.size());
      const auto at = std::find(group.world_ranks.begin(), group.world_ranks.end(), trace.rank);
      const auto me = static_cast<int32_t>(at - group.world_ranks.begin());
      for (int32_t other = 0; other < n; ++other) {
        places[{group.comm, me, other}] = 0;
        places[{group.comm, other, me}] = 0;
      }
    }
    return places;
  }

  void Note(std::string text) { run_.notes.push_back(std::move(text)); }

  const std::vector<Dump>& dumps_;
  std::map<std::string, Group, std::less<>> groups_;
  std::map<int32_t, std::set<int32_t>> waits_;  // by rank: streams
  DumpedRun run_;
};

}  // namespace

DumpedRun TracesOfDumps(const std::vector<Dump>& dumps) { return Merge(dumps).Run(); }

}  // namespace shardproof::flight
