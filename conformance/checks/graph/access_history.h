// access_history.h: which earlier accesses to a block may a new one still race with?
//
// Byte ranges with the last accesses that no later write has covered. What a write follows is
// forgotten: whatever races with it later races with the write, or comes after both. That holds if
// accesses come in a sequence that agrees with their order; README.md proves it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::graph {

constexpr uint32_t kNeverOver = UINT32_MAX;

struct Access {
  uint32_t entry = 0;
  uint32_t time = 0;  // in its component, when it is over; or kNeverOver
  uint32_t component = 0;
  uint8_t access = 0;  // kRead | kWrite
};

class AccessHistory {
 public:
  // [begin, end) is accessed by mine, before which clock[c] accesses of each component c are over.
  // conflict(other, b, e) is called for each earlier access that clock does not order and that
  // conflicts; it answers whether it is ordered after all.
  template <typename Conflict>
  void Visit(int64_t begin, int64_t end, const Access& mine, const uint32_t* clock,
             Conflict&& conflict) {
    size_t i = Cut(begin);
    int64_t at = begin;
    while (at < end) {
      if (i == pieces_.size() || pieces_[i].begin > at) {  // bytes that nobody has touched
        const int64_t stop = i == pieces_.size() ? end : std::min(end, pieces_[i].begin);
        pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(i), Piece{at, stop, {mine}});
        at = stop;
        ++i;
        continue;
      }
      if (pieces_[i].end > end) Split(i, end);
      Touch(pieces_[i], mine, clock, conflict);
      at = pieces_[i].end;
      ++i;
    }
    if ((mine.access & kWrite) != 0) Merge(begin, end);
  }

  // Gives memory back; forgets nothing that matters.
  void Shrink() { pieces_.shrink_to_fit(); }

 private:
  struct Piece {
    int64_t begin = 0, end = 0;
    std::vector<Access> accesses;
  };

  template <typename Conflict>
  static void Touch(Piece& piece, const Access& mine, const uint32_t* clock, Conflict& conflict) {
    const bool writes = (mine.access & kWrite) != 0;
    size_t kept = 0;
    for (Access& other : piece.accesses) {
      bool ordered = clock[other.component] >= other.time || other.entry == mine.entry;
      const bool wrote = (other.access & kWrite) != 0;
      if (!ordered && (writes || wrote)) ordered = conflict(other, piece.begin, piece.end);
      const bool same = other.entry == mine.entry;
      // Nothing follows a write that is never over: what comes later and conflicts races with it.
      const bool last = ordered || (writes && mine.time == kNeverOver);
      const bool forget = last && (writes || (!wrote && other.component == mine.component));
      if (forget && !(same && wrote && !writes)) continue;
      piece.accesses[kept++] = other;
    }
    piece.accesses.resize(kept);
    piece.accesses.push_back(mine);
  }

  // The first piece that ends behind at, after cutting one that begins before it.
  size_t Cut(int64_t at) {
    auto found = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&](const Piece& piece) { return piece.end <= at; });
    auto i = static_cast<size_t>(found - pieces_.begin());
    if (found != pieces_.end() && found->begin < at) {
      Split(i, at);
      ++i;
    }
    return i;
  }

  void Split(size_t i, int64_t at) {
    Piece rest = pieces_[i];
    rest.begin = at;
    pieces_[i].end = at;
    pieces_.insert(pieces_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
  }

  // Neighbours inside a range that was just written and that have only this write left become one.
  void Merge(int64_t begin, int64_t end) {
    auto first = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&](const Piece& piece) { return piece.end <= begin; });
    auto last = first;
    while (last != pieces_.end() && last->begin < end) ++last;
    if (last - first < 2) return;
    auto kept = first;
    for (auto at = first + 1; at != last; ++at) {
      const bool alone =
          at->accesses.size() == 1 && kept->accesses.size() == 1 && at->begin == kept->end;
      if (alone) {
        kept->end = at->end;
      } else if (++kept != at) {
        *kept = std::move(*at);
      }
    }
    pieces_.erase(kept + 1, last);
  }

  std::vector<Piece> pieces_;
};

}  // namespace shardproof::graph
