// byte_map.h: what does each byte of a rank's memory belong to?
//
// A value for ranges of allocations. What is put replaces what was there; what is left of a range
// keeps its value.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace shardproof {

template <class T>  // T: ordered, and ==
class ByteMap {
 public:
  struct Piece {
    int64_t begin = 0, end = 0;
    T value;
  };

  void Put(int32_t alloc, int64_t begin, int64_t end, const T& value) {
    if (begin >= end || Holds(alloc, begin, end, value)) return;
    Remove(alloc, begin, end, [](const T&) {});
    blocks_[alloc][begin] = {begin, end, value};
    bytes_[value] += end - begin;
  }
  // The bytes belong to nothing. Which values lost some of theirs.
  std::set<T> Erase(int32_t alloc, int64_t begin, int64_t end) {
    std::set<T> lost;
    Remove(alloc, begin, end, [&](const T& value) { lost.insert(value); });
    return lost;
  }
  std::set<T> EraseBlock(int32_t alloc) { return Erase(alloc, 0, INT64_MAX); }

  // The pieces that [begin, end) has bytes of, cut to it, in order.
  std::vector<Piece> Get(int32_t alloc, int64_t begin, int64_t end) const {
    std::vector<Piece> found;
    const auto block = blocks_.find(alloc);
    if (block == blocks_.end()) return found;
    for (auto at = FirstIn(block->second, begin); at != block->second.end() && at->first < end;
         ++at) {
      found.push_back(
          {std::max(begin, at->second.begin), std::min(end, at->second.end), at->second.value});
    }
    return found;
  }
  // How many bytes a value has; all values that have any.
  int64_t Bytes(const T& value) const {
    const auto at = bytes_.find(value);
    return at == bytes_.end() ? 0 : at->second;
  }
  const std::map<T, int64_t>& bytes() const { return bytes_; }

 private:
  // It is one piece, as Put would make it.
  bool Holds(int32_t alloc, int64_t begin, int64_t end, const T& value) const {
    const auto block = blocks_.find(alloc);
    if (block == blocks_.end()) return false;
    const auto at = block->second.find(begin);
    return at != block->second.end() && at->second.end == end && at->second.value == value;
  }
  // lost(value) for each piece that loses bytes.
  template <class Lost>
  void Remove(int32_t alloc, int64_t begin, int64_t end, const Lost& lost) {
    const auto block = blocks_.find(alloc);
    if (block == blocks_.end()) return;
    auto& pieces = block->second;
    for (auto at = FirstIn(pieces, begin); at != pieces.end() && at->first < end;) {
      const Piece piece = at->second;
      at = pieces.erase(at);
      Forget(piece.value, std::min(end, piece.end) - std::max(begin, piece.begin));
      lost(piece.value);
      if (piece.begin < begin) pieces[piece.begin] = {piece.begin, begin, piece.value};
      if (end < piece.end) pieces[end] = {end, piece.end, piece.value};
    }
    if (pieces.empty()) blocks_.erase(block);
  }
  // The first piece that ends behind begin.
  template <class Pieces>
  static auto FirstIn(Pieces& pieces, int64_t begin) {
    auto at = pieces.upper_bound(begin);
    if (at == pieces.begin()) return at;
    const auto before = std::prev(at);
    return before->second.end > begin ? before : at;
  }
  void Forget(const T& value, int64_t count) {
    const auto at = bytes_.find(value);
    at->second -= count;
    if (at->second == 0) bytes_.erase(at);
  }

  std::map<int32_t, std::map<int64_t, Piece>> blocks_;  // by allocation, by first byte
  std::map<T, int64_t> bytes_;
};

}  // namespace shardproof
