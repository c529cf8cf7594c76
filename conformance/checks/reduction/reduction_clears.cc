// What gradients are added to: memory that was cleared. What was never written is no summand, and
// what an earlier step left is not one of this step.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "conformance/checks/reduction/reduction.h"
#include "conformance/common/at.h"

namespace shardproof {

namespace {

using Kind = Content::Kind;

// A gradient that is added to memory: of this parameter, onto this. By a node: what is there
// becomes part of the gradient. A kernel may as well keep a momentum, which earlier steps are part
// of.
struct Addition {
  int32_t instance = 0, key = -1;
  Content onto;
  bool by_node = false;
};

std::vector<Addition> OfNode(const Analysis& a, int32_t rank, const Event& event,
                             const EventFlow& flow) {
  std::vector<Addition> additions;
  const InstanceFacts& facts = a.Facts(event.instance);
  if (event.id < 0 || event.id >= facts.node_count(rank)) return additions;
  const spf_uses& uses = facts.Node(event.id, rank).uses[event.phase];
  if (static_cast<size_t>(uses.n) != flow.before.size()) return additions;
  for (int32_t i = 0; i < uses.n; ++i) {
    if (uses.use[i].table != SPF_IN_GRAD) continue;
    const int32_t key = facts.Param(rank, uses.use[i].id).key;
    for (const Chunk& chunk : At(flow.before, i))
      additions.push_back({static_cast<int32_t>(event.instance), key, chunk.content, true});
  }
  return additions;
}

std::vector<Addition> OfKernel(const Trace& trace, const Event& event, const EventFlow& flow) {
  std::vector<Addition> additions;
  if (event.id != SPF_K_AXPBY || event.ranges.size() < 2 || flow.before.size() < 2)
    return additions;
  const Range* ranges = trace.ranges.data() + event.ranges.begin;
  if ((ranges[1].access & kRead) == 0) return additions;
  ZipChunks(flow.before[0], ranges[0].length, flow.before[1], ranges[1].length,
            [&](int64_t, int64_t, const Content& from, const Content& onto) {
              if (from.kind == Kind::kGrad)
                additions.push_back({static_cast<int32_t>(from.instance), from.param, onto});
            });
  return additions;
}

std::vector<Addition> AdditionsOf(const Analysis& a, int32_t rank, int64_t index) {
  const Trace& trace = a.trace(rank);
  const Event& event = At(trace.events, index);
  if (event.kind != EventKind::kCompute && event.kind != EventKind::kLaunch) return {};
  const EventFlow& flow = a.flow().At(rank, index);
  if (!flow.ran) return {};
  return event.kind == EventKind::kCompute ? OfNode(a, rank, event, flow)
                                           : OfKernel(trace, event, flow);
}

// The last entry call before this one of which a gradient still holds contributions, or -1.
int32_t EarlierCall(const Analysis& a, const Addition& addition, int32_t call) {
  if (!addition.by_node || addition.onto.kind != Kind::kGrad) return -1;
  int32_t earlier = -1;
  for (const Contribution& one : a.flow().sets().Get(addition.onto.tag)) {
    if (one.call < call) earlier = std::max<int32_t>(earlier, one.call);
  }
  return earlier;
}

}  // namespace

std::set<UnclearedSum> UnclearedSums(const Analysis& a) {
  std::set<UnclearedSum> sums;
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    for (int64_t i = 0; i < Length(a.trace(rank).events); ++i) {
      for (const Addition& one : AdditionsOf(a, rank, i)) {
        if (one.onto.kind == Kind::kPoison)
          sums.insert({one.instance, At(a.trace(rank).events, i).call, one.key});
      }
    }
  }
  return sums;
}

CheckResult CheckClears(const Analysis& a) {
  CheckResult result;
  FindingSink sink(result);
  for (int32_t rank = 0; rank < a.ranks(); ++rank) {
    std::set<UnclearedSum> told;
    for (int64_t i = 0; i < Length(a.trace(rank).events); ++i) {
      const int32_t call = At(a.trace(rank).events, i).call;
      for (const Addition& one : AdditionsOf(a, rank, i)) {
        const int32_t earlier = EarlierCall(a, one, call);
        if (one.onto.kind != Kind::kPoison && earlier < 0) continue;
        if (!told.insert({one.instance, call, one.key}).second) continue;
        const std::string& name = a.Facts(size_t(one.instance)).ByKey(one.key).name;
        if (earlier < 0) {
          Judge(result, {"FS-05"});
          sink.Add(a.At("FS-05", rank, i), "memory that was cleared", a.ContentText(one.onto),
                   "the gradient of " + name +
                       " is added to memory that was not cleared: whatever lies there is a "
                       "summand, so fill it with zeros before the first addition");
          continue;
        }
        const std::string step = a.CallName(rank, one.instance, earlier);
        Judge(result, {"FS-22"});
        sink.Add(a.At("FS-22", rank, i), "memory that was cleared in this step",
                 "contributions of " + step,
                 "the gradient of " + name + " is added to what " + step +
                     " left there: clear accumulators each step");
      }
    }
  }
  return result;
}

}  // namespace shardproof
