#include "conformance/checks/graph/races.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "conformance/checks/graph/access_history.h"
#include "conformance/common/at.h"

namespace shardproof::graph {

namespace {

constexpr int64_t kWholeBlock = int64_t{1} << 60;

template <typename Visit>
void VisitRanges(const Program& program, const Entry& entry, Visit&& visit) {
  const Trace& trace = program.trace(entry.rank);
  const auto of = [&](const Event& event) {
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      if (trace.ranges[i].length > 0 && trace.ranges[i].alloc >= 0) visit(trace.ranges[i]);
    }
  };
  if (entry.joint()) {
    for (uint32_t p = entry.parts.begin; p < entry.parts.end; ++p)
      of(program.event(program.parts[p]));
    return;
  }
  const Event& event = program.event(entry);
  if (event.kind == EventKind::kAlloc || event.kind == EventKind::kFree) {
    visit(Range{event.alloc, kWrite, 0, kWholeBlock});
  } else {
    of(event);
  }
}

// One rank: clocks over its own edges, one component per stream and host thread. An entry's own
// time is its number, so times grow along each component.
class RankRaces {
 public:
  RankRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip, size_t rank)
      : program_(program),
        order_(order),
        skip_(skip),
        first_(program.first_entry[rank]),
        last_(program.first_entry[rank + 1]) {
    int32_t streams = 0, threads = 0;
    for (uint32_t e = first_; e < last_; ++e) {
      streams = std::max(streams, program.entries[e].stream + 1);
      threads = std::max(threads, program.entries[e].thread + 1);
    }
    streams_ = static_cast<size_t>(streams);
    width_ = streams_ + static_cast<size_t>(threads);
  }

  // In issue order; if that turns out to be the wrong way round for a pair, in an order that suits
  // all pairs. README.md proves that this misses nothing.
  std::vector<Race> Find() {
    std::vector<uint32_t> sequence(last_ - first_);
    std::iota(sequence.begin(), sequence.end(), first_);
    Visit(sequence);
    if (!backwards_) return std::move(races_);
    std::stable_sort(sequence.begin(), sequence.end(), [&](uint32_t a, uint32_t b) {
      return order_.StartPlace(a) < order_.StartPlace(b);
    });
    Visit(sequence);
    std::sort(races_.begin(), races_.end(), [](const Race& a, const Race& b) {
      return std::tie(a.second, a.first) < std::tie(b.second, b.first);
    });
    return std::move(races_);
  }

 private:
  // Prerequisites come first in the sequence. Stops when a pair is the wrong way round.
  void Visit(const std::vector<uint32_t>& sequence) {
    clocks_.assign(size_t{last_ - first_} * width_, 0);
    blocks_.clear();
    reported_.clear();
    races_.clear();
    backwards_ = false;
    for (const uint32_t e : sequence) {
      const Entry& entry = program_.entries[e];
      uint32_t* clock = ClockOf(e);
      for (uint32_t i = entry.prerequisites.begin; i < entry.prerequisites.end; ++i) {
        const Prerequisite& needed = program_.prerequisites[i];
        if (needed.edge() != EdgeKind::kCommunicator || order_.communicator_order())
          Join(clock, needed.entry());
      }
      if (skip_.empty() || !skip_[e]) VisitAccesses(e, entry, clock);
      if (backwards_) return;
      // From here on the row is the clock at completion.
      if (entry.kind != EntryKind::kHostRequest) {
        const Access done = Completion(e, entry);
        clock[done.component] = done.time;
      }
    }
  }

  uint32_t* ClockOf(uint32_t e) { return &clocks_[size_t{e - first_} * width_]; }

  void Join(uint32_t* clock, uint32_t e) {
    const uint32_t* other = ClockOf(e);
    for (size_t c = 0; c < width_; ++c) clock[c] = std::max(clock[c], other[c]);
  }

  // When it is over: in its component, the number of its entry. A non-blocking operation is over
  // when its wait is, which another thread may have called; without one, never.
  Access Completion(uint32_t e, const Entry& entry) const {
    uint32_t over = e;
    if (entry.kind == EntryKind::kHostRequest) over = entry.finished_by;
    if (over == kNone) return {e, kNeverOver, 0, 0};
    const Entry& last = program_.entries[over];
    const size_t component =
        last.stream >= 0 ? static_cast<size_t>(last.stream) : streams_ + last.thread;
    return {e, over - first_ + 1, static_cast<uint32_t>(component), 0};
  }

  void VisitAccesses(uint32_t e, const Entry& entry, uint32_t* clock) {
    const Access access = Completion(e, entry);
    VisitRanges(program_, entry, [&](const Range& range) {
      const auto block = static_cast<size_t>(range.alloc);
      if (blocks_.size() <= block) blocks_.resize(block + 1);
      Access mine = access;
      mine.access = range.access;
      blocks_[block].Visit(range.offset, range.offset + range.length, mine, clock,
                           [&](const Access& other, int64_t begin, int64_t end) {
                             return Ordered(other, e, clock, range.alloc, begin, end);
                           });
    });
  }

  // The clocks do not order other before e. Do the other ranks?
  bool Ordered(const Access& other, uint32_t e, uint32_t* clock, int32_t alloc, int64_t begin,
               int64_t end) {
    if (order_.Precedes(other.entry, e)) {
      // And all that its component did before. The end of a request is in no component.
      if (program_.entries[other.entry].kind != EntryKind::kHostRequest)
        clock[other.component] = std::max(clock[other.component], other.time);
      return true;
    }
    if (order_.Precedes(e, other.entry)) {
      backwards_ = true;
      return true;
    }
    const auto [first, second] = std::minmax(other.entry, e);
    if (reported_.insert(uint64_t{first} << 32 | second).second)
      races_.push_back({first, second, alloc, begin, end - begin});
    return false;
  }

  const Program& program_;
  MustOrder& order_;
  const std::vector<bool>& skip_;
  uint32_t first_, last_;
  size_t streams_ = 0, width_ = 0;
  std::vector<uint32_t> clocks_;
  std::vector<AccessHistory> blocks_;
  std::unordered_set<uint64_t> reported_;
  std::vector<Race> races_;
  bool backwards_ = false;  // some entry must be over before one that was visited earlier starts
};

}  // namespace

std::vector<Race> FindRaces(const Program& program, MustOrder& order,
                            const std::vector<bool>& skip) {
  std::vector<Race> races;
  for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
    const std::vector<Race> found = RankRaces(program, order, skip, rank).Find();
    races.insert(races.end(), found.begin(), found.end());
  }
  return races;
}

std::vector<Range> RangesOf(const Program& program, const Entry& entry) {
  std::vector<Range> ranges;
  VisitRanges(program, entry, [&](const Range& range) { ranges.push_back(range); });
  return ranges;
}

std::vector<Race> FindAllRaces(const Program& program, MustOrder& order) {
  std::vector<Race> races;
  for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
    std::vector<std::pair<uint32_t, Range>> accesses;
    for (uint32_t e = program.first_entry[rank]; e < program.first_entry[rank + 1]; ++e) {
      for (const Range& range : RangesOf(program, program.entries[e]))
        accesses.emplace_back(e, range);
    }
    std::unordered_map<uint64_t, bool> seen;
    for (size_t j = 0; j < accesses.size(); ++j) {
      for (size_t i = 0; i < j; ++i) {
        const auto& [a, x] = accesses[i];
        const auto& [b, y] = accesses[j];
        const int64_t begin = std::max(x.offset, y.offset),
                      end = std::min(x.offset + x.length, y.offset + y.length);
        if (a == b || x.alloc != y.alloc || begin >= end || ((x.access | y.access) & kWrite) == 0)
          continue;
        if (!seen.try_emplace(uint64_t{a} << 32 | b, true).second) continue;
        if (!order.Precedes(a, b) && !order.Precedes(b, a))
          races.push_back({a, b, x.alloc, begin, end - begin});
      }
    }
  }
  return races;
}

}  // namespace shardproof::graph
