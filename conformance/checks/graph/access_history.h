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
    // Of accesses: writes up to here, from here on only reads of one component, or nothing is said
    // (kUnknown). The least time of those reads.
    size_t leading_writes = 0;
    uint32_t least_time = kNeverOver;
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
    const bool reads = before > piece.leading_writes;
    if (wrote) {
      piece.leading_writes = reads ? kUnknown : before + 1;
    } else if (reads && piece.accesses[before - 1].component != mine.component) {
      piece.leading_writes = kUnknown;
    } else {
      piece.least_time = std::min(piece.least_time, mine.time);
    }
  }

  // A read among reads that are not over forgets none of them: only the writes are looked at. Many
  // open requests may read one block.
  template <typename Clock, typename Conflict>
  bool ReadAmongOpenReads(Pieces::iterator at, const Access& mine, const Clock& clock,
                          Conflict& conflict) {
    Piece& piece = at->second;
    if ((mine.access & kWrite) != 0 || piece.leading_writes == kUnknown) return false;
    const Access& last = piece.accesses.back();
    if (piece.accesses.size() == piece.leading_writes || last.component != mine.component ||
        last.entry == mine.entry || clock[mine.component] >= piece.least_time)
      return false;
    for (size_t i = 0; i < piece.leading_writes; ++i) {
      const Access& other = piece.accesses[i];
      ++compared_;
      if (clock[other.component] < other.time && other.entry != mine.entry)
        conflict(other, at->first, piece.end);
    }
    // A conflict that is ordered after all may move the clock: then the writes are asked again.
    if (clock[mine.component] >= piece.least_time) return false;
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
    piece.least_time = kNeverOver;
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
