// Which bytes of which blocks does an operation touch? Exact: the hull of a strided tensor would
// claim bytes of others.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shardproof::device {

enum Access : int { kRead = 1, kWrite = 2, kReadWrite = 3 };

struct Piece {  // contiguous bytes
  const char* start;
  int64_t bytes;
  bool operator==(const Piece& other) const { return start == other.start && bytes == other.bytes; }
};

// The bytes of a tensor's elements, by address, merged. Beyond 4096 pieces one piece covers them
// all.
std::vector<Piece> Covered(const at::Tensor& tensor);

// What a copy of one tensor's elements to another of the same shape moves: runs of elements that
// are contiguous in both, in the order of the target's memory. Empty: more than 4096 runs.
struct Run {
  const char* from;
  const char* to;
  int64_t elements;
};
std::vector<Run> Runs(const at::Tensor& from, const at::Tensor& to);

bool OnDevice(const at::Tensor& tensor);

// The text of FORMAT.md's `r`, entries without the outer brackets. Of bytes that are in no block:
// nothing.
std::string RangeText(const Piece& piece, int access);

class Ranges {
 public:
  void Add(const at::Tensor& tensor, int access);
  bool empty() const { return entries_.empty(); }
  std::string Text() const;

 private:
  struct Entry {
    Piece piece;
    int access;
  };
  std::vector<Entry> entries_;  // reads and writes of the same bytes are one entry
};

}  // namespace shardproof::device
