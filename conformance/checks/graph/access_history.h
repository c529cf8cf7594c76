// access_history.h: which earlier accesses to a block may a new one still race with?
//
// Byte ranges with the last accesses that no later write has covered. What a write follows is
// forgotten: whatever races with it later races with the write, or comes after both. That holds if
// accesses come in a sequence that agrees with their order; README.md proves it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

#include "conformance/checks/graph/kept_accesses.h"

namespace shardproof::graph {

class AccessHistory {
 public:
  // [begin, end) is accessed by mine, before which clock[c] accesses of each component c are over.
  // conflict(other, b, e) is called for each earlier access that clock does not order and that
  // conflicts; it answers whether it is ordered after all.
  template <typename Clock, typename Conflict>
  void Visit(int64_t begin, int64_t end, const Access& mine, const Clock& clock,
             Conflict&& conflict) {
    if (place_ == 0 || mine.entry != entry_) ++place_;
    entry_ = mine.entry;
    auto piece = Cut(begin);
    auto first = pieces_.end();  // that begins at `begin`
    int64_t at = begin;
    while (at < end) {
      if (piece == pieces_.end() || piece->first > at) {  // bytes that nobody has touched
        const int64_t stop = piece == pieces_.end() ? end : std::min(end, piece->first);
        const auto fresh = pieces_.emplace_hint(piece, at, Piece{stop, {}});
        fresh->second.accesses.Add(mine, place_);
        if (at == begin) first = fresh;
        at = stop;
        continue;
      }
      if (at == begin) first = piece;
      if (piece->second.end > end) Split(piece, end);
      Touch(piece, mine, clock, conflict);
      at = piece->second.end;
      ++piece;
    }
    if (first != pieces_.end()) Merge(first, end);
  }

  size_t pieces() const { return pieces_.size(); }
  int64_t compared() const { return compared_; }  // pairs of accesses, so far

 private:
  struct Piece {
    int64_t end = 0;
    KeptAccesses accesses;
  };
  using Pieces = std::map<int64_t, Piece>;  // by begin; they do not overlap

  template <typename Clock, typename Conflict>
  void Touch(Pieces::iterator at, const Access& mine, const Clock& clock, Conflict& conflict) {
    Piece& piece = at->second;
    const auto over = [&](const Access& other) {
      ++compared_;
      return clock[other.component] >= other.time || other.entry == mine.entry;
    };
    const auto ordered = [&](const Access& other) { return conflict(other, at->first, piece.end); };
    if (mine.writes()) {
      // Nothing follows a write that is never over: what comes later and conflicts races with it.
      piece.accesses.ForgetIf(
          over, [&](const Access& other) { return ordered(other) || mine.time == kNeverOver; });
    } else {
      piece.accesses.VisitWrites([&](const Access& other) {
        if (!over(other)) ordered(other);
      });
      // What is ordered after all may have moved the clock.
      compared_ +=
          static_cast<int64_t>(piece.accesses.ForgetReads(mine.component, clock[mine.component]));
    }
    piece.accesses.Add(mine, place_);
  }

  // The first piece that ends behind at, after cutting one that begins before it.
  Pieces::iterator Cut(int64_t at) {
    auto next = pieces_.lower_bound(at);
    if (next == pieces_.begin()) return next;
    const auto before = std::prev(next);
    return before->second.end > at ? Split(before, at) : next;
  }

  // The piece that begins at `at`.
  Pieces::iterator Split(Pieces::iterator piece, int64_t at) {
    const auto rest = pieces_.emplace_hint(std::next(piece), at, piece->second);
    piece->second.end = at;
    return rest;
  }

  // Neighbours of which the same is known become one: a block that was read or written in many
  // strides is one again after the next access to all of it.
  void Merge(Pieces::iterator kept, int64_t end) {
    for (auto next = std::next(kept); next != pieces_.end() && next->first < end;) {
      if (kept->second.end == next->first && kept->second.accesses == next->second.accesses) {
        kept->second.end = next->second.end;
        next = pieces_.erase(next);
      } else {
        kept = next++;
      }
    }
  }

  Pieces pieces_;
  uint32_t entry_ = 0, place_ = 0;  // of the last access: its entry, and which one that is
  int64_t compared_ = 0;
};

}  // namespace shardproof::graph
