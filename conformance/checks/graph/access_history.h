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
#include <utility>
#include <vector>

#include "conformance/trace/event.h"

namespace shardproof::graph {

constexpr uint32_t kNeverOver = UINT32_MAX;

struct Access {
  uint32_t entry = 0;
  uint32_t time = 0;  // in its component, when it is over; or kNeverOver
  uint32_t component = 0;
  uint8_t access = 0;  // kRead | kWrite
  bool operator==(const Access& other) const = default;
};

// Of reads: the least time of each component's. Mostly they are of one component.
class ReadTimes {
 public:
  void Clear() {
    any_ = false;
    others_.clear();
  }
  void Add(uint32_t component, uint32_t time) {
    if (!any_) component_ = component, least_ = time, any_ = true;
    if (component == component_) {
      least_ = std::min(least_, time);
      return;
    }
    const auto at = std::lower_bound(others_.begin(), others_.end(), std::pair(component, 0U));
    if (at != others_.end() && at->first == component) {
      at->second = std::min(at->second, time);
    } else {
      others_.insert(at, {component, time});
    }
  }
  // kNeverOver: none.
  uint32_t Least(uint32_t component) const {
    if (!any_) return kNeverOver;
    if (component == component_) return least_;
    const auto at = std::lower_bound(others_.begin(), others_.end(), std::pair(component, 0U));
    return at != others_.end() && at->first == component ? at->second : kNeverOver;
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> others_;  // in the order of components
  uint32_t component_ = 0, least_ = kNeverOver;
  bool any_ = false;
};

class AccessHistory {
 public:
  // [begin, end) is accessed by mine, before which clock[c] accesses of each component c are over.
  // conflict(other, b, e) is called for each earlier access that clock does not order and that
  // conflicts; it answers whether it is ordered after all.
  template <typename Clock, typename Conflict>
  void Visit(int64_t begin, int64_t end, const Access& mine, const Clock& clock,
             Conflict&& conflict) {
    auto piece = Cut(begin);
    auto first = pieces_.end();  // that begins at `begin`
    int64_t at = begin;
    while (at < end) {
      if (piece == pieces_.end() || piece->first > at) {  // bytes that nobody has touched
        const int64_t stop = piece == pieces_.end() ? end : std::min(end, piece->first);
        const auto fresh = pieces_.emplace_hint(piece, at, Piece{stop, {}});
        Append(fresh->second, mine);
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
    std::vector<Access> accesses;
    // Of accesses: writes up to here and from here on only reads, or nothing is said (kUnknown).
    size_t leading_writes = 0;
    ReadTimes reads{};
  };
  static constexpr size_t kUnknown = SIZE_MAX;
  using Pieces = std::map<int64_t, Piece>;  // by begin; they do not overlap

  static void Append(Piece& piece, const Access& mine) {
    piece.accesses.push_back(mine);
    Note(piece, piece.accesses.size() - 1);
  }

  // What is known of the first `before` accesses becomes what is known of one more.
  static void Note(Piece& piece, size_t before) {
    const Access& mine = piece.accesses[before];
    const bool wrote = (mine.access & kWrite) != 0;
    if (piece.leading_writes == kUnknown) return;
    if (wrote) {
      piece.leading_writes = before > piece.leading_writes ? kUnknown : before + 1;
    } else {
      piece.reads.Add(mine.component, mine.time);
    }
  }

  // A read forgets no read of another component, and none that is not over: only the writes are
  // looked at. Many open requests, or many host threads, may read one block.
  template <typename Clock, typename Conflict>
  bool ReadAmongOpenReads(Pieces::iterator at, const Access& mine, const Clock& clock,
                          Conflict& conflict) {
    Piece& piece = at->second;
    if ((mine.access & kWrite) != 0 || piece.leading_writes == kUnknown) return false;
    const auto forgets = [&] { return clock[mine.component] >= piece.reads.Least(mine.component); };
    if (piece.accesses.back().entry == mine.entry || forgets()) return false;
    for (size_t i = 0; i < piece.leading_writes; ++i) {
      const Access& other = piece.accesses[i];
      ++compared_;
      if (clock[other.component] < other.time && other.entry != mine.entry)
        conflict(other, at->first, piece.end);
    }
    // A conflict that is ordered after all may move the clock: then the writes are asked again.
    if (forgets()) return false;
    Append(piece, mine);
    return true;
  }

  template <typename Clock, typename Conflict>
  void Touch(Pieces::iterator at, const Access& mine, const Clock& clock, Conflict& conflict) {
    if (ReadAmongOpenReads(at, mine, clock, conflict)) return;
    Piece& piece = at->second;
    compared_ += static_cast<int64_t>(piece.accesses.size());
    const bool writes = (mine.access & kWrite) != 0;
    size_t kept = 0;
    for (Access& other : piece.accesses) {
      bool ordered = clock[other.component] >= other.time || other.entry == mine.entry;
      const bool wrote = (other.access & kWrite) != 0;
      if (!ordered && (writes || wrote)) ordered = conflict(other, at->first, piece.end);
      const bool same = other.entry == mine.entry;
      // Nothing follows a write that is never over: what comes later and conflicts races with it.
      const bool last = ordered || (writes && mine.time == kNeverOver);
      const bool forget = last && (writes || (!wrote && other.component == mine.component));
      if (forget && !(same && wrote && !writes)) continue;
      piece.accesses[kept++] = other;
    }
    piece.accesses.resize(kept);
    piece.accesses.push_back(mine);
    piece.leading_writes = 0;
    piece.reads.Clear();
    for (size_t i = 0; i <= kept; ++i) Note(piece, i);
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
  int64_t compared_ = 0;
};

}  // namespace shardproof::graph
