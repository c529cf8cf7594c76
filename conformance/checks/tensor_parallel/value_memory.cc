#include "conformance/checks/tensor_parallel/value_memory.h"

#include <algorithm>

#include "conformance/abi/shardproof.h"
#include "conformance/checks/base/event_ranges.h"

namespace shardproof {

std::vector<HeldPiece> ValueMemory::Get(const Range& range) const {
  std::vector<HeldPiece> pieces = bytes_.Get(range);
  for (HeldPiece& piece : pieces) {
    piece.begin -= range.offset;
    piece.end -= range.offset;
  }
  return pieces;
}

void ValueMemory::Put(const Range& range, const std::vector<HeldPiece>& pieces) {
  bytes_.Erase(range);
  for (const HeldPiece& piece : pieces) {
    bytes_.Put(range.alloc, range.offset + piece.begin,
               range.offset + std::min(piece.end, range.length), piece.value);
  }
}

int64_t ValueMemory::BytesOf(const RangeMap<bool>& some, const Range& range) {
  int64_t bytes = 0;
  for (const auto& piece : some.Get(range)) bytes += piece.end - piece.begin;
  return bytes;
}

void ValueMemory::Follow(const Event& event) {
  switch (event.kind) {
    case EventKind::kLaunch:
      return Launch(event);
    case EventKind::kCopy:
      for (const auto& [from, to] : CopiedRuns(trace_, event)) Put(to, Get(from));
      break;
    case EventKind::kRelease:
    case EventKind::kFree:
      bytes_.EraseBlock(event.alloc);
      break;
    default:
      Overwrite(event);
  }
}

void ValueMemory::Age(const Event& event) {
  if (event.kind == EventKind::kAlloc) {
    fresh_.Put(event.alloc, 0, event.count, true);
  } else if (GivesBack(event.kind)) {
    fresh_.EraseBlock(event.alloc);
    filled_.EraseBlock(event.alloc);
  } else {
    fresh_.Overwrite(trace_, event);
    filled_.Overwrite(trace_, event);
  }
  if (event.kind == EventKind::kLaunch && event.id == SPF_K_FILL && !event.ranges.empty())
    filled_.Put(trace_.ranges[event.ranges.begin], true);
}

// A cast, a copy or a sum.
void ValueMemory::Launch(const Event& event) {
  if (event.id != SPF_K_AXPBY || event.ranges.size() != 2) return Overwrite(event);
  const Range &x = trace_.ranges[event.ranges.begin], &y = trace_.ranges[event.ranges.begin + 1];
  if (x.length != y.length) return Overwrite(event);
  const bool takes = (y.access & kRead) == 0 || BytesOf(filled_, y) == y.length;
  Put(y, takes ? Get(x) : SumOf(Get(x), Get(y), ranks_));
}

}  // namespace shardproof
