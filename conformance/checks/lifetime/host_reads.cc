// What the host reads of pinned memory (GE-38). Bytes that nothing wrote stay so when they are
// copied or sent: then the host reads what chance left in device memory, here or on another rank.
#include "conformance/checks/base/rank_check.h"
#include "conformance/checks/lifetime/lifetime.h"

namespace shardproof {

namespace {

bool IsHostRead(const Trace& trace, const Event& event, size_t range) {
  return event.kind == EventKind::kHostAccess &&
         trace.ranges[event.ranges.begin + range].access == kRead;
}

bool AnyHostRead(const Analysis& a) {
  for (const Trace& trace : a.traces()) {
    for (const Event& event : trace.events) {
      if (!event.ranges.empty() && IsHostRead(trace, event, 0)) return true;
    }
  }
  return false;
}

class HostReads : RankCheck {
 public:
  HostReads(const Analysis& a, int32_t rank, CheckResult& result, FindingSink& sink)
      : RankCheck(a, rank, result, sink) {}

  void JudgeAll() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& event = trace_.events[i];
      if (event.kind == EventKind::kHostAccess) JudgeRead(static_cast<int64_t>(i), event);
    }
  }

 private:
  void JudgeRead(int64_t index, const Event& event) {
    const EventFlow& flow = a_.flow().At(rank_, index);
    for (size_t k = 0; k < flow.before.size(); ++k) {
      if (!IsHostRead(trace_, event, k)) continue;
      const Range& range = trace_.ranges[event.ranges.begin + k];
      for (const Chunk& chunk : flow.before[k]) {
        if (chunk.content.kind != Content::Kind::kPoison || chunk.length == 0) continue;
        const int64_t begin = range.offset + chunk.offset;
        Add("GE-38", index, "bytes that something has written",
            "bytes [" + std::to_string(begin) + ", " + std::to_string(begin + chunk.length) +
                ") of the block hold what nothing wrote",
            "the host reads memory that nothing has written, or what was copied or sent from such "
            "memory: a copy is missing, or padding was never cleared");
        return;
      }
    }
  }
};

}  // namespace

CheckResult CheckHostReads(const Analysis& a) {
  CheckResult result;
  if (!AnyHostRead(a)) return result;
  if (!a.has_flow()) {
    NeedsCase(a, result, {"GE-38"});
    return result;
  }
  Judge(result, {"GE-38"});
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) HostReads(a, rank, result, sink).JudgeAll();
  return result;
}

}  // namespace shardproof
