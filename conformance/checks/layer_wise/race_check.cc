// Accesses to what a gather sends or receives that nothing orders with it.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "conformance/checks/base/carried.h"
#include "conformance/checks/graph/deadlock.h"
#include "conformance/checks/graph/race_words.h"
#include "conformance/checks/graph/races.h"
#include "conformance/checks/layer_wise/layer_wise.h"

namespace shardproof::layer_wise {

namespace {

using graph::Entry, graph::Program, graph::Race;

bool Touches(const Range& range, const Race& race) {
  return range.alloc == race.alloc && range.offset < race.offset + race.length &&
         race.offset < range.offset + range.length;
}

class Races {
 public:
  Races(const Facts& facts, Report& report) : facts_(facts), a_(facts.a()), report_(report) {
    for (int32_t rank = 0; rank < a_.ranks(); ++rank) {
      CollectGathers(rank);
      for (const Reduction& reduction : facts.At(rank).reductions) {
        if (facts.LayerWise(reduction.instance)) reductions_.insert({rank, reduction.event});
      }
    }
  }

  void Run() {
    const Program* program = a_.lowered().program();
    if (program == nullptr) return report_.Cannot({"LW-17"}, a_.lowered().why());
    if (!graph::Sound(*program))
      return report_.Cannot({"LW-17"}, "the run does not match or can hang");
    if (!program->unordered_threads.empty())
      return report_.Cannot({"LW-17"}, program->unordered_threads);
    report_.Judged({"LW-17"});
    for (const Race& race : graph::FindRaces(*program, a_.lowered().must(), {}).races)
      JudgeRace(*program, race);
  }

 private:
  using Events = std::set<std::pair<int32_t, int64_t>>;

  // By kind: what a gather in a race brought is not known.
  void CollectGathers(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      if (event.kind != EventKind::kCollective || !Brings(event.collective) ||
          !facts_.LayerWise(event.instance))
        continue;
      const char letter = facts_.Letter(event.instance, event.call);
      if (letter == 't' || letter == 'e' || letter == 'l')
        gathers_.insert({rank, static_cast<int64_t>(i)});
    }
  }

  // The collective of the set that an entry is or holds; -1: none.
  static int64_t PartIn(const Program& program, const Entry& entry, const Events& events) {
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p) {
      const int64_t event = program.parts[p].event;
      if (events.contains({entry.rank, event})) return event;
    }
    return -1;
  }

  void JudgeRace(const Program& program, const Race& race) {
    const Entry& first = program.entries[race.first];
    const Entry& second = program.entries[race.second];
    const int64_t gather_first = PartIn(program, first, gathers_),
                  gather_second = PartIn(program, second, gathers_);
    if (gather_first < 0 && gather_second < 0) return;
    const int64_t gather = gather_first >= 0 ? gather_first : gather_second;
    const int64_t reduction = PartIn(program, gather_first >= 0 ? second : first, reductions_);
    if (!reported_.insert({first.rank, gather}).second) return;
    const auto at = [&](const Entry& entry, int64_t of_gather) {
      return of_gather >= 0 ? of_gather : entry.event;
    };
    const bool reduces_first = gather_first < 0 && reduction >= 0;
    const int64_t begins = reduces_first ? reduction : at(first, gather_first);
    const int64_t event = reduction >= 0 && !reduces_first ? reduction : at(second, gather_second);
    const graph::RaceWords words = InWords(program, race);
    report_.Add(reduction >= 0 ? "LW-23" : "LW-17", first.rank, event, begins, words.expected,
                words.seen,
                reduction >= 0 ? "a gather writes gradient storage while its reduction may be "
                                 "under way. " +
                                     words.advice
                               : Message(program, race, gather_first >= 0, words));
  }

  std::string Message(const Program& program, const Race& race, bool gather_first,
                      const graph::RaceWords& words) {
    const std::string first =
        words.first + " (event " + std::to_string(program.entries[race.first].event) + ")";
    const std::string second =
        words.second + " (event " + std::to_string(program.entries[race.second].event) + ")";
    const std::string both = first + " " + words.first_verb + " it, " + second + " " +
                             words.second_verb + " it, and " + words.waiting +
                             " does not wait for the former: " + words.bytes + ". " + words.advice;
    if (!gather_first)
      return "a gather starts while its source or destination is still in use: " + both;
    const int64_t earlier = GatherThatIsRead(program, race);
    if (earlier >= 0) {
      return "a gather starts before what an earlier one brought is read: " + second +
             " waits for the gather of event " + std::to_string(earlier) + ", and " + first +
             " goes into the same buffer, issued before it, and does not wait for it: " +
             words.bytes + ". Issue the later gather behind what reads the buffer, and let " +
             words.first_stream + " wait for that";
    }
    return "what a gather sends or receives is used before the gather is waited for: " + both;
  }

  // The second reads, and waits for an earlier gather into the same bytes that nobody read before
  // the first, another gather: that event; else -1.
  int64_t GatherThatIsRead(const Program& program, const Race& race) {
    const Entry& last = program.entries[race.second];
    if (Access(program, last, race) != kRead) return -1;
    const Event& begins = program.event(program.entries[race.first]);
    const auto rank = static_cast<size_t>(last.rank);
    for (uint32_t e = race.first; e > program.first_entry[rank];) {
      const Entry& entry = program.entries[--e];
      const Event& event = program.event(entry);
      if (event.instance != begins.instance || event.call != begins.call) return -1;
      const uint8_t access = Access(program, entry, race);
      const int64_t gather = PartIn(program, entry, gathers_);
      if (gather >= 0 && (access & kWrite) != 0)
        return a_.lowered().must().Precedes(e, race.second) ? gather : -1;
      if (gather < 0 && access != 0) return -1;
    }
    return -1;
  }

  // Of the bytes that race.
  static uint8_t Access(const Program& program, const Entry& entry, const Race& race) {
    uint8_t access = 0;
    for (const Range& range : graph::RangesOf(program, entry)) {
      if (Touches(range, race)) access = static_cast<uint8_t>(access | range.access);
    }
    return access;
  }

  const Facts& facts_;
  const Analysis& a_;
  Report& report_;
  Events gathers_, reductions_, reported_;
};

}  // namespace

void JudgeRaces(const Facts& facts, Report& report) { Races(facts, report).Run(); }

}  // namespace shardproof::layer_wise
