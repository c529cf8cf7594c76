// staged_bytes.h: where do bytes come from that an engine copies before it sends them?
//
// Of one rank, in one step.
#pragma once
#include <compare>
#include <cstdint>
#include <vector>

#include "conformance/checks/base/byte_map.h"
#include "conformance/trace/event.h"

namespace shardproof {

class StagedBytes {
 public:
  // Allocation, offset there less the own one, and whether all copies on the way were made when the
  // step had gathered units already. Copies before that may be those that an engine keeps, written
  // late.
  struct Root {
    int32_t alloc = -1;
    int64_t shift = 0;
    bool between = true;
    auto operator<=>(const Root&) const = default;
  };
  struct Piece {
    int64_t at = 0, length = 0;
    Root root;
  };

  // Of each of these bytes; what was not copied is its own root.
  std::vector<Piece> RootsOf(int32_t alloc, int64_t begin, int64_t end) const {
    std::vector<Piece> pieces;
    const auto own = [&](int64_t until) {
      if (begin < until) pieces.push_back({begin, until - begin, Root{alloc, 0, true}});
    };
    for (const auto& piece : staged_.Get(alloc, begin, end)) {
      own(piece.begin);
      pieces.push_back({piece.begin, piece.end - piece.begin, piece.value});
      begin = piece.end;
    }
    own(end);
    return pieces;
  }

  // Of equal lengths. between: the step has gathered units.
  void Copy(const Range& from, const Range& to, bool between) {
    const std::vector<Piece> pieces = RootsOf(from.alloc, from.offset, from.offset + from.length);
    staged_.Erase(to.alloc, to.offset, to.offset + to.length);
    for (const Piece& piece : pieces) {
      const int64_t begin = piece.at + to.offset - from.offset;
      staged_.Put(to.alloc, begin, begin + piece.length,
                  Root{piece.root.alloc, piece.root.shift + piece.at - begin,
                       between && piece.root.between});
    }
  }
  ByteMap<Root>& map() { return staged_; }

 private:
  ByteMap<Root> staged_;
};

}  // namespace shardproof
