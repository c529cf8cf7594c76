// range_map.h: what does each byte that an event touches hold?
//
// A ByteMap (byte_map.h) by the ranges of a trace.
#pragma once
#include <vector>

#include "conformance/checks/base/byte_map.h"
#include "conformance/trace/event.h"

namespace shardproof {

template <class T>  // T: ordered
class RangeMap {
 public:
  using Piece = typename ByteMap<T>::Piece;

  std::vector<Piece> Get(const Range& range) const {
    return bytes_.Get(range.alloc, range.offset, range.offset + range.length);
  }
  void Put(const Range& range, const T& value) {
    bytes_.Put(range.alloc, range.offset, range.offset + range.length, value);
  }
  void Put(int32_t alloc, int64_t begin, int64_t end, const T& value) {
    bytes_.Put(alloc, begin, end, value);
  }
  void Erase(const Range& range) {
    bytes_.Erase(range.alloc, range.offset, range.offset + range.length);
  }
  void EraseBlock(int32_t alloc) { bytes_.EraseBlock(alloc); }
  // What the event writes holds nothing that is known.
  void Overwrite(const Trace& trace, const Event& event) {
    for (uint32_t i = event.ranges.begin; i < event.ranges.end; ++i) {
      if ((trace.ranges[i].access & kWrite) != 0) Erase(trace.ranges[i]);
    }
  }

 private:
  ByteMap<T> bytes_;
};

}  // namespace shardproof
