// How gradients are added up on a rank: not after they were handed over, and in the dtype of the
// case.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/checks/reduction/reduction.h"
#include "conformance/checks/reduction/uses.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"

namespace shardproof {

namespace {

class Sums {
 public:
  Sums(const Analysis& a, CheckResult& result) : a_(a), result_(result), sink_(result) {}

  void JudgeRank(int32_t rank) {
    JudgeLateAdds(rank);
    JudgeAccumulation(rank);
  }

 private:
  // Bytes of a block that were handed to a reduction.
  struct Sent {
    int64_t begin = 0, end = 0;
    int32_t call = -1;
    int64_t event = -1;  // the reduction
  };

  // Nothing adds to a gradient between its reduction and the write that clears it. What is added to
  // in a later call was not cleared, which is FS-22's to say.
  void JudgeLateAdds(int32_t rank) {
    std::map<int32_t, std::vector<Sent>> sent;  // by alloc
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const auto index = static_cast<int64_t>(i);
      if (GivesBack(event.kind)) sent.erase(event.alloc);
      if (event.kind == EventKind::kCollective && IsReduction(event.collective)) {
        if (const Range* range = SendRange(trace, event)) {
          sent[range->alloc].push_back(
              {range->offset, range->offset + range->length, event.call, index});
        }
        continue;
      }
      for (uint32_t k = event.ranges.begin; k < event.ranges.end; ++k) {
        const Range& range = trace.ranges[k];
        if ((range.access & kWrite) == 0 || !sent.contains(range.alloc)) continue;
        const auto overlaps = [&](const Sent& one) {
          return one.begin < range.offset + range.length && range.offset < one.end;
        };
        const auto in_this_call = [&](const Sent& one) {
          return one.call == event.call && overlaps(one);
        };
        auto& ranges = sent[range.alloc];
        const bool adds = event.kind == EventKind::kCompute && (range.access & kRead) != 0;
        const auto before = std::find_if(ranges.begin(), ranges.end(), in_this_call);
        if (adds && before != ranges.end()) {
          Finding finding = a_.At("FS-36", rank, index);
          finding.begins = before->event;
          sink_.Add(std::move(finding),
                    "no addition after the gradient was handed to its reduction",
                    "another addition", "a gradient is added to after its reduction was issued");
        }
        if (!adds) std::erase_if(ranges, overlaps);
      }
    }
  }

  // Sums over microbatches happen in the main-gradient dtype.
  void JudgeAccumulation(int32_t rank) {
    const Trace& trace = a_.trace(rank);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& event = trace.events[i];
      const auto index = static_cast<int64_t>(i);
      const bool adds = event.kind == EventKind::kLaunch && event.id == SPF_K_AXPBY;
      if (!adds && event.kind != EventKind::kCompute) continue;
      const EventFlow& flow = a_.flow().At(rank, index);
      const auto main = static_cast<uint8_t>(
          DtypeBytes(SpfDtype(a_.Facts(event.instance).spec().main_grads_dtype)));
      for (size_t k = 0; k < flow.after.size(); ++k) {
        const std::vector<Chunk> grads = Only(flow.after[k], Content::Kind::kGrad);
        if (grads.empty() || grads[0].content.width == main ||
            !SpansMicrobatches(flow, k, grads[0], event.call))
          continue;
        Judge(result_, {"FS-21"});
        sink_.Add(a_.At("FS-21", rank, index),
                  a_.Facts(event.instance).spec().main_grads_dtype.Text(),
                  std::to_string(grads[0].content.width) + "-byte elements",
                  "microbatches are accumulated in another dtype than main_grads_dtype");
        break;
      }
    }
  }

  // This operation put contributions of a second microbatch of the call into its gradient. A
  // momentum has those of earlier calls, and not always of the same microbatches.
  bool SpansMicrobatches(const EventFlow& flow, size_t range, const Chunk& after,
                         int32_t call) const {
    const auto microbatches = [&](int32_t set) {
      std::set<int32_t> seen;
      for (const Contribution& one : a_.flow().sets().Get(set)) {
        if (one.call == call) seen.insert(one.microbatch);
      }
      return seen.size();
    };
    const std::vector<Chunk> before = Only(flow.before[range], Content::Kind::kGrad);
    const size_t had = before.empty() ? 0 : microbatches(before[0].content.tag);
    return had > 0 && microbatches(after.content.tag) > had;
  }

  const Analysis& a_;
  CheckResult& result_;
  FindingSink sink_;
};

}  // namespace

CheckResult CheckSums(const Analysis& a) {
  CheckResult result;
  Sums sums(a, result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) sums.JudgeRank(rank);
  return result;
}

}  // namespace shardproof
