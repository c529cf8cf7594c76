#include "conformance/checks/graph/races.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "conformance/checks/graph/access_history.h"
#include "conformance/checks/graph/race_clocks.h"
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

struct Components {
  size_t streams = 0, threads = 0;
  size_t count() const { return streams + threads; }
};

Components ComponentsOf(const Program& program, size_t rank) {
  Components found;
  for (uint32_t e = program.first_entry[rank]; e < program.first_entry[rank + 1]; ++e) {
    const Entry& entry = program.entries[e];
    found.streams = std::max(found.streams, static_cast<size_t>(entry.stream + 1));
    found.threads = std::max(found.threads, size_t{entry.thread} + 1);
  }
  return found;
}

// One rank: clocks over its own edges, one component per stream and host thread. An entry's own
// time is its number, so times grow along each component.
template <typename Clocks>
class RankRaces {
 public:
  RankRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip, size_t rank,
            const Components& components, int64_t most)
      : program_(program),
        order_(order),
        skip_(skip),
        first_(program.first_entry[rank]),
        last_(program.first_entry[rank + 1]),
        components_(components),
        most_(most),
        clocks_({}, 0) {}

  // In issue order; if that turns out to be the wrong way round for a pair, in an order that suits
  // all pairs. README.md proves that this misses nothing.
  RacesFound Find() {
    std::vector<uint32_t> sequence(last_ - first_);
    std::iota(sequence.begin(), sequence.end(), first_);
    Visit(sequence);
    if (!backwards_) return std::move(found_);
    std::stable_sort(sequence.begin(), sequence.end(), [&](uint32_t a, uint32_t b) {
      return order_.StartPlace(a) < order_.StartPlace(b);
    });
    Visit(sequence);
    std::sort(found_.races.begin(), found_.races.end(), [](const Race& a, const Race& b) {
      return std::tie(a.second, a.first) < std::tie(b.second, b.first);
    });
    return std::move(found_);
  }

 private:
  // Prerequisites come first in the sequence. Stops when a pair is the wrong way round.
  void Visit(const std::vector<uint32_t>& sequence) {
    clocks_ = Clocks(Uses(), components_.count());
    block_of_.clear();
    blocks_.clear();
    reported_.clear();
    found_ = {};
    told_ = {};
    backwards_ = false;
    for (const uint32_t e : sequence) {
      const Entry& entry = program_.entries[e];
      VisitPrerequisites(e, [&](uint32_t needed) { clocks_.Join(e - first_, needed - first_); });
      auto clock = clocks_.Of(e - first_);
      if (skip_.empty() || !skip_[e]) VisitAccesses(e, entry, clock);
      if (backwards_) return;
      // From here on it is the clock at completion.
      if (entry.kind != EntryKind::kHostRequest) {
        const Access done = Completion(e, entry);
        clock.Raise(done.component, done.time);
      }
      clocks_.Done(e - first_);
    }
  }

  template <typename Needed>
  void VisitPrerequisites(uint32_t e, Needed&& visit) const {
    const Slice& all = program_.entries[e].prerequisites;
    for (uint32_t i = all.begin; i < all.end; ++i) {
      const Prerequisite& needed = program_.prerequisites[i];
      if (needed.edge() != EdgeKind::kCommunicator || order_.communicator_order())
        visit(needed.entry());
    }
  }

  // How many entries need each one.
  std::vector<uint32_t> Uses() const {
    std::vector<uint32_t> uses(last_ - first_);
    for (uint32_t e = first_; e < last_; ++e)
      VisitPrerequisites(e, [&](uint32_t needed) { ++uses[needed - first_]; });
    return uses;
  }

  // When it is over: in its component, the number of its entry. A non-blocking operation is over
  // when its wait is, which another thread may have called; without one, never.
  Access Completion(uint32_t e, const Entry& entry) const {
    uint32_t over = e;
    if (entry.kind == EntryKind::kHostRequest) over = entry.finished_by;
    if (over == kNone) return {e, kNeverOver, 0, 0};
    const Entry& last = program_.entries[over];
    const size_t component =
        last.stream >= 0 ? static_cast<size_t>(last.stream) : components_.streams + last.thread;
    return {e, over - first_ + 1, static_cast<uint32_t>(component), 0};
  }

  template <typename Clock>
  void VisitAccesses(uint32_t e, const Entry& entry, Clock& clock) {
    const Access access = Completion(e, entry);
    VisitRanges(program_, entry, [&](const Range& range) {
      Access mine = access;
      mine.access = range.access;
      BlockOf(range.alloc)
          .Visit(range.offset, range.offset + range.length, mine, clock,
                 [&](const Access& other, int64_t begin, int64_t end) {
                   return Ordered(other, e, clock, range.alloc, begin, end);
                 });
    });
  }

  // A trace may name few blocks by large numbers.
  AccessHistory& BlockOf(int32_t alloc) {
    const auto number = static_cast<size_t>(alloc);
    if (block_of_.size() <= number) block_of_.resize(number + 1, kNone);
    uint32_t& block = block_of_[number];
    if (block == kNone) {
      block = static_cast<uint32_t>(blocks_.size());
      blocks_.emplace_back();
    }
    return blocks_[block];
  }

  // The clocks do not order other before e. Do the other ranks?
  template <typename Clock>
  bool Ordered(const Access& other, uint32_t e, Clock& clock, int32_t alloc, int64_t begin,
               int64_t end) {
    if (order_.Precedes(other.entry, e)) {
      // And all that its component did before. The end of a request is in no component.
      if (program_.entries[other.entry].kind != EntryKind::kHostRequest)
        clock.Raise(other.component, other.time);
      return true;
    }
    if (order_.Precedes(e, other.entry)) {
      backwards_ = true;
      return true;
    }
    const auto [first, second] = std::minmax(other.entry, e);
    const uint64_t pair = uint64_t{first} << 32 | second;
    if (reported_.count(pair) > 0) return false;
    const auto kind = static_cast<size_t>(KindOfRace(program_, first, second));
    if (told_[kind] == most_) {
      ++found_.left_out[kind];
      return true;  // as if: else each access is compared with all before it
    }
    ++told_[kind];
    reported_.insert(pair);
    found_.races.push_back({first, second, alloc, begin, end - begin});
    return false;
  }

  const Program& program_;
  MustOrder& order_;
  const std::vector<bool>& skip_;
  uint32_t first_, last_;
  const Components components_;
  const int64_t most_;
  Clocks clocks_;
  std::vector<uint32_t> block_of_;  // by allocation: its place in blocks_, or kNone
  std::vector<AccessHistory> blocks_;
  std::unordered_set<uint64_t> reported_;
  RacesFound found_;
  std::array<int64_t, kRaceKinds> told_{};
  bool backwards_ = false;  // some entry must be over before one that was visited earlier starts
};

}  // namespace

RaceKind KindOfRace(const Program& program, uint32_t first, uint32_t second) {
  const auto either = [&](auto&& is) {
    return is(program.entries[first]) || is(program.entries[second]);
  };
  if (either([&](const Entry& entry) {
        const EventKind kind = program.event(entry).kind;
        return kind == EventKind::kAlloc || kind == EventKind::kFree;
      }))
    return RaceKind::kLifetime;
  return either([](const Entry& entry) { return entry.kind == EntryKind::kHostAccess; })
             ? RaceKind::kHost
             : RaceKind::kDevice;
}

RacesFound FindRaces(const Program& program, MustOrder& order, const std::vector<bool>& skip,
                     const RaceLimits& limits) {
  RacesFound found;
  for (size_t rank = 0; rank + 1 < program.first_entry.size(); ++rank) {
    const Components components = ComponentsOf(program, rank);
    const auto find = [&]<typename Clocks>(std::type_identity<Clocks>) {
      return RankRaces<Clocks>(program, order, skip, rank, components, limits.told).Find();
    };
    const RacesFound here = components.count() > limits.rows
                                ? find(std::type_identity<TreeClocks>{})
                                : find(std::type_identity<RowClocks>{});
    found.races.insert(found.races.end(), here.races.begin(), here.races.end());
    for (size_t kind = 0; kind < kRaceKinds; ++kind) found.left_out[kind] += here.left_out[kind];
  }
  return found;
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
