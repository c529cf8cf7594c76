// value_memory.h: where in a rank's memory do values of nodes lie?
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/checks/base/range_map.h"
#include "conformance/checks/tensor_parallel/holds.h"
#include "conformance/trace/event.h"

namespace shardproof {

// Of one rank, event by event.
class ValueMemory {
 public:
  ValueMemory(const Trace& trace, RankSets& ranks) : trace_(trace), ranks_(ranks) {}

  // What lies in a range; pieces begin at 0 with it.
  std::vector<HeldPiece> Get(const Range& range) const;
  void Put(const Range& range, const Holds& value) { bytes_.Put(range, value); }
  // Such pieces, and nothing else.
  void Put(const Range& range, const std::vector<HeldPiece>& pieces);
  // Bytes that nothing has written since they were allocated.
  int64_t Fresh(const Range& range) const { return BytesOf(fresh_, range); }

  // What the event writes is none of the values.
  void Overwrite(const Event& event) { bytes_.Overwrite(trace_, event); }
  // Any event but those that compute and communicate.
  void Follow(const Event& event);
  // Any event, once it is followed.
  void Age(const Event& event);

 private:
  void Launch(const Event& event);
  static int64_t BytesOf(const RangeMap<bool>& some, const Range& range);

  const Trace& trace_;
  RankSets& ranks_;
  RangeMap<Holds> bytes_;
  RangeMap<bool> fresh_, filled_;  // with one number, which a sum begins with
};

}  // namespace shardproof
