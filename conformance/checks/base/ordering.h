// ordering.h: does one event of a rank always precede another, and through what?
//
// Lowered::may() in terms of a trace's events, with reasons why nothing can be said.
#pragma once
#include <cstdint>
#include <string>

#include "conformance/checks/base/analysis.h"

namespace shardproof {

class Ordering {
 public:
  explicit Ordering(const Analysis& a);

  bool usable() const { return why_.empty(); }
  const std::string& why() const { return why_; }

  // REQUIRES: usable(). The first is over before the second starts, under every timing. False for
  // events that are no work.
  bool Precedes(int32_t rank, int64_t first, int64_t second) const;
  bool Unordered(int32_t rank, int64_t a, int64_t b) const {
    return !Precedes(rank, a, b) && !Precedes(rank, b, a);
  }
  // What leads from the first to the second, at most six steps in words.
  std::string Path(int32_t rank, int64_t first, int64_t second) const;

 private:
  std::string Name(uint32_t node) const;
  const Analysis& a_;
  std::string why_;
};

}  // namespace shardproof
