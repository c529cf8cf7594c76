// place.h: when does a finding happen, and what does it touch?
#pragma once
#include <cstdint>
#include <set>
#include <utility>

#include "conformance/checks/base/check.h"
#include "conformance/checks/program/lowered.h"

namespace shardproof::cause {

// Events of one rank from what brings a finding about to where it shows.
struct Place {
  int32_t rank = -1;             // -1: of all ranks
  int64_t first = 0, last = -1;  // events; last -1: the end of the run
  uint64_t time = 0;             // of where it shows, in one sequence that agrees with every path
};

class Places {
 public:
  // The program must outlive it.
  explicit Places(const graph::Lowered& lowered);

  Place Of(const Finding& finding) const;
  // Is all of `a` over before `b` begins? On one rank by the order of issue.
  bool Before(const Place& a, const Place& b) const;
  // Their two events are on the same two streams.
  bool SameStreams(const Finding& a, const Finding& b) const;
  // a names one event alone, which is on the stream of one of b's: work on a wrong stream.
  bool OnStreamOf(const Finding& a, const Finding& b) const;
  bool ShareBlocks(const Finding& a, const Finding& b) const;
  // Both are of a weight or gradient that one rank publishes, of the same parameter.
  bool PublishTheSame(const Finding& a, const Finding& b) const;

 private:
  const Trace* TraceOf(int32_t rank) const;
  uint32_t EntryFrom(int32_t rank, int64_t event) const;  // the first at or after it; kNone: none
  uint64_t TimeOf(int32_t rank, int64_t event) const;
  std::set<int32_t> BlocksOf(const Finding& finding) const;
  const graph::Lowered& lowered_;
  bool ordered_ = false;  // there is a program, and no cycle in it
};

}  // namespace shardproof::cause
